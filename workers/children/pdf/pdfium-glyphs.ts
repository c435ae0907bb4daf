/** Converts the characters that PDFium finds on a page to positioned pieces of text. */
import type { Piece } from './layout.ts'
import {
  type CharacterSource,
  endsPiece,
  isHyphen,
  isMark,
  type PageCharacters,
  readCharacters,
} from './pdfium-characters.ts'
import type { Native } from './pdfium-native.ts'

/** Reads a page's text, at most about `limit` characters. Null if PDFium cannot map its glyphs to characters. */
export function readPieces(native: Native, page: number, limit: number): readonly Piece[] | null {
  const text = native._FPDFText_LoadPage(page)
  if (text === 0) return null
  const at = native.wasmExports.malloc(32)
  try {
    const source = { native, text, at }
    const characters = readCharacters(source, Math.max(0, Math.min(native._FPDFText_CountChars(text), limit)))
    if (isUnmapped(characters.codes)) return null
    const turn = (native._FPDFPage_GetRotation(page) * Math.PI) / 2
    return sortTurnedLines(splitIntoWords(source, characters), turn)
  } finally {
    native.wasmExports.free(at)
    native._FPDFText_ClosePage(text)
  }
}

/** Counts the characters of a page except for spaces, at most `limit`, whether they can be mapped or not. */
export function countCharacters(native: Native, page: number, limit: number): number {
  const text = native._FPDFText_LoadPage(page)
  if (text === 0) return 0
  let count = 0
  const all = Math.min(limit, native._FPDFText_CountChars(text))
  for (let i = 0; i < all; i++)
    if (native._FPDFText_IsGenerated(text, i) === 0 && native._FPDFText_GetUnicode(text, i) !== 32) count++
  native._FPDFText_ClosePage(text)
  return count
}

/**
 * True if the font does not map its glyphs to characters. PDFium then returns the font's own codes, mostly small numbers.
 * An unmapped ligature is a zero within a word.
 */
export function isUnmapped(codes: ArrayLike<number>): boolean {
  let strange = 0
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!
    if (code === 0xfffd || (code < 0x20 && code !== 2 && code !== 9 && code !== 10 && code !== 13)) strange++
    if (code === 0 && isLetter(codes[i - 1]) && isLetter(codes[i + 1])) return true
  }
  return strange > codes.length / 100
}

const isLetter = (code = 0): boolean => (code >= 65 && code <= 90) || (code >= 97 && code <= 122)

// Multiples of the size. Two parts of a turned line that are closer than this are one word that PDFium has split.
const MAX_SPLIT_GAP = 0.15
const MAX_LINE_SHIFT = 0.3

/**
 * Sorts the words that do not run to the right on the displayed page by angle, line and place, and puts them last.
 * PDFium mixes up such lines.
 */
function sortTurnedLines(words: readonly Piece[], turn: number): readonly Piece[] {
  const isTurned = ({ angle }: Piece): boolean => Math.cos(angle - turn) < 0.7
  const isSameAngle = (a: Piece, b: Piece): boolean => Math.abs(a.angle - b.angle) < 0.01
  const lines: Piece[][] = []
  for (const word of words
    .filter(isTurned)
    .sort((a, b) => (isSameAngle(a, b) ? b.base - a.base : a.angle - b.angle))) {
    const [first] = lines.at(-1) ?? []
    if (first && isSameAngle(first, word) && first.base - word.base < MAX_LINE_SHIFT * word.size)
      lines.at(-1)!.push(word)
    else lines.push([word])
  }
  if (lines.length === 0) return words
  return [...words.filter((word) => !isTurned(word)), ...lines.flatMap(sortLine)]
}

function sortLine(words: readonly Piece[]): Piece[] {
  const line = words.toSorted((a, b) => a.start - b.start)
  return line.map((word, i) => {
    const next = line[i + 1]
    const isSplit = next !== undefined && next.start - word.end < MAX_SPLIT_GAP * word.size
    return { ...word, text: isSplit ? word.text.trimEnd() : word.text, endsLine: next === undefined }
  })
}

// The number of characters sampled to judge a page's spaces.
const SAMPLE_COUNT = 40

