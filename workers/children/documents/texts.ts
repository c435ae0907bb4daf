/** Text as it is stored: decoded from text files, and without what PostgreSQL refuses or nobody searches for. */

export const MAX_CHARACTERS = 2_000_000

// Ligatures, and presentation forms of Hebrew and Arabic letters: nobody types them to search for a word.
const WRITTEN_FORMS = /[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufbff\ufdf0-\ufdfb\ufe70-\ufefc]/g

/** PostgreSQL stores neither NUL nor half a surrogate pair. */
export function tidy(text: string): { text: string; detail: string | null } {
  const tooLong = text.length > MAX_CHARACTERS
  const head = text.slice(0, MAX_CHARACTERS).replaceAll('\0', '')
  const whole = head.isWellFormed() ? head : head.replace(/\p{Surrogate}/gu, '')
  const kept = whole.replace(WRITTEN_FORMS, (form) => form.normalize('NFKC'))
  const detail = tooLong ? `Only the first ${MAX_CHARACTERS} characters were kept` : null
  return { text: kept, detail }
}

/** Whether there are words, not only the private, unassigned or replacement characters of a font without a mapping. */
export function hasWords(text: string): boolean {
  const sample = text.trimStart().slice(0, 2000)
  // All visible ASCII is good; testing for the classes of Unicode takes a hundred times as long.
  if (/^[\x20-\x7e\s]*$/.test(sample)) return sample !== ''
  const all = sample.match(/\S/gu)?.length ?? 0
  const good = sample.match(/[\p{L}\p{M}\p{N}\p{P}\p{Sm}\p{Sc}\p{Sk}]/gu)?.length ?? 0
  return good > all / 2
}

// A page of print has 2,000 letters; a stamp or a header of a scan has fewer than this.
const FEW_LETTERS = 200

/** How many letters and digits there are. */
export const lettersIn = (text: string): number => text.match(/[\p{L}\p{N}]/gu)?.length ?? 0

const MORE_THAN_STAMP = new RegExp(`^[^\\p{L}\\p{N}]*(?:[\\p{L}\\p{N}][^\\p{L}\\p{N}]*){${FEW_LETTERS}}`, 'u')

/** Whether a page of print has more to say: the text is hardly more than a stamp. */
export const isShort = (text: string): boolean => !MORE_THAN_STAMP.test(text)

const MIN_ODD = 3
const MAX_ODD = 0.1

/** Whether a bad reader has written it: many words have digits between their letters, as `lnv0ice` has. */
export function isPoor(text: string): boolean {
  // Nearly every page has none, which is found out in a fraction of the time.
  if (!/\p{Ll}\d+\p{Ll}/u.test(text)) return false
  const words = text.match(/\p{L}[\p{L}\p{N}]{2,}/gu) ?? []
  const odd = words.filter((word) => /\p{Ll}\d+\p{Ll}/u.test(word)).length
  return odd >= MIN_ODD && odd > MAX_ODD * words.length
}

/**
 * UTF-8 or UTF-16 by its byte order mark, what the file `declared`, UTF-8, else windows-1252; every kind of line end becomes a
 * line feed.
 */
export function decodeText(bytes: Uint8Array, declared?: string): string {
  // No encoding needs more than four bytes per character; the rest would be cut off anyway.
  const head = bytes.subarray(0, 4 * (MAX_CHARACTERS + 2))
  const first = encodingOf(head, declared)
  const text = decode(head, first) ?? decode(head, 'utf-8') ?? decode(head, 'windows-1252') ?? ''
  return text.replace(/\r\n?/g, '\n')
}

/** Each byte as a character: for looking at marks that are ASCII before the encoding is known. */
export const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')

/** All of an XML file, in the encoding of its byte order mark or declaration, else as UTF-8 (XML 1.0, appendix F). */
export function decodeXml(bytes: Uint8Array): string {
  const start = latin1(bytes.subarray(0, 200))
  const declared = /^<\?xml[^>]*\sencoding\s*=\s*["']([\w-]+)/.exec(start)?.[1]
  return decode(bytes, encodingOf(bytes, declared)) ?? new TextDecoder().decode(bytes)
}

/** A byte order mark tells more than what is declared. What declares UTF-16 in ASCII is not: it once was a string in memory. */
function encodingOf(bytes: Uint8Array, declared = 'utf-8'): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  const isMarked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return isMarked || /utf-16|unicode|ucs-2/i.test(declared) ? 'utf-8' : declared
}

function decode(bytes: Uint8Array, encoding: string): string | null {
  try {
    // As a stream: a character cut in half at the end is no error.
    return new TextDecoder(encoding, { fatal: /^utf-?8$/i.test(encoding) }).decode(bytes, { stream: true })
  } catch {
    return null
  }
}
