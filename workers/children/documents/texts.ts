import { decodeLatin1 } from '../../../tasks/formats/encodings.ts'
import { escapeLine } from '../markdown/escape.ts'

/** Decodes the parts of archives, and cleans text for storage in PostgreSQL and for search. */

export const MAX_CHARACTERS = 2_000_000

// Matches ligatures, and presentation forms of Hebrew and Arabic letters: search queries do not contain them.
const PRESENTATION_FORMS = /[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufbff\ufdf0-\ufdfb\ufe70-\ufefc]/g

/**
 * Truncates a text to `MAX_CHARACTERS` and makes it storable: PostgreSQL stores neither NUL nor unpaired surrogates.
 * `detail` reports the truncation; null if there was none.
 */
export function cleanText(text: string): { text: string; detail: string | null } {
  const tooLong = text.length > MAX_CHARACTERS
  const head = text.slice(0, MAX_CHARACTERS).replaceAll('\0', '')
  const whole = head.isWellFormed() ? head : head.replace(/\p{Surrogate}/gu, '')
  const kept = whole.replace(PRESENTATION_FORMS, (form) => form.normalize('NFKC'))
  const detail = tooLong ? `Only the first ${MAX_CHARACTERS} characters were kept` : null
  return { text: kept, detail }
}

/** Makes Markdown storable, and truncates it to `MAX_CHARACTERS` at the end of a line. */
export function cleanMarkdown(markdown: string | null): string | null {
  if (markdown === null) return null
  const { text, detail } = cleanText(markdown)
  const end = text.lastIndexOf('\n')
  return detail === null || end < MAX_CHARACTERS / 2 ? text : text.slice(0, end)
}

/** Appends paragraphs of plain text to Markdown. */
export const appendParagraphs = (markdown: string | null, texts: readonly string[]): string | null =>
  markdown === null
    ? null
    : cleanMarkdown(
        [markdown, ...texts.map((text) => text.split(/\n+/).map(escapeLine).join('\n'))].join('\n\n'),
      )

/** True if most characters are real. A font without a mapping yields private, unassigned or replacement characters. */
export function hasWords(text: string): boolean {
  const sample = text.trimStart().slice(0, 2000)
  // Pure ASCII needs no test of Unicode classes, which takes a hundred times as long.
  if (/^[\x20-\x7e\s]*$/.test(sample)) return sample !== ''
  const all = sample.match(/\S/gu)?.length ?? 0
  const good = sample.match(/[\p{L}\p{M}\p{N}\p{P}\p{Sm}\p{Sc}\p{Sk}]/gu)?.length ?? 0
  return good > all / 2
}

// Letters of the shortest text that may be a whole page. A printed page has 2,000; a stamp or the header of a scan has
// fewer than this.
const MIN_PAGE_LETTERS = 200

/** Counts letters and digits. */
export const countLetters = (text: string): number => text.match(/[\p{L}\p{N}]/gu)?.length ?? 0

const MIN_PAGE_LETTERS_PATTERN = new RegExp(
  `^[^\\p{L}\\p{N}]*(?:[\\p{L}\\p{N}][^\\p{L}\\p{N}]*){${MIN_PAGE_LETTERS}}`,
  'u',
)

/** True if the text has too few letters for a printed page: it may be only a stamp. */
export const isShortText = (text: string): boolean => !MIN_PAGE_LETTERS_PATTERN.test(text)

const MIN_ODD_WORDS = 3
const MAX_ODD_SHARE = 0.1

/** True if the text looks like bad OCR: many words have digits between their letters, such as `lnv0ice`. */
export function isPoorText(text: string): boolean {
  // Nearly every page has no such word, and this test takes a fraction of the time.
  if (!/\p{Ll}\d+\p{Ll}/u.test(text)) return false
  const words = text.match(/\p{L}[\p{L}\p{N}]{2,}/gu) ?? []
  const odd = words.filter((word) => /\p{Ll}\d+\p{Ll}/u.test(word)).length
  return odd >= MIN_ODD_WORDS && odd > MAX_ODD_SHARE * words.length
}

/** Decodes an XML file by its byte order mark or declaration, else as UTF-8 (XML 1.0, appendix F). */
export function decodeXml(bytes: Uint8Array): string {
  const start = decodeLatin1(bytes.subarray(0, 200))
  const declared = /^<\?xml[^>]*\sencoding\s*=\s*["']([\w-]+)/.exec(start)?.[1]
  return tryDecode(bytes, encodingOf(bytes, declared)) ?? new TextDecoder().decode(bytes)
}

/**
 * Returns the encoding of a text. A byte order mark overrides the declaration. A declaration that is readable as ASCII
 * cannot mean UTF-16, so such a text counts as UTF-8.
 */
function encodingOf(bytes: Uint8Array, declared = 'utf-8'): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  const isMarked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return isMarked || /utf-16|unicode|ucs-2/i.test(declared) ? 'utf-8' : declared
}

function tryDecode(bytes: Uint8Array, encoding: string): string | null {
  try {
    // `stream` accepts an incomplete character at the end.
    return new TextDecoder(encoding, { fatal: /^utf-?8$/i.test(encoding) }).decode(bytes, { stream: true })
  } catch {
    return null
  }
}
