import { removeBidiControls } from '../../tasks/documents/file-name.ts'

/** Headers of a part. Names are lower-case. Values are binary strings with one character per byte. */
export type PartHeaders = Readonly<Record<string, readonly string[]>>

/** Returns the field name and file name in Content-Disposition, or undefined if the header is not `form-data`. */
export function parseDisposition(headers: PartHeaders): {
  name: string | undefined
  fileName: string | undefined
} {
  const text = decodeUtf8(headers['content-disposition']?.[0] ?? '')
  if (!/^form-data\s*(;|$)/i.test(text)) return { name: undefined, fileName: undefined }
  const found = parseParameters(text)
  return {
    name: decodeFormName(found.get('name')),
    fileName: decodeExtended(found.get('filename*')) ?? decodeFormName(found.get('filename')),
  }
}

/** Decodes the characters that browsers escape in names of a form (HTML, 4.10.22.8). */
const decodeFormName = (name?: string): string | undefined =>
  name?.replace(/%(22|0D|0A)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

/** Returns the media type in lower case without parameters, or undefined if it is missing or malformed. */
export function parseMediaType(headers: PartHeaders): string | undefined {
  const type = headers['content-type']?.[0]?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return /^[a-z0-9!#$&^_.+-]{1,127}\/[a-z0-9!#$&^_.+-]{1,127}$/.test(type) ? type : undefined
}

function decodeUtf8(binary: string): string {
  return Buffer.from(binary, 'latin1').toString()
}

/** Parses `; name=value` and `; name="value"`. If a name repeats, the first value counts. */
export function parseParameters(text: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const match of text.matchAll(
    /;\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))/g,
  )) {
    const name = (match[1] as string).toLowerCase()
    // Unescapes only quotes and backslashes: old browsers send Windows paths unescaped.
    const value = match[3] ?? (match[2] as string).replace(/\\(["\\])/g, '$1')
    if (!found.has(name)) found.set(name, value)
  }
  return found
}

/** Decodes an extended value (RFC 5987) such as `UTF-8''na%C3%AFve`; undefined if malformed. */
function decodeExtended(value: string | undefined): string | undefined {
  const match = /^(utf-8|iso-8859-1)'[^']*'(.*)$/is.exec(value ?? '')
  if (match === null) return undefined
  const text = match[2] as string
  try {
    if (match[1]?.toLowerCase() === 'utf-8') return decodeURIComponent(text)
    return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  } catch {
    return undefined
  }
}

/** Returns the base name without control characters and those of text direction, cut to 255 characters. Returns '' if nothing is left. */
export function cleanFileName(given = ''): string {
  const base = given.slice(Math.max(given.lastIndexOf('/'), given.lastIndexOf('\\')) + 1)
  // Counts code points, so that the limit splits no character.
  const clean = Array.from(removeBidiControls(base.replace(/\p{Cc}/gu, '')).trim())
    .slice(0, 255)
    .join('')
  return clean === '.' || clean === '..' ? '' : clean
}