/** True if PDFium inferred most spaces from gaps. It misses gaps narrower than a quarter of the size. */
function hasFoundSpaces({ native, text }: CharacterSource, { codes, numberOf }: PageCharacters): boolean {
  let found = 0
  let seen = 0
  for (let i = 1; i < codes.length && seen < SAMPLE_COUNT; i++) {
    if (codes[i] !== 32) continue
    seen++
    found += native._FPDFText_IsGenerated(text, numberOf(i))
  }
  return found > seen / 2
}

/**
 * Splits characters into words, each with a trailing space. PDFium itself inserts spaces for gaps, so a word may need
 * further splits.
 */
function splitIntoWords(source: CharacterSource, characters: PageCharacters): Piece[] {
  const { codes, numberOf } = characters
  const pieces: Piece[] = []
  const foundSpaces = hasFoundSpaces(source, characters)
  for (let from = 0; from < codes.length; ) {
    let to = from
    while (to < codes.length && !endsPiece(codes[to]!) && !(to > from && isScriptBoundary(codes, to))) to++
    // PDFium replaces an assumed hyphen at a line's end with a marker and omits the line end.
    let hyphen = false
    let endsLine = false
    let next = to
    for (; next < codes.length && endsPiece(codes[next]!); next++) {
      const code = codes[next]!
      if (isHyphen(code)) hyphen = true
      if (code === 10 || code === 13) endsLine = true
    }
    if (to > from || hyphen) {
      const last = Math.max(from, to - 1)
      const whole = measurePlace(source, numberOf(from), numberOf(last))
      const ends = hyphen ? '-' : ' '
      const cuts =
        foundSpaces || mayJoinWords(whole, to - from) ? findCuts(source, characters, from, to, whole) : []
      let start = from
      for (const end of cuts) {
        const place = measurePlace(source, numberOf(start), numberOf(end - 1))
        pieces.push(pieceOf(place, `${characters.slice(start, end)} `, false))
        start = end
      }
      const place = cuts.length === 0 ? whole : measurePlace(source, numberOf(start), numberOf(last))
      pieces.push(pieceOf(place, characters.slice(start, to) + ends, hyphen || endsLine))
    }
    from = next
  }
  return pieces
}

// Lists each property: a spread is slow, and a page has thousands of pieces.
const pieceOf = ({ angle, start, end, base, size }: WordExtent, text: string, endsLine: boolean): Piece => ({
  text,
  angle,
  start,
  end,
  base,
  size,
  endsLine,
  ignoresGap: false,
})

// True if a word begins at `i` without a space. In a right-to-left line the file may put the space at the other end of
// a Latin word.
const isScriptBoundary = (codes: ArrayLike<number>, i: number): boolean =>
  (isRightToLeft(codes[i - 1]!) && isLetter(codes[i])) || (isLetter(codes[i - 1]) && isRightToLeft(codes[i]!))
const isRightToLeft = (code: number): boolean => code >= 0x5d0 && code < 0x700

type WordExtent = Pick<Piece, 'angle' | 'start' | 'end' | 'base' | 'size'> & {
  /** Distance of the last character's middle above the first character's baseline. */
  readonly beside: number
}

/** Measures the extent from the first character's origin to the far end of the last character's box, in points. */
function measurePlace({ native, text, at }: CharacterSource, from: number, to: number): WordExtent {
  // Angles are counterclockwise here and clockwise in PDFium.
  const angle = -native._FPDFText_GetCharAngle(text, from)
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
  native._FPDFText_GetCharOrigin(text, from, at, at + 8)
  native._FPDFText_GetLooseCharBox(text, to, at + 16)
  // Read the view on each call: growing the memory replaces it.
  const heap = native.HEAPF32
  const box = (at + 16) >> 2
  const [x, y] = [native.HEAPF64[at >> 3]!, native.HEAPF64[(at >> 3) + 1]!]
  const [left, top, right, bottom] = [heap[box]!, heap[box + 1]!, heap[box + 2]!, heap[box + 3]!]
  const [wide, high] = [(right - left) / 2, (top - bottom) / 2]
  const [middleX, middleY] = [(left + right) / 2, (top + bottom) / 2]
  const base = y * cos - x * sin
  return {
    angle,
    start: x * cos + y * sin,
    end: middleX * cos + middleY * sin + Math.abs(wide * cos) + Math.abs(high * sin),
    base,
    size: 2 * (Math.abs(high * cos) + Math.abs(wide * sin)) || 1,
    beside: middleY * cos - middleX * sin - base,
  }
}

