/** Draws PDF pages with pdfjs, and counts the pages of damaged files. The only importer of `pdfjs-dist`. */
import { fileURLToPath } from 'node:url'
import type { PDFDocumentLoadingTask, PDFDocumentProxy, PDFPageProxy } from 'pdfjs-dist/legacy/build/pdf.mjs'
import {
  beginDrawing,
  type Canvas,
  createCanvasFactory,
  createWhiteCanvas,
  Locked,
  MAX_CANVAS_PIXELS,
  MAX_CANVAS_SIDE,
  MAX_SOURCE_PIXELS,
  Unreadable,
} from '../images/images.ts'
import { listPasswordForms } from './passwords.ts'

/** An open PDF. Not safe for concurrent callers: pdfjs runs in the calling thread. */
export interface Pdf {
  readonly pageCount: number
  /** Opens a page, counted from 1. Throws `Unreadable` if the page is damaged. */
  page(pageNumber: number): Promise<PdfPage>
  /** True if the document has layers that are off by default. */
  hidesLayers(): Promise<boolean>
  /** Lists the files that the document carries: embedded files, and those of annotations. */
  files(): Promise<readonly PdfFile[]>
  close(): Promise<void>
}

/** A file that a PDF carries. */
export interface PdfFile {
  readonly name: string
  /** Reads the file; empty if it is damaged. */
  read(): Promise<Uint8Array>
}

export interface PdfPage {
  /** Width in points, after the page's own rotation. */
  readonly width: number
  /** Height in points, after the page's own rotation. */
  readonly height: number
  /** Size of the page's unit, in points. */
  readonly unit: number
  /** Returns the texts in layers that are off, by their place among all texts in the order of drawing. */
  hiddenTexts(): Promise<ReadonlySet<number>>
  /** Draws the page and its annotations on white. Throws `Unreadable`. */
  draw(dpi: number): Promise<Canvas>
  /**
   * True if pdfjs skipped content that it cannot decode or that is too large. The check opens the document a second
   * time.
   */
  isIncomplete(): Promise<boolean>
  close(): void
}

const POINTS_PER_INCH = 72

/**
 * Opens a PDF. Tries the given password on an encrypted one, besides the empty password.
 * Takes ownership of the bytes: an array that owns its whole buffer is empty afterwards. Throws `Unreadable`, or
 * `Locked` if the password is wrong or missing.
 */
export async function openPdf(bytes: Uint8Array, password: string | null = null): Promise<Pdf> {
  const task = await startLoading(bytes, password)
  try {
    const document = await task.promise
    if (document.numPages < 1) throw new Unreadable('The document has no pages')
    return createPdf(document, task, async () => startLoading(await document.getData(), password, true))
  } catch (error) {
    await close(task)
    if (error instanceof Unreadable) throw error
    if (error instanceof Error && error.name === 'PasswordException') throw new Locked(password !== null)
    throw new Unreadable('The document is damaged or is not a PDF', { cause: error })
  }
}

async function startLoading(
  bytes: Uint8Array,
  password: string | null,
  strict = false,
): Promise<PDFDocumentLoadingTask> {
  const pdfjs = await loadPdfjs()
  const task = pdfjs.getDocument(await createDocumentOptions(bytes, pdfjs.VerbosityLevel.ERRORS, strict))
  const forms = password === null ? [] : [...listPasswordForms(password)]
  task.onPassword = (answer: (password: string | Error) => void) =>
    answer(forms.shift() ?? new Error('No other password is available'))
  return task
}

async function loadPdfjs() {
  const pdfjs = await import('pdfjs-dist/legacy/build/pdf.mjs')
  // In Node pdfjs runs its worker's code in the calling thread. Import the worker here, so that a broken installation
  // is not reported as a damaged document.
  const workerSrc = import.meta.resolve('pdfjs-dist/legacy/build/pdf.worker.mjs')
  await import(workerSrc)
  pdfjs.GlobalWorkerOptions.workerSrc = workerSrc
  return pdfjs
}

// Returns the options for pdfjs. Version 6 neither runs a document's scripts nor compiles code from it, so it has no
// `isEvalSupported`.
async function createDocumentOptions(bytes: Uint8Array, verbosity: number, strict: boolean) {
  const home = import.meta.resolve('pdfjs-dist/package.json')
  const folder = (name: string) => fileURLToPath(new URL(`${name}/`, home))
  return {
    data: toOwnedBytes(bytes),
    verbosity,
    stopAtErrors: strict,
    cMapUrl: folder('cmaps'),
    iccUrl: folder('iccs'),
    standardFontDataUrl: folder('standard_fonts'),
    wasmUrl: folder('wasm'),
    disableFontFace: true,
    useSystemFonts: false,
    maxImageSize: MAX_SOURCE_PIXELS,
    CanvasFactory: await createCanvasFactory(),
  }
}

