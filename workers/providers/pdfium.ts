/** The text layer of PDFs by Chrome's PDFium, compiled to WebAssembly. The only importer of `@embedpdf/pdfium`. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { Unreadable } from './images.ts'
import { type Piece, textFromPieces } from './layout.ts'

/**
 * A PDF as PDFium sees it. A quarter of the time that pdfjs takes over a page of text, which is why it is asked first;
 * what it can't open or has no letters for is left to pdfjs.
 */
export interface TextLayer {
  readonly pageCount: number
  /** Opens a page, counted from 1; null when it is damaged. */
  page(pageNumber: number): TextPage | null
  close(): void
}

export interface TextPage {
  /** In points, turned as the page says. */
  readonly width: number
  readonly height: number
  /**
   * The text in lines and paragraphs, at most about `limit` characters; null when PDFium can't tell its letters, or when
   * much of it is turned and `turned` does not ask for that, too.
   */
  text(limit: number, turned: boolean): string | null
  close(): void
}

// What emscripten puts on the module; the package's own wrappers cost five times the call.
interface Native {
  readonly HEAPU8: Uint8Array
  readonly HEAPF32: Float32Array
  readonly HEAPF64: Float64Array
  readonly wasmExports: { malloc(size: number): number; free(at: number): void }
  _FPDF_LoadMemDocument(at: number, size: number, password: number): number
  _FPDF_GetLastError(): number
  _FPDF_GetPageCount(document: number): number
  _FPDF_CloseDocument(document: number): void
  _FPDF_LoadPage(document: number, index: number): number
  _FPDF_GetPageWidthF(page: number): number
  _FPDF_GetPageHeightF(page: number): number
  _FPDF_ClosePage(page: number): void
  /** Quarter turns with the clock. */
  _FPDFPage_GetRotation(page: number): number
  _FPDFPage_GetAnnotCount(page: number): number
  /** Makes annotations part of the page's content; 1 when it has done so. */
  _FPDFPage_Flatten(page: number, usage: number): number
  _FPDFText_LoadPage(page: number): number
  _FPDFText_ClosePage(text: number): void
  _FPDFText_CountChars(text: number): number
  _FPDFText_GetUnicode(text: number, index: number): number
  /** Writes UTF-16 and a zero; answers how many units that are. */
  _FPDFText_GetText(text: number, index: number, count: number, at: number): number
  _FPDFText_GetCharAngle(text: number, index: number): number
  _FPDFText_GetCharOrigin(text: number, index: number, x: number, y: number): number
  _FPDFText_GetMatrix(text: number, index: number, matrix: number): number
  _FPDFText_GetLooseCharBox(text: number, index: number, rectangle: number): number
}

const PASSWORD_ERROR = 4
// Its memory never shrinks: past this the next document gets an instance of its own.
const MOST_IDLE_BYTES = 128 * 2 ** 20

let instance: Promise<Native> | null = null

/** Opens a PDF under the empty password; null when PDFium can't. Throws `Unreadable` when it needs a password. */
export async function openTextLayer(bytes: Uint8Array): Promise<TextLayer | null> {
  instance ??= start()
  const native = await instance
  const at = native.wasmExports.malloc(bytes.length)
  if (at === 0) return null
  native.HEAPU8.set(bytes, at)
  const document = native._FPDF_LoadMemDocument(at, bytes.length, 0)
  const close = (): void => {
    if (document !== 0) native._FPDF_CloseDocument(document)
    native.wasmExports.free(at)
    if (native.HEAPU8.length > MOST_IDLE_BYTES) instance = null
  }
  const pageCount = document === 0 ? 0 : native._FPDF_GetPageCount(document)
  if (pageCount > 0) return { pageCount, page: (n) => openPage(native, document, n - 1), close }
  const locked = document === 0 && native._FPDF_GetLastError() === PASSWORD_ERROR
  close()
  if (locked) throw new Unreadable('The document is encrypted and needs a password')
  return null
}

/** Bytes that this thread's instance holds. */
export async function textLayerBytes(): Promise<number> {
  return (await instance)?.HEAPU8.length ?? 0
}

async function start(): Promise<Native> {
  const { init } = await import('@embedpdf/pdfium')
  const file = fileURLToPath(import.meta.resolve('@embedpdf/pdfium/pdfium.wasm'))
  const { pdfium, PDFiumExt_Init } = await init({ wasmBinary: (await readFile(file)) as never })
  PDFiumExt_Init()
  return pdfium as unknown as Native
}

function openPage(native: Native, document: number, index: number): TextPage | null {
  const page = loadPage(native, document, index)
  if (page === 0) return null
  return {
    width: native._FPDF_GetPageWidthF(page),
    height: native._FPDF_GetPageHeightF(page),
    text: (limit, turned) => textOf(native, page, limit, turned),
    close: () => native._FPDF_ClosePage(page),
  }
}

const FLATTENED = 1
const AS_SHOWN = 0

/** What is filled into forms and written on top of a page is an annotation, and for PDFium no text of the page. */
function loadPage(native: Native, document: number, index: number): number {
  const page = native._FPDF_LoadPage(document, index)
  if (page === 0 || native._FPDFPage_GetAnnotCount(page) < 1) return page
  if (native._FPDFPage_Flatten(page, AS_SHOWN) !== FLATTENED) return page
  native._FPDF_ClosePage(page)
  return native._FPDF_LoadPage(document, index)
}

