/** Finds the places of words on a page, to mark them on its image. */
import type { PlacedWord } from '../../../tasks/context.ts'
import { MAX_PLACED_WORDS, placeWord } from '../documents/placed-words.ts'
import { endsPiece } from './pdfium-characters.ts'
import type { Native } from './pdfium-native.ts'

const MAX_CHARACTERS = 50_000
// PDFium returns places in whole units, so the page is measured as if it were this large.
const UNITS = 100_000

/** Returns the words of a page with their boxes, in the order of the page's text. */
export function placeWords(native: Native, page: number): readonly PlacedWord[] {
  const text = native._FPDFText_LoadPage(page)
  if (text === 0) return []
  const at = native.wasmExports.malloc(32)
  try {
    const words: PlacedWord[] = []
    const count = Math.min(MAX_CHARACTERS, native._FPDFText_CountChars(text))
    let from = 0
    for (let i = 0; i <= count && words.length < MAX_PLACED_WORDS; i++) {
      if (i < count && !endsPiece(native._FPDFText_GetUnicode(text, i))) continue
      if (i > from) words.push(readWord(native, { page, text, at }, from, i))
      from = i + 1
    }
    return words.filter(({ text: word, width }) => width > 0 && word !== '')
  } finally {
    native.wasmExports.free(at)
    native._FPDFText_ClosePage(text)
  }
}

interface Source {
  readonly page: number
  readonly text: number
  readonly at: number
}

function readWord(native: Native, source: Source, from: number, to: number): PlacedWord {
  let word = ''
  const [xs, ys]: [number[], number[]] = [[], []]
  for (let i = from; i < to; i++) {
    const code = native._FPDFText_GetUnicode(source.text, i)
    if (code > 0 && code <= 0x10ffff) word += String.fromCodePoint(code)
    if (native._FPDFText_GetLooseCharBox(source.text, i, source.at) === 0) continue
    const box = native.HEAPF32.slice(source.at >> 2, (source.at >> 2) + 4)
    for (const [x, y] of [
      [box[0]!, box[1]!],
      [box[2]!, box[3]!],
    ] as const) {
      const place = toShares(native, source, x, y)
      xs.push(place.x)
      ys.push(place.y)
    }
  }
  const [left, top, right, bottom] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)]
  return placeWord(word, { left, top, right, bottom })
}

/** Converts a point to shares of the page's width and height, from its left and top as displayed. */
function toShares(native: Native, { page, at }: Source, x: number, y: number): { x: number; y: number } {
  native._FPDF_PageToDevice(page, 0, 0, UNITS, UNITS, 0, x, y, at + 16, at + 20)
  const places = new Int32Array(native.HEAPU8.buffer, at + 16, 2)
  return { x: places[0]! / UNITS, y: places[1]! / UNITS }
}