// Limits of a plausible word: its number of characters, and its mean character width as a multiple of the font size.
const MAX_WORD_CHARACTERS = 24
const MAX_WIDTH_RATIO = 1.3

/** True if PDFium's word of `count` characters may join words of different lines, columns or fields. */
function mayJoinWords({ start, end, size, beside }: WordExtent, count: number): boolean {
  return (
    Math.abs(beside) > size ||
    end < start ||
    end - start > MAX_WIDTH_RATIO * size * count ||
    count > MAX_WORD_CHARACTERS
  )
}

// Multiples of the character box height, which is a quarter larger than the font size. Superscripts stay within 0.7.
const MAX_BASELINE_SHIFT = 0.7
const MAX_WORD_GAP = 0.6
const NARROW_SPACE = 0.08

/**
 * Returns the indexes of characters that begin another word. Skips right-to-left scripts and scripts with positioned
 * marks. Ignores gaps in East Asian text, which has no gaps between words but may run downwards.
 */
function findCuts(
  source: CharacterSource,
  characters: PageCharacters,
  from: number,
  to: number,
  whole: WordExtent,
): number[] {
  const { codes } = characters
  let hasGaps = true
  for (let i = from; i < to; i++) {
    if ((codes[i]! >= 0x590 && codes[i]! < 0x1e00) || (codes[i]! >= 0xfb1d && codes[i]! < 0xff00)) return []
    if (codes[i]! >= 0x2e80) hasGaps = false
  }
  const gaps: number[] = []
  const starts: number[] = []
  const cuts: number[] = []
  forEachGap(source, characters, from, to, whole, (i, gap, rise) => {
    if (
      Math.abs(rise) > MAX_BASELINE_SHIFT * whole.size ||
      (hasGaps && Math.abs(gap) > MAX_WORD_GAP * whole.size)
    )
      cuts.push(i)
    gaps.push(gap)
    starts.push(i)
  })
  const narrow = NARROW_SPACE * whole.size
  if (!hasGaps || cuts.length > 0 || !gaps.some((gap) => gap > narrow)) return cuts
  const usual = Math.max(0, gaps.toSorted((a, b) => a - b)[gaps.length >> 1]!)
  return gaps.flatMap((gap, i) => (gap - usual > narrow ? [starts[i]!] : []))
}

/** Reports each character's distance from its predecessor, along (`gap`) and across (`rise`) the line. */
function forEachGap(
  { native, text, at }: CharacterSource,
  { codes, numberOf }: PageCharacters,
  from: number,
  to: number,
  { angle }: WordExtent,
  tell: (i: number, gap: number, rise: number) => void,
): void {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
  const [box, origin] = [(at + 16) >> 2, at >> 3]
  let lastStart = 0
  let lastEnd = 0
  let lastBase = 0
  for (let i = from; i < to; i++) {
    if (isMark(codes[i]!)) continue
    native._FPDFText_GetCharOrigin(text, numberOf(i), at, at + 8)
    native._FPDFText_GetLooseCharBox(text, numberOf(i), at + 16)
    const { HEAPF32: boxes, HEAPF64: origins } = native
    const [x, y] = [origins[origin]!, origins[origin + 1]!]
    const [left, top, right, bottom] = [boxes[box]!, boxes[box + 1]!, boxes[box + 2]!, boxes[box + 3]!]
    const [base, start] = [y * cos - x * sin, x * cos + y * sin]
    // The characters of a ligature share its position.
    if (i > from) tell(i, start === lastStart ? 0 : start - lastEnd, base - lastBase)
    lastStart = start
    lastEnd =
      ((left + right) * cos +
        (top + bottom) * sin +
        Math.abs((right - left) * cos) +
        Math.abs((top - bottom) * sin)) /
      2
    lastBase = base
  }
}
