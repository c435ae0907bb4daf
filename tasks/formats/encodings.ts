/** Names of text encodings, and the ones that bytes prove by themselves. */

/** Encodings that `TextDecoder` lacks: code pages of DOS and of the Macintosh, and UTF-32. */
export const EXTRA_ENCODINGS: ReadonlySet<string> = new Set(
  `utf-32le utf-32be cp437 cp720 cp737 cp775 cp850 cp852 cp855 cp857 cp858 cp860 cp861 cp862 cp863 cp864 cp865 cp869
  macgreek macturkish maccenteuro maciceland macromania maccroatian macthai`.split(/\s+/),
)

// Code pages of Windows whose numbers are no labels of `TextDecoder`.
const ALIASES: Readonly<Record<string, string>> = {
  cp874: 'windows-874',
  cp932: 'shift_jis',
  cp936: 'gbk',
  cp949: 'euc-kr',
  cp950: 'big5',
  cp65001: 'utf-8',
  'utf-16': 'utf-16le',
  'utf-32': 'utf-32le',
}

/**
 * Returns the name of an encoding, as in a `charset` parameter, for any label of the Encoding Standard or number of a
 * code page. Null for unknown labels.
 */
export function resolveEncoding(label: string): string | null {
  const given = label.trim().toLowerCase()
  const name = given.replace(/^(?:ibm|dos|ms|cp)?[-_]?(\d{3,5})$/, 'cp$1').replace(/^utf(16|32)/, 'utf-$1')
  if (EXTRA_ENCODINGS.has(name)) return name
  const known = ALIASES[name] ?? name.replace(/^cp(125\d)$/, 'windows-$1')
  return EXTRA_ENCODINGS.has(known) ? known : (findStandardName(known) ?? findStandardName(given))
}

function findStandardName(label: string): string | null {
  try {
    return new TextDecoder(label).encoding
  } catch {
    return null
  }
}

/** Decodes each byte as one character, to find ASCII marks before the encoding is known. */
export const decodeLatin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')

/** Returns the encoding that a byte order mark names; null without one. */
export function findMarkedEncoding(bytes: Uint8Array): string | null {
  const [a, b, c, d] = bytes
  if (a === 0xff && b === 0xfe) return c === 0 && d === 0 && bytes.length >= 8 ? 'utf-32le' : 'utf-16le'
  if (a === 0xfe && b === 0xff) return 'utf-16be'
  if (a === 0 && b === 0 && c === 0xfe && d === 0xff) return 'utf-32be'
  return a === 0xef && b === 0xbb && c === 0xbf ? 'utf-8' : null
}

const SAMPLE_BYTES = 64 * 1024

/**
 * Returns the byte order of UTF-16 without a mark; null for other bytes. Such a text has NUL bytes, because each has
 * spaces, line ends or digits. Read in the wrong order, these become other characters.
 */
export function findUnmarkedUtf16(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | null {
  const sample = bytes.subarray(0, Math.min(bytes.length, SAMPLE_BYTES) & ~1)
  if (sample.length < 4 || !sample.includes(0)) return null
  const little = countAscii(sample, 'utf-16le')
  const big = countAscii(sample, 'utf-16be')
  if (little === big || Math.max(little, big) === 0) return null
  return little > big ? 'utf-16le' : 'utf-16be'
}

// Matches characters that no text in UTF-16 has. Among them are NUL, unpaired surrogates and unassigned characters.
const IMPOSSIBLE_CHARACTER = /(?!\s)[\p{Cc}\p{Cn}\p{Co}\p{Cs}]/u

/** Counts the ASCII characters of UTF-16; -1 if the bytes are not text in that order. */
function countAscii(sample: Uint8Array, encoding: 'utf-16le' | 'utf-16be'): number {
  const text = new TextDecoder(encoding).decode(sample, { stream: true })
  if (IMPOSSIBLE_CHARACTER.test(text) || text.includes('\ufffd')) return -1
  return text.match(/[\t\n\r\x20-\x7e]/g)?.length ?? 0
}

// Logs are padded with runs of NUL, and damaged in a few places. Other files have such bytes everywhere.
const MIN_BYTES_PER_PADDING = 8
const MAX_CONTROL_SHARE = 0.01

/**
 * True if bytes may be a text in an encoding that extends ASCII. Such a text has few runs of NUL and few controls. White
 * space, escape and backspace do not count, nor 0x1a at the end of texts from DOS.
 */
function hasTextBytes(bytes: Uint8Array): boolean {
  const length = bytes.at(-1) === 0x1a ? bytes.length - 1 : bytes.length
  let paddings = 0
  let nuls = 0
  let controls = 0
  for (let at = 0; at < length; at++) {
    const byte = bytes[at]!
    if (byte >= 0x20 && byte !== 0x7f) continue
    if (byte === 0) {
      nuls++
      if (at === 0 || bytes[at - 1] !== 0) paddings++
    } else if (byte < 0x08 || (byte > 0x0d && byte !== 0x1b)) controls++
  }
  return length - nuls >= MIN_BYTES_PER_PADDING * paddings && controls <= MAX_CONTROL_SHARE * length
}

/** True if bytes may be a text in any encoding. */
export function isText(bytes: Uint8Array): boolean {
  const marked = findMarkedEncoding(bytes)
  if (marked === null || marked === 'utf-8') return findUnmarkedUtf16(bytes) !== null || hasTextBytes(bytes)
  if (marked.startsWith('utf-32')) return true
  return !new TextDecoder(marked).decode(bytes, { stream: true }).includes('\0')
}

/** True for UTF-8. The last character of a large text may be incomplete, because such bytes may be only its head. */
export function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: bytes.length >= SAMPLE_BYTES })
    return true
  } catch {
    return false
  }
}

// A page declares its encoding within its first 1024 bytes (HTML, 13.2.3.2). Browsers also obey a later declaration.
const DECLARATION =
  /<(?:meta\b[^>]{0,1000}?\bcharset|\?xml\b[^>]{0,1000}?\bencoding)\s{0,100}=\s{0,100}["']?\s{0,100}([\w:-]+)/i

/**
 * Returns the encoding that an HTML or XML page declares; null if it declares none that is known. A declaration that is
 * readable as ASCII cannot mean UTF-16.
 */
export function findDeclaredEncoding(bytes: Uint8Array): string | null {
  const label = DECLARATION.exec(dropComments(decodeLatin1(bytes.subarray(0, SAMPLE_BYTES))))?.[1]
  const encoding = label === undefined ? null : resolveEncoding(label)
  return encoding !== null && /^utf-(16|32)/.test(encoding) ? 'utf-8' : encoding
}

/** Drops comments, which may contain examples. */
function dropComments(markup: string): string {
  const [start = '', ...rest] = markup.split('<!--')
  return start + rest.map((part) => part.split('-->').slice(1).join('-->')).join('')
}
