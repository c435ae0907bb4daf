/** Reads PDF text layers with Chrome's PDFium in WebAssembly. The only importer of `@embedpdf/pdfium`. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import type { GreyImage } from '../images/grey.ts'
import { Locked } from '../images/images.ts'
import { type Piece, textFromPieces } from './layout.ts'
import { appendFields, readFields } from './pdfium-fields.ts'
import { readPieces } from './pdfium-glyphs.ts'
import type { Native } from './pdfium-native.ts'
import { findPictures, type PagePicture } from './pdfium-pictures.ts'
import { describeScan, drawGrey, type Scan } from './pdfium-scan.ts'

/** A PDF opened by PDFium, which reads the text layer. OCR reads the pages that PDFium cannot open or map to characters. */
export interface TextLayer {
  /** The file's own page count, which may be wrong. */
  readonly pageCount: number
  /** True if PDFium can open the page. */
  has(pageNumber: number): boolean
  /** Opens a page, counted from 1; null if it is damaged. */
  page(pageNumber: number): TextPage | null
  close(): void
}

export interface TextPage {
  /** Width in points, after the page's own rotation. */
  readonly width: number
  /** Height in points, after the page's own rotation. */
  readonly height: number
  /**
   * Returns the text in lines and paragraphs, at most about `limit` characters. Null if PDFium cannot map its glyphs to
   * characters.
   */
  text(limit: number): string | null
  /** Describes a scanned page; null unless the page consists of opaque pictures and, optionally, text. */
  scan(): Scan | null
  /** Returns the pictures that may hold words, except those behind text. */
  pictures(): readonly PagePicture[]
  /** Draws the page on white in grey levels, at this size in pixels; null if it is too large or memory is short. */
  grey(width: number, height: number, isColoured: boolean): GreyImage | null
  close(): void
}

const PASSWORD_ERROR = 4
// WebAssembly memory never shrinks. Above this size the next document gets a new instance.
const MAX_IDLE_BYTES = 128 * 2 ** 20

let instance: Promise<Native> | null = null

/**
 * Opens a PDF with the empty or the given password. Returns null if PDFium cannot read the file. Throws `Locked` if
 * neither password fits.
 */
export async function openTextLayer(
  bytes: Uint8Array,
  password: string | null = null,
): Promise<TextLayer | null> {
  instance ??= startPdfium()
  const native = await instance
  const at = native.wasmExports.malloc(bytes.length)
  if (at === 0) return null
  native.HEAPU8.set(bytes, at)
  let document = native._FPDF_LoadMemDocument(at, bytes.length, 0)
  const isEncrypted = document === 0 && native._FPDF_GetLastError() === PASSWORD_ERROR
  if (isEncrypted && password !== null) document = loadWithPassword(native, at, bytes.length, password)
  const close = (): void => {
    if (document !== 0) native._FPDF_CloseDocument(document)
    native.wasmExports.free(at)
    if (native.HEAPU8.length > MAX_IDLE_BYTES) instance = null
  }
  const pageCount = document === 0 ? 0 : native._FPDF_GetPageCount(document)
  if (pageCount > 0)
    return {
      pageCount,
      has: (n) => hasPage(native, document, n - 1),
      page: (n) => openPage(native, document, n - 1),
      close,
    }
  const locked = document === 0 && native._FPDF_GetLastError() === PASSWORD_ERROR
  close()
  if (locked) throw new Locked(password !== null)
  return null
}

/** Opens a PDF with a password; 0 on failure. PDFium converts it to the encoding that the encryption version needs. */
function loadWithPassword(native: Native, at: number, size: number, password: string): number {
  const characters = Buffer.from(`${password}\0`)
  const word = native.wasmExports.malloc(characters.length)
  if (word === 0) return 0
  native.HEAPU8.set(characters, word)
  const document = native._FPDF_LoadMemDocument(at, size, word)
  native.HEAPU8.fill(0, word, word + characters.length)
  native.wasmExports.free(word)
  return document
}

async function startPdfium(): Promise<Native> {
  const { init } = await import('@embedpdf/pdfium')
  const wasmBinary = await readFile(fileURLToPath(import.meta.resolve('@embedpdf/pdfium/pdfium.wasm')))
  // Inlining PDFium's many small functions saves a fifth of the time for a page. A later V8 that inlines by default
  // only warns about the flag. Reset it immediately: V8 rejects code that it cached under other flags.
  setFlagsFromString('--experimental-wasm-inlining')
  const { pdfium, PDFiumExt_Init } = await init({ wasmBinary: wasmBinary as never })
  setFlagsFromString('--no-experimental-wasm-inlining')
  PDFiumExt_Init()
  // Call the exports directly: emscripten's wrappers build three failure messages on every call.
  for (const [name, call] of Object.entries((pdfium as unknown as Native).wasmExports))
    if (`_${name}` in pdfium) Object.assign(pdfium, { [`_${name}`]: call })
  return pdfium as unknown as Native
}

function hasPage(native: Native, document: number, index: number): boolean {
  const page = native._FPDF_LoadPage(document, index)
  if (page !== 0) native._FPDF_ClosePage(page)
  return page !== 0
}

function openPage(native: Native, document: number, index: number): TextPage | null {
  const { page, fields } = loadPage(native, document, index)
  if (page === 0) return null
  return {
    width: native._FPDF_GetPageWidthF(page),
    height: native._FPDF_GetPageHeightF(page),
    text: (limit) => {
      const pieces = readPieces(native, page, limit)
      return pieces && textFromPieces(appendFields(pieces, fields))
    },
    scan: () => describeScan(native, page),
    pictures: () => findPictures(native, page),
    grey: (width, height, isColoured) => drawGrey(native, page, width, height, isColoured),
    close: () => native._FPDF_ClosePage(page),
  }
}

const FLATTEN_SUCCESS = 1
const FLATTEN_AS_DISPLAYED = 0

/**
 * Loads a page with its annotations merged into its content. PDFium does not count annotations, including form values,
 * as page text.
 */
function loadPage(native: Native, document: number, index: number): { page: number; fields: Piece[] } {
  const page = native._FPDF_LoadPage(document, index)
  if (page === 0 || native._FPDFPage_GetAnnotCount(page) < 1) return { page, fields: [] }
  const fields = readFields(native, page)
  if (native._FPDFPage_Flatten(page, FLATTEN_AS_DISPLAYED) !== FLATTEN_SUCCESS) return { page, fields }
  native._FPDF_ClosePage(page)
  return { page: native._FPDF_LoadPage(document, index), fields }
}