// Returns bytes that pdfjs can transfer: it rejects a Buffer, and shared memory cannot be transferred.
function toOwnedBytes(bytes: Uint8Array): Uint8Array {
  if (!(bytes.buffer instanceof ArrayBuffer)) return new Uint8Array(bytes)
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function createPdf(
  document: PDFDocumentProxy,
  task: PDFDocumentLoadingTask,
  openStrictly: () => Promise<PDFDocumentLoadingTask>,
): Pdf {
  let strict: PDFDocumentLoadingTask | null = null
  const isIncomplete = async (page: PDFPageProxy) => {
    if (await hasLostImage(page)) return true
    strict ??= await openStrictly()
    return (await countOperators(strict, page.pageNumber)) !== (await page.getOperatorList()).fnArray.length
  }
  return {
    pageCount: document.numPages,
    async page(pageNumber) {
      const page = await document.getPage(pageNumber).catch((cause) => {
        throw new Unreadable('The page is damaged', { cause })
      })
      return createPdfPage(
        page,
        () => isIncomplete(page).catch(() => true),
        async () => findHiddenTexts(page, await readLayers(document)),
      )
    },
    files: () => listFiles(document),
    async hidesLayers() {
      return [...(await readLayers(document))].some(([, { visible }]) => !visible)
    },
    async close() {
      await close(task)
      if (strict) await close(strict)
    },
  }
}

async function close(task: PDFDocumentLoadingTask): Promise<void> {
  await task.destroy().catch(() => {})
}

// Counts the operators of a page. With `stopAtErrors`, pdfjs ends the list where it would otherwise skip something,
// such as an image beyond `maxImageSize`. An image that cannot be decoded stays in the list, but is null in the store.
async function countOperators(task: PDFDocumentLoadingTask, pageNumber: number): Promise<number> {
  const page = await (await task.promise).getPage(pageNumber)
  return (await page.getOperatorList()).fnArray.length
}

async function hasLostImage(page: PDFPageProxy): Promise<boolean> {
  const { OPS } = await loadPdfjs()
  const images = new Set([OPS.paintImageXObject, OPS.paintImageXObjectRepeat, OPS.paintImageMaskXObject])
  const { fnArray, argsArray } = await page.getOperatorList()
  for (const [at, operator] of fnArray.entries()) {
    if (!images.has(operator)) continue
    const [image] = argsArray[at]
    const id = typeof image === 'string' ? image : image?.data
    if (typeof id === 'string' && !(await readStoredImage(page, id))) return true
  }
  return false
}

// Reads an image from its store. Images shared by several pages have names with the prefix `g_`, and pdfjs keeps them
// in the document's store.
function readStoredImage(page: PDFPageProxy, id: string): Promise<unknown> {
  const store = id.startsWith('g_') ? page.commonObjs : page.objs
  return new Promise((resolve) => store.get(id, resolve))
}

/** Limits `dpi` to the resolution that fits the largest canvas. */
export function fitDpi(width: number, height: number, dpi: number): number {
  // The 0.1 % margin allows for rounding to whole pixels.
  const byArea = 0.999 * POINTS_PER_INCH * Math.sqrt(MAX_CANVAS_PIXELS / (width * height))
  const bySide = 0.999 * POINTS_PER_INCH * (MAX_CANVAS_SIDE / Math.max(width, height))
  return Math.min(dpi, byArea, bySide)
}

/** Converts a page size from points to whole pixels. */
export function toPixelSize(width: number, height: number, dpi: number): { width: number; height: number } {
  const pixels = (points: number) => Math.max(1, Math.round((points * dpi) / POINTS_PER_INCH))
  return { width: pixels(width), height: pixels(height) }
}

async function listFiles(document: PDFDocumentProxy): Promise<PdfFile[]> {
  const { AnnotationType } = await loadPdfjs()
  const embedded = await document.getAttachments()
  const annotated = await document.getAnnotationsByType(new Set([AnnotationType.FILEATTACHMENT]), new Set())
  const files = [
    ...[...(embedded ?? [])].map(([id, { filename }]) => ({ id, name: filename })),
    ...(annotated as AttachmentAnnotation[]).map(({ fileId, file }) => ({ id: fileId, name: file.filename })),
  ]
  return files.map(({ id, name }) => ({
    name,
    read: async () => (await document.getAttachmentContent(id)) ?? new Uint8Array(0),
  }))
}

interface AttachmentAnnotation {
  readonly fileId: string
  readonly file: { readonly filename: string }
}

type Layers = Awaited<ReturnType<PDFDocumentProxy['getOptionalContentConfig']>>

const readLayers = (document: PDFDocumentProxy): Promise<Layers> => document.getOptionalContentConfig()

async function findHiddenTexts(page: PDFPageProxy, layers: Layers): Promise<ReadonlySet<number>> {
  const { OPS, AnnotationMode } = await loadPdfjs()
  const { fnArray, argsArray } = await page.getOperatorList({ annotationMode: AnnotationMode.DISABLE })
  const hidden = new Set<number>()
  // True for each open piece of marked content that is in a layer that is off.
  const open: boolean[] = []
  let place = 0
  for (const [at, operator] of fnArray.entries()) {
    const args = argsArray[at]
    if (operator === OPS.beginMarkedContentProps) open.push(args[0] === 'OC' && !layers.isVisible(args[1]))
    else if (operator === OPS.beginMarkedContent) open.push(false)
    else if (operator === OPS.endMarkedContent) open.pop()
    else if (operator === OPS.showText && args[0].length > 0) {
      if (open.includes(true)) hidden.add(place)
      place++
    }
  }
  return hidden
}

function createPdfPage(
  page: PDFPageProxy,
  isIncomplete: () => Promise<boolean>,
  hiddenTexts: () => Promise<ReadonlySet<number>>,
): PdfPage {
  const { width, height } = page.getViewport({ scale: 1 })
  return {
    width,
    height,
    unit: page.userUnit,
    hiddenTexts,
    async draw(dpi) {
      beginDrawing()
      const pixels = toPixelSize(width, height, dpi)
      const canvas = await createWhiteCanvas(pixels.width, pixels.height)
      try {
        const viewport = page.getViewport({ scale: dpi / POINTS_PER_INCH })
        const target = { canvas: canvas as never, viewport }
        await page.render(target).promise
      } catch (cause) {
        throw new Unreadable('The page could not be drawn', { cause })
      }
      return canvas
    },
    isIncomplete,
    close: () => void page.cleanup(),
  }
}
