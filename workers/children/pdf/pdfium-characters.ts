/** Puts the characters that PDFium finds on a page into typing order and form. */
import type { Native } from './pdfium-native.ts'

/** A page's text in PDFium, with scratch memory at `at` for the properties of one character. */
export interface CharacterSource {
  readonly native: Native
  readonly text: number
  readonly at: number
}

/** A page's characters, as code points or UTF-16 units. */
export interface PageCharacters {
  readonly codes: ArrayLike<number>
  slice(from: number, to: number): string
  /** Returns PDFium's index of the character at index `i`. */
  numberOf(i: number): number
}

/**
 * Returns the first `count` characters of a page, with accents and Arabic ligatures in typing order. A character that is
 * drawn several times in one place counts once.
 */
export function readCharacters(source: CharacterSource, count: number): PageCharacters {
  const found = readFoundCharacters(source, count)
  const repeated = mayRepeat(found.codes) ? findRepeats(source, found.codes) : []
  return repeated.length > 0 || REORDERED_TEXT_PATTERN.test(found.slice(0, count))
    ? putInTypingOrder(source, found, repeated)
    : found
}

/** True if two double characters follow each other, which few words have: `coffee`, but also `hhaarrbboouurr`. */
function mayRepeat(codes: ArrayLike<number>): boolean {
  for (let i = 3; i < codes.length; i++)
    if (codes[i] === codes[i - 1] && codes[i - 2] === codes[i - 3] && !endsPiece(codes[i]!)) return true
  return false
}

// Largest shift between the copies of a letter, as a share of its size. Even the narrowest letter is twice as wide.
const MAX_REPEAT_SHIFT = 0.1

/**
 * Finds the characters that are drawn again in the place of the one before, to look bold. PDFium finds them only if
 * hardly any text lies between.
 */
function findRepeats(source: CharacterSource, codes: ArrayLike<number>): readonly number[] {
  const repeats: number[] = []
  for (let i = 1; i < codes.length; i++) {
    if (codes[i] !== codes[i - 1] || endsPiece(codes[i]!) || isMark(codes[i]!)) continue
    const [before, box] = [measureBox(source, i - 1), measureBox(source, i)]
    const shift = Math.max(Math.abs(box.start - before.start), Math.abs(box.base - before.base))
    if (shift < MAX_REPEAT_SHIFT * box.size) repeats.push(i)
  }
  return repeats
}

/**
 * Reads all characters in one call. If characters and UTF-16 units differ, reads them one by one, which takes ten times
 * as long.
 */
function readFoundCharacters({ native, text }: CharacterSource, count: number): PageCharacters {
  const numberOf = (i: number): number => i
  const at = native.wasmExports.malloc(2 * (count + 1))
  try {
    if (at !== 0 && native._FPDFText_GetText(text, 0, count, at) === count + 1) {
      const bytes = native.HEAPU8.slice(at, at + 2 * count)
      // Not a TextDecoder: it would replace an unpaired surrogate.
      const whole = Buffer.from(bytes.buffer).toString('utf16le')
      return { codes: new Uint16Array(bytes.buffer), slice: (from, to) => whole.slice(from, to), numberOf }
    }
  } finally {
    native.wasmExports.free(at)
  }
  const codes = new Int32Array(count)
  for (let i = 0; i < count; i++) codes[i] = native._FPDFText_GetUnicode(text, i)
  return { codes, slice: (from, to) => codesToString(codes.subarray(from, to)), numberOf }
}

function codesToString(codes: Int32Array): string {
  let text = ''
  for (const code of codes) if (code > 0 && code <= 0x10ffff) text += String.fromCodePoint(code)
  return text
}

export const isHyphen = (code: number): boolean => code === 2 || code === 0xfffe
export const endsPiece = (code: number): boolean =>
  code === 10 || code === 13 || code === 32 || isHyphen(code)

