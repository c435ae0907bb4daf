/**
 * Counts the letters and digits of a file without the readers' parsers: these counts show what a reader has lost. They
 * are estimates. Every character from U+00C0 on counts, except for signs and private ones.
 */

const [LESS, GREATER, SLASH, AMPERSAND, SEMICOLON, COLON] = [0x3c, 0x3e, 0x2f, 0x26, 0x3b, 0x3a] as const
const [EXCLAMATION, QUESTION] = [0x21, 0x3f] as const

const isAsciiLetter = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a)

// General punctuation and signs (U+2000 to U+2E7F), spaces and brackets of East Asian texts, the second halves of
// surrogate pairs, and private characters.
const isSign = (code: number): boolean =>
  code === 0xd7 ||
  code === 0xf7 ||
  (code >= 0x2000 && code < 0x2e80) ||
  (code >= 0x3000 && code < 0x3005) ||
  (code >= 0xdc00 && code < 0xf900) ||
  code >= 0xfff0

/** Counts the letters and digits of a text. */
export function estimateLetters(text: string): number {
  let count = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x80 ? isAsciiLetter(code) : code >= 0xc0 && !isSign(code)) count++
  }
  return count
}

// The first byte of each character in UTF-8. Those of most signs, and of private characters, do not count.
const [SIGN_LEAD, PRIVATE_LEAD] = [0xe2, 0xee]
const LETTER_BYTES = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(
    isAsciiLetter(byte) || (byte >= 0xc3 && byte <= 0xf4 && byte !== SIGN_LEAD && byte !== PRIVATE_LEAD),
  ),
)

/** Counts the letters and digits of bytes in UTF-8 or another extension of ASCII. */
export function countLetterBytes(bytes: Uint8Array, from = 0, to = bytes.length): number {
  let count = 0
  for (let i = from; i < to; i++) count += LETTER_BYTES[bytes[i]!]!
  return count
}

// Longer names are never in a set.
const MAX_NAME = 64

/** A set of names, which it finds in bytes without decoding them. */
export class NameFilter {
  /** The names by their length and first byte. */
  readonly #names: (readonly string[] | undefined)[] = new Array(MAX_NAME << 8)

  constructor(names: Iterable<string>) {
    for (const name of new Set(names)) {
      const key = (name.length << 8) | name.charCodeAt(0)
      this.#names[key] = [...(this.#names[key] ?? []), name]
    }
  }

  /** Returns the name at these bytes; null if the set lacks it. */
  find(bytes: Buffer, from: number, to: number): string | null {
    if (to - from >= MAX_NAME) return null
    const names = this.#names[((to - from) << 8) | bytes[from]!]
    if (names !== undefined) for (const name of names) if (isAt(name, bytes, from)) return name
    return null
  }
}

function isAt(name: string, bytes: Buffer, from: number): boolean {
  for (let i = 1; i < name.length; i++) if (bytes[from + i] !== name.charCodeAt(i)) return false
  return true
}

export interface MarkupEvents {
  /** Names of the tags that `tag` handles, without their prefix. */
  readonly names: NameFilter
  /** Handles a tag by its local name. */
  tag(name: string, kind: 'start' | 'end' | 'empty', from: number, to: number): void
  /** Handles a text between two tags, which has this many letters. */
  text(letters: number): void
  /** True to stop: the rest of the markup, of this many bytes, does not matter. */
  isDone?(rest: number): boolean
}

/**
 * Scans markup for tags and texts. A tag ends at its first `>`: quotes without an end hide nothing. Only comments
 * and instructions are left out.
 */
export function scanMarkup(bytes: Buffer, events: MarkupEvents): void {
  for (let at = 0; at < bytes.length && events.isDone?.(bytes.length - at) !== true; ) {
    const open = bytes.indexOf(LESS, at)
    const end = open === -1 ? bytes.length : open
    if (end > at) {
      const letters = countText(bytes, at, end)
      if (letters > 0) events.text(letters)
    }
    if (open === -1) return
    at = scanTag(bytes, open, events)
  }
}

/** Scans a tag, a comment or the like; returns the position behind it. */
function scanTag(bytes: Buffer, open: number, events: MarkupEvents): number {
  const first = bytes[open + 1]
  if (first === EXCLAMATION && startsWith(bytes, open, '<!--')) return endOf(bytes, '-->', open)
  if (first === EXCLAMATION && startsWith(bytes, open, CDATA)) {
    const end = endOf(bytes, ']]>', open)
    const letters = countLetterBytes(bytes, open + CDATA.length, end)
    if (letters > 0) events.text(letters)
    return end
  }
  if (first === EXCLAMATION || first === QUESTION) return findTagEnd(bytes, open)
  const isEnd = first === SLASH
  let from = open + (isEnd ? 2 : 1)
  let to = from
  for (; !endsName(bytes[to]); to++) if (bytes[to] === COLON) from = to + 1
  // A sign of comparison is text.
  if (to === from) return open + 1
  const end = findTagEnd(bytes, to)
  const kind = isEnd ? 'end' : bytes[end - 2] === SLASH ? 'empty' : 'start'
  const name = events.names.find(bytes, from, to)
  if (name !== null) events.tag(name, kind, open, end)
  return end
}

/** Returns the position behind the next `>`. A loop is faster than a call, because most tags are short. */
function findTagEnd(bytes: Buffer, from: number): number {
  let at = from
  while (at < bytes.length && bytes[at] !== GREATER) at++
  return Math.min(at + 1, bytes.length)
}

const CDATA = '<![CDATA['
const endsName = (byte: number | undefined): boolean =>
  byte === undefined || byte <= 0x20 || byte === SLASH || byte === GREATER || byte === LESS

const startsWith = (bytes: Buffer, at: number, text: string): boolean =>
  bytes.toString('latin1', at, at + text.length) === text

function endOf(bytes: Buffer, text: string, from: number): number {
  const at = bytes.indexOf(text, from, 'latin1')
  return at === -1 ? bytes.length : at + text.length
}

// Named characters that are letters end so: `&auml;`, `&eacute;`, `&szlig;`.
const LETTER_NAME = /^[a-z]+(uml|acute|grave|circ|tilde|cedil|ring|slash|lig)$/i
const MAX_REFERENCE = 12

/** Counts the letters of a text with character references. */
function countText(bytes: Buffer, from: number, to: number): number {
  let count = 0
  for (let i = from; i < to; i++) {
    const byte = bytes[i]!
    count += LETTER_BYTES[byte]!
    if (byte !== AMPERSAND) continue
    const end = findReferenceEnd(bytes, i + 1, to)
    if (end === null) continue
    count += Number(isLetterReference(bytes.toString('latin1', i + 1, end)))
    i = end
  }
  return count
}

function findReferenceEnd(bytes: Buffer, from: number, to: number): number | null {
  const max = Math.min(to, from + MAX_REFERENCE)
  for (let i = from; i < max; i++) if (bytes[i] === SEMICOLON) return i
  return null
}

function isLetterReference(name: string): boolean {
  if (name[0] !== '#') return LETTER_NAME.test(name)
  const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
  return code < 0x80 ? isAsciiLetter(code) : code >= 0xc0 && !isSign(code)
}