function textOf(native: Native, page: number, limit: number, turned: boolean): string | null {
  const text = native._FPDFText_LoadPage(page)
  if (text === 0) return null
  const places = native.wasmExports.malloc(32)
  try {
    const letters = lettersOf(native, text, Math.max(0, Math.min(native._FPDFText_CountChars(text), limit)))
    const { codes } = letters
    const turn = (native._FPDFPage_GetRotation(page) * Math.PI) / 2
    if (isGuesswork(codes) || (!turned && isTurned(native, text, places, codes, turn))) return null
    return textFromPieces(piecesOf(letters, (from, to) => placeOf(native, text, places, from, to)))
  } finally {
    native.wasmExports.free(places)
    native._FPDFText_ClosePage(text)
  }
}

interface Letters {
  readonly codes: ArrayLike<number>
  slice(from: number, to: number): string
}

/** All at once; one by one, which takes ten times as long, where characters and units of UTF-16 are not the same. */
function lettersOf(native: Native, text: number, count: number): Letters {
  const at = native.wasmExports.malloc(2 * (count + 1))
  try {
    if (at !== 0 && native._FPDFText_GetText(text, 0, count, at) === count + 1) {
      const bytes = native.HEAPU8.slice(at, at + 2 * count)
      // A TextDecoder would put another character in the place of half a pair.
      const whole = Buffer.from(bytes.buffer).toString('utf16le')
      return { codes: new Uint16Array(bytes.buffer), slice: (from, to) => whole.slice(from, to) }
    }
  } finally {
    native.wasmExports.free(at)
  }
  const codes = new Int32Array(count)
  for (let i = 0; i < count; i++) codes[i] = native._FPDFText_GetUnicode(text, i)
  return { codes, slice: (from, to) => stringOf(codes.subarray(from, to)) }
}

// Without a mapping to letters PDFium answers the font's own codes, which are mostly small numbers.
function isGuesswork(codes: ArrayLike<number>): boolean {
  let strange = 0
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!
    if (code === 0xfffd || (code < 0x20 && code !== 2 && code !== 9 && code !== 10 && code !== 13)) strange++
  }
  return strange > codes.length / 100
}

// So many characters, spread over the page, are looked at for the way they run.
const SAMPLES = 40

/** Whether much of the text does not run to the right as the page is shown: PDFium mixes up lines of that kind. */
function isTurned(native: Native, text: number, at: number, codes: ArrayLike<number>, turn: number): boolean {
  let turned = 0
  let seen = 0
  const step = Math.max(1, Math.floor(codes.length / SAMPLES))
  for (let i = 0; i < codes.length; i += step) {
    if (endsPiece(codes[i]!) || native._FPDFText_GetMatrix(text, i, at) === 0) continue
    const [a, b] = [native.HEAPF32[at >> 2]!, native.HEAPF32[(at >> 2) + 1]!]
    seen++
    if (Math.cos(Math.atan2(b, a) - turn) < 0.7) turned++
  }
  return turned > seen / 10
}

type Place = Pick<Piece, 'angle' | 'start' | 'end' | 'base' | 'size'>

/** From the origin of the first character to the far end of the last one's box. */
function placeOf(native: Native, text: number, at: number, from: number, to: number): Place {
  // Counted against the clock by us, with it by PDFium.
  const angle = -native._FPDFText_GetCharAngle(text, from)
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
  native._FPDFText_GetCharOrigin(text, from, at, at + 8)
  native._FPDFText_GetLooseCharBox(text, to, at + 16)
  // Looked up each time: the memory moves when it grows.
  const [x, y] = [native.HEAPF64[at >> 3]!, native.HEAPF64[(at >> 3) + 1]!]
  const [left, top, right, bottom] = native.HEAPF32.subarray(
    (at + 16) >> 2,
    (at + 32) >> 2,
  ) as never as number[]
  const [wide, high] = [(right! - left!) / 2, (top! - bottom!) / 2]
  const middle = ((left! + right!) / 2) * cos + ((top! + bottom!) / 2) * sin
  return {
    angle,
    start: x * cos + y * sin,
    end: middle + Math.abs(wide * cos) + Math.abs(high * sin),
    base: y * cos - x * sin,
    size: 2 * (Math.abs(high * cos) + Math.abs(wide * sin)) || 1,
  }
}

/** Cuts characters into words with the space behind them; PDFium writes those that only the distance tells, too. */
function* piecesOf(letters: Letters, placed: (from: number, to: number) => Place): Generator<Piece> {
  const { codes } = letters
  for (let from = 0; from < codes.length; ) {
    let to = from
    while (to < codes.length && !endsPiece(codes[to]!)) to++
    // What it takes for a hyphen at a line's end it marks, and goes on without the end of the line.
    let hyphen = false
    let endsLine = false
    let next = to
    for (; next < codes.length && endsPiece(codes[next]!); next++) {
      const code = codes[next]!
      if (isHyphen(code)) hyphen = true
      if (code === 10 || code === 13) endsLine = true
    }
    if (to > from || hyphen) {
      const { angle, start, end, base, size } = placed(from, Math.max(from, to - 1))
      const text = letters.slice(from, to) + (hyphen ? '-' : ' ')
      yield { text, angle, start, end, base, size, endsLine: hyphen || endsLine, asIs: false }
    }
    from = next
  }
}

const isHyphen = (code: number): boolean => code === 2 || code === 0xfffe
const endsPiece = (code: number): boolean => code === 10 || code === 13 || code === 32 || isHyphen(code)

function stringOf(codes: Int32Array): string {
  let text = ''
  for (const code of codes) if (code > 0 && code <= 0x10ffff) text += String.fromCodePoint(code)
  return text
}