// Spacing accents and their combining forms. TeX, and fonts without accented letters, draw accents as separate
// characters.
const ACCENTS = new Map([
  [0x60, 0x300],
  [0xb4, 0x301],
  [0x2c6, 0x302],
  [0x2dc, 0x303],
  [0xaf, 0x304],
  [0x2c9, 0x304],
  [0x2d8, 0x306],
  [0x2d9, 0x307],
  [0xa8, 0x308],
  [0x2da, 0x30a],
  [0x2dd, 0x30b],
  [0x2c7, 0x30c],
  [0xb8, 0x327],
  [0x2db, 0x328],
])
const DOTLESS_LETTERS = new Map([
  [0x131, 0x69],
  [0x237, 0x6a],
])
const REORDERED_TEXT_PATTERN = /[`´¨¯¸ˆˇˉ˘-˝]|[\u0300-\u036f]|[\u064b-\u0652]|[\u0622-\u0627]\u0644|\s\p{M}/u

export const isMark = (code: number): boolean =>
  (code >= 0x300 && code < 0x370) || (code >= 0x64b && code < 0x653)
/** True for a mark of a script whose marks follow their letter, such as Thai. PDFium may infer a space before it. */
const isVowelSign = (code: number): boolean =>
  code >= 0x900 && code < 0x1e00 && /^\p{M}/u.test(String.fromCodePoint(code))
const LAM = 0x644
const ALEFS = new Set([0x622, 0x623, 0x625, 0x627])

/**
 * Moves accents behind the letters they are drawn over, puts the letters of Arabic ligatures in order, and drops the
 * `repeated` characters.
 */
function putInTypingOrder(
  source: CharacterSource,
  { codes }: PageCharacters,
  repeated: readonly number[],
): PageCharacters {
  const { over, gone } = findMarks(source, codes)
  for (const i of repeated) gone.add(i)
  const numbers: number[] = []
  const kept: number[] = []
  for (let i = 0; i < codes.length; i++) {
    if (gone.has(i)) continue
    const marks = over.get(i) ?? []
    kept.push(marks.length > 0 ? (DOTLESS_LETTERS.get(codes[i]!) ?? codes[i]!) : codes[i]!)
    numbers.push(i)
    for (const mark of marks) {
      kept.push(ACCENTS.get(codes[mark]!) ?? codes[mark]!)
      numbers.push(mark)
    }
  }
  unfoldLigatures(source, kept, numbers)
  const all = Int32Array.from(kept)
  const slice = (from: number, to: number): string => codesToString(all.subarray(from, to)).normalize('NFC')
  return { codes: all, slice, numberOf: (i) => numbers[i]! }
}

/**
 * Restores the order of lam-alef ligatures. PDFium reverses Arabic lines letter by letter, including the two letters of
 * a ligature, which share one position.
 */
function unfoldLigatures(source: CharacterSource, codes: number[], numbers: readonly number[]): void {
  for (let i = 0; i + 1 < codes.length; i++) {
    if (codes[i + 1] !== LAM || !ALEFS.has(codes[i]!)) continue
    if (measureBox(source, numbers[i]!).start !== measureBox(source, numbers[i + 1]!).start) continue
    codes.splice(i, 2, LAM, codes[i]!)
  }
}

/** Finds the marks over each letter (`over`), and the characters to drop from their old positions (`gone`). */
function findMarks(
  source: CharacterSource,
  codes: ArrayLike<number>,
): { over: Map<number, number[]>; gone: Set<number> } {
  const over = new Map<number, number[]>()
  const gone = new Set<number>()
  for (let i = 0; i < codes.length; i++) {
    if (isVowelSign(codes[i]!)) for (let j = i - 1; j >= 0 && endsPiece(codes[j]!); j--) gone.add(j)
    const isAlone = isMark(codes[i]!) && endsPiece(codes[i - 1] ?? 32)
    if (!isAlone && !ACCENTS.has(codes[i]!)) continue
    const base = findBaseLetter(source, codes, i)
    if (base === null) continue
    over.set(base, [...(over.get(base) ?? []), i])
    gone.add(i)
    // In Unicode, a standalone mark follows a space that carries the mark. Such a space is not a gap between letters.
    if (isAlone && i > 0 && covers(measureBox(source, base), measureBox(source, i - 1).start)) gone.add(i - 1)
    if (Math.abs(base - i) <= MAX_NEAR_DISTANCE)
      for (let j = Math.min(base, i) + 1; j < Math.max(base, i); j++) gone.add(j)
  }
  return { over, gone }
}

// PDFium may infer a space or a line end between an accent and its letter. It reports an accent over a capital letter
// only at the end of its part of the line, so the search also looks far back.
const MAX_NEAR_DISTANCE = 3
const MAX_FAR_DISTANCE = 200

/** Finds the letter that a mark is drawn over, looking just after the mark, then back; null if there is none. */
function findBaseLetter(source: CharacterSource, codes: ArrayLike<number>, mark: number): number | null {
  const { start, end, base, size } = measureBox(source, mark)
  const middle = (start + end) / 2
  const isBelow = (i: number): boolean => {
    if (!isLetter(codes[i]!)) return false
    const box = measureBox(source, i)
    return covers(box, middle) && Math.abs(box.base - base) < size / 2
  }
  let next = mark + 1
  while (next < codes.length && next - mark < MAX_NEAR_DISTANCE && endsPiece(codes[next]!)) next++
  if (next < codes.length && isBelow(next)) return next
  for (let i = mark - 1; i >= 0 && i >= mark - MAX_FAR_DISTANCE; i--) if (isBelow(i)) return i
  return null
}

const isLetter = (code: number): boolean =>
  (code >= 65 && code <= 90) ||
  (code >= 97 && code <= 122) ||
  (code > 0x7f && /\p{L}/u.test(String.fromCodePoint(code)))

interface Box {
  readonly start: number
  readonly end: number
  readonly base: number
  readonly size: number
}

const covers = ({ start, end }: Box, place: number): boolean => start <= place && place < end

/** Returns a character's position along its line, in points. */
function measureBox({ native, text, at }: CharacterSource, i: number): Box {
  const angle = -native._FPDFText_GetCharAngle(text, i)
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
  native._FPDFText_GetCharOrigin(text, i, at, at + 8)
  native._FPDFText_GetLooseCharBox(text, i, at + 16)
  const { HEAPF32: boxes, HEAPF64: origins } = native
  const box = (at + 16) >> 2
  const [x, y] = [origins[at >> 3]!, origins[(at >> 3) + 1]!]
  const [left, top, right, bottom] = [boxes[box]!, boxes[box + 1]!, boxes[box + 2]!, boxes[box + 3]!]
  const width = Math.abs((right - left) * cos) + Math.abs((top - bottom) * sin)
  const start = x * cos + y * sin
  return {
    start,
    end: start + width,
    base: y * cos - x * sin,
    size: Math.abs((right - left) * sin) + Math.abs((top - bottom) * cos),
  }
}
