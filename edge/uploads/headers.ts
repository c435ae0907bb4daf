/** Names are lower case; values are binary strings, one character for each byte. */
export type PartHeaders = Readonly<Record<string, readonly string[]>>

/** The names in Content-Disposition; undefined when it is not that of a form field. */
export function disposition(headers: PartHeaders): {
  name: string | undefined
  fileName: string | undefined
} {
  const text = utf8(headers['content-disposition']?.[0] ?? '')
  if (!/^form-data\s*(;|$)/i.test(text)) return { name: undefined, fileName: undefined }
  const found = parameters(text)
  return { name: found.get('name'), fileName: extended(found.get('filename*')) ?? found.get('filename') }
}

/** Lower case, without parameters; undefined when it is missing or malformed. */
export function mediaTypeOf(headers: PartHeaders): string | undefined {
  const type = headers['content-type']?.[0]?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return /^[a-z0-9!#$&^_.+-]{1,127}\/[a-z0-9!#$&^_.+-]{1,127}$/.test(type) ? type : undefined
}

function utf8(binary: string): string {
  return Buffer.from(binary, 'latin1').toString()
}

/** `; name=value` and `; name="value"`; the first of equal names counts. */
export function parameters(text: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const match of text.matchAll(
    /;\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))/g,
  )) {
    const name = (match[1] as string).toLowerCase()
    // Only quotes and backslashes are escaped: old browsers send full Windows paths as they are.
    const value = match[3] ?? (match[2] as string).replace(/\\(["\\])/g, '$1')
    if (!found.has(name)) found.set(name, value)
  }
  return found
}

/** An extended value (RFC 5987), `UTF-8''na%C3%AFve`; undefined when it cannot be read. */
function extended(value: string | undefined): string | undefined {
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

/** The base name without control characters, at most 255 characters; '' when nothing is left. */
export function cleanFileName(given = ''): string {
  const base = given.slice(Math.max(given.lastIndexOf('/'), given.lastIndexOf('\\')) + 1)
  // By code points, so that no character is cut in two.
  const clean = Array.from(base.replace(/\p{Cc}/gu, '').trim())
    .slice(0, 255)
    .join('')
  return clean === '.' || clean === '..' ? '' : clean
}
