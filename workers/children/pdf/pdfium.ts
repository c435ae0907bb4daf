/** Reads PDF text layers with Chrome's PDFium in WebAssembly. The only importer of `@embedpdf/pdfium`. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import type { PlacedWord } from '../../../tasks/context.ts'
import type { PageText } from '../formats/texts.ts'
import type { GreyImage } from '../images/grey.ts'
import { Locked } from '../images/images.ts'
import { readLayout } from './layout.ts'
import { listPasswordForms } from './passwords.ts'
import { AnnotatedPages, type LoadedPage } from './pdfium-annotated.ts'
import { findUndrawn, placeShownTexts } from './pdfium-annotations.ts'
import { keepShown } from './pdfium-bounds.ts'
import { countCharacters, readPieces } from './pdfium-glyphs.ts'
import type { Native } from './pdfium-native.ts'
import { hideTexts, setActive } from './pdfium-objects.ts'
import { findPictures, type PagePicture } from './pdfium-pictures.ts'
import { describeScan, drawGrey, type Scan } from './pdfium-scan.ts'
import { withUtf8 } from './pdfium-strings.ts'
import { placeWords } from './pdfium-words.ts'
import { readXfaPackets } from './pdfium-xfa.ts'
import { placeNextToLabels } from './placing.ts'
import { readXfa } from './xfa.ts'

/** A PDF opened by PDFium, which reads the text layer. OCR reads the pages that PDFium cannot open or map to characters. */
export interface TextLayer {
  /** The file's own page count, which may be wrong. */
  readonly pageCount: number
  /** True if PDFium can open the page. */
  has(pageNumber: number): boolean
  /** Opens a page, counted from 1; null if it is damaged. */
  page(pageNumber: number, facts?: PageFacts): TextPage | null
  /** Returns sticky notes and notes on marks, which a page shows on demand. */
  remarks(pageNumber: number): readonly string[]
  /** Returns the text of a form that viewers build themselves, in place of the pages; '' for other documents. */
  readonly form: string
  /** True if the document has embedded files. */
  readonly hasFiles: boolean
  close(): void
}

/** Facts about a page that PDFium does not know. */
export interface PageFacts {
  /** Size of the page's unit in points; default 1. */
  readonly unit?: number
  /** Texts that layers hide, by their place among all texts of the page in the order of drawing. */
  readonly hiddenTexts?: ReadonlySet<number>
}

export interface TextPage {
  /** Width in points, after the page's own rotation. */
  readonly width: number
  /** Height in points, after the page's own rotation. */
  readonly height: number
  /**
   * Returns the text in lines and paragraphs, at most about `limit` characters, and its Markdown. Null if PDFium cannot map its glyphs to
   * characters.
   */
  text(limit: number): PageText | null
  /** Counts the characters that the page draws, except for spaces, at most `limit`. */
  countCharacters(limit: number): number
  /** Returns the words with their places. */
  words(): readonly PlacedWord[]
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
  for (const form of isEncrypted && password !== null ? listPasswordForms(password) : [])
    if (document === 0)
      document = withUtf8(native, form, 0, (word) => native._FPDF_LoadMemDocument(at, bytes.length, word))
  const pages = new AnnotatedPages(native, document)
  const close = (): void => {
    pages.close()
    if (document !== 0) native._FPDF_CloseDocument(document)
    native.wasmExports.free(at)
    if (native.HEAPU8.length > MAX_IDLE_BYTES) instance = null
  }
  const pageCount = document === 0 ? 0 : native._FPDF_GetPageCount(document)
  if (pageCount > 0)
    return {
      pageCount,
      has: (n) => hasPage(native, document, n - 1),
      page: (n, facts) => openPage(pages, n - 1, facts),
      remarks: (n) => pages.remarks(n - 1),
      form: readXfa(readXfaPackets(native, document)),
      hasFiles: native._FPDFDoc_GetAttachmentCount(document) > 0,
      close,
    }
  const locked = document === 0 && native._FPDF_GetLastError() === PASSWORD_ERROR
  close()
  if (locked) throw new Locked(password !== null)
  return null
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

function openPage(
  pages: AnnotatedPages,
  index: number,
  { unit = 1, hiddenTexts = new Set() }: PageFacts = {},
): TextPage | null {
  const { native } = pages
  const loaded = pages.load(index)
  const { page } = loaded
  if (page === 0) return null
  return {
    width: native._FPDF_GetPageWidthF(page) * unit,
    height: native._FPDF_GetPageHeightF(page) * unit,
    text: (limit) => readText(native, loaded, hiddenTexts, limit),
    countCharacters: (limit) => countCharacters(native, page, limit),
    words: () => placeWords(native, page),
    scan: () => {
      const scan = describeScan(native, page)
      return scan && { ...scan, dpi: scan.dpi / unit }
    },
    pictures: () => findPictures(native, page),
    grey: (width, height, isColoured) => drawGrey(native, page, width, height, isColoured),
    close: () => native._FPDF_ClosePage(page),
  }
}

/** Reads the page's own text with the texts that its annotations draw, and the values that they do not draw. */
function readText(
  native: Native,
  { page, ownObjects, shown }: LoadedPage,
  hiddenTexts: ReadonlySet<number>,
  limit: number,
): PageText | null {
  const objects = native._FPDFPage_CountObjects(page)
  if (hiddenTexts.size > 0) hideTexts(native, page, ownObjects, hiddenTexts)
  if (objects <= ownObjects && shown.length === 0) {
    const pieces = readPieces(native, page, limit)
    return pieces && readLayout(keepShown(native, page, pieces))
  }
  setActive(native, page, ownObjects, objects, false)
  const own = readPieces(native, page, limit)
  setActive(native, page, ownObjects, objects, true)
  if (own === null) return null
  setActive(native, page, 0, ownObjects, false)
  const drawn = readPieces(native, page, limit) ?? []
  setActive(native, page, 0, ownObjects, true)
  const turn = (native._FPDFPage_GetRotation(page) * Math.PI) / 2
  const undrawn = placeShownTexts(findUndrawn(shown, drawn), turn)
  const shownPieces = keepShown(native, page, [...drawn, ...undrawn])
  return readLayout(placeNextToLabels(keepShown(native, page, own), shownPieces))
}
