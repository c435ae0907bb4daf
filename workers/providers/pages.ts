/** From a document's bytes to its pages: text layer, PNG, and words read from pixels. In the calling thread. */
import type { PageReader, PageResult } from '../../tasks/context.ts'
import {
  type Canvas,
  decodeImage,
  isBlank,
  type PageImage,
  type Picture,
  release,
  scaled,
  tiffPages,
  toGrey,
  toPng,
  Unreadable,
} from './images.ts'
import { fit, openPdf, type Pdf, type PdfPage, pixelsOf } from './pdf.ts'
import { openTextLayer, type TextLayer } from './pdfium.ts'
import { recognizeUpright } from './upright.ts'
import { decodeTiff, VISION_MODEL } from './vision.ts'

export { closeVision } from './vision.ts'

/** How to read; an aborted `signal` makes `openPages` and `read` throw its reason. */
export interface OpenOptions {
  readonly vision: 'tesseract' | 'none'
  readonly signal?: AbortSignal
  /** Does without PDFium, which a page of the document has crashed. */
  readonly careful?: boolean
}

/** A page's picture may be drawn on its own. */
export interface LocalReader extends PageReader {
  /** Draws a page at the resolution that is stored; null when there is nothing to draw. Throws `Unreadable`. */
  draw(pageNumber: number): Promise<PageImage | null>
}

export type { PageReader, PageResult }

type ReadPage = (pageNumber: number) => Promise<PageResult>

const IMAGE_DPI = 150
// Seven-point scans: 99.7 % of the words at 150 and 200 dpi, all at 250; 300 dpi costs a tenth more for nothing.
const VISION_DPI = 250
// An image file has no size in inches. What is stored of it holds as much as an A3 page at 150 dpi; what the model
// sees is brought near an A4 page at 300 dpi, at most doubled (ten-pixel type: 81 % of the words, doubled 100 %).
const STORED_PIXELS = 4_350_000
const VISION_PIXELS = 8_700_000
const MOST_CHARACTERS = 2_000_000
// A model that is less sure than this of its words has looked at a photograph.
const LEAST_CONFIDENCE = 30

/**
 * Opens a document of the given (sniffed) media type. Takes the bytes over: they may be transferred or read later.
 * Never throws for bad bytes: a document that cannot be opened is a reader with one unread page that says why.
 */
export async function openPages(
  bytes: Uint8Array,
  mediaType: string,
  options: OpenOptions,
): Promise<LocalReader> {
  options.signal?.throwIfAborted()
  try {
    return await open(bytes, mediaType, options)
  } catch (error) {
    const page = unread(error)
    return pageReader(1, options, async () => page)
  }
}

async function open(bytes: Uint8Array, mediaType: string, options: OpenOptions): Promise<LocalReader> {
  switch (mediaType) {
    case 'application/pdf':
      return openPdfPages(bytes, options)
    case 'image/png':
    case 'image/jpeg':
    case 'image/webp':
    case 'image/gif':
      return pageReader(1, options, async () => readImage(await decodeImage(bytes), options))
    case 'image/tiff':
      return openTiffPages(bytes, options)
    case 'text/plain':
    case 'text/markdown':
      return pageReader(1, options, async () => layer(decodeText(bytes), null))
    default:
      throw new Unreadable(`Documents of type ${mediaType} cannot be read`)
  }
}

function pageReader(
  pageCount: number,
  options: OpenOptions,
  readPage: ReadPage,
  close = async () => {},
  draw: LocalReader['draw'] = async () => null,
): LocalReader {
  const check = (pageNumber: number): void => {
    if (!(Number.isInteger(pageNumber) && pageNumber >= 1 && pageNumber <= pageCount)) {
      throw new RangeError(`No page ${pageNumber} of ${pageCount}`)
    }
    options.signal?.throwIfAborted()
  }
  return {
    pageCount,
    close,
    async read(pageNumber) {
      check(pageNumber)
      return await readPage(pageNumber).catch(unread)
    },
    async draw(pageNumber) {
      check(pageNumber)
      return draw(pageNumber)
    },
  }
}

/** Only what is the document's own fault becomes a page; anything else is thrown on. */
function unread(error: unknown): PageResult {
  if (!(error instanceof Unreadable)) throw error
  return { status: 'unread', method: 'none', model: null, detail: error.message, text: '', image: null }
}

function layer(text: string, image: PageResult['image']): PageResult {
  return { status: 'read', method: 'text_layer', model: null, ...tidy(text), image }
}

// Ligatures, and the forms in which Hebrew and Arabic letters are set: nobody types them who searches for a word.
const WRITTEN_FORMS = /[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufbff\ufdf0-\ufdfb\ufe70-\ufefc]/g

/** PostgreSQL stores neither NUL nor half a surrogate pair. */
function tidy(text: string): { text: string; detail: string | null } {
  const tooLong = text.length > MOST_CHARACTERS
  const head = text.slice(0, MOST_CHARACTERS).replaceAll('\0', '')
  const whole = head.isWellFormed() ? head : head.replace(/\p{Surrogate}/gu, '')
  const kept = whole.replace(WRITTEN_FORMS, (form) => form.normalize('NFKC'))
  const detail = tooLong ? `Only the first ${MOST_CHARACTERS} characters were kept` : null
  return { text: kept, detail }
}

async function openPdfPages(bytes: Uint8Array, options: OpenOptions): Promise<LocalReader> {
  const layers = options.careful === true ? null : await openTextLayer(bytes)
  let opened: Promise<Pdf> | null = null
  const looks = (): Promise<Pdf> => {
    opened ??= openPdf(bytes)
    return opened
  }
  const close = async (): Promise<void> => {
    layers?.close()
    await (await opened?.catch(() => null))?.close()
  }
  const readPage: ReadPage = async (pageNumber) =>
    readLayer(layers, pageNumber) ?? (await onPage(looks, pageNumber, (page) => readPdfPage(page, options)))
  const draw = (pageNumber: number): Promise<PageImage | null> => onPage(looks, pageNumber, drawPage)
  return pageReader(layers?.pageCount ?? (await looks()).pageCount, options, readPage, close, draw)
}

async function onPage<T>(
  looks: () => Promise<Pdf>,
  pageNumber: number,
  use: (page: PdfPage) => Promise<T>,
): Promise<T> {
  const page = await (await looks()).page(pageNumber)
  try {
    return await use(page)
  } finally {
    page.close()
  }
}

/** What PDFium makes of a page; null when pdfjs has to look at it. */
function readLayer(layers: TextLayer | null, pageNumber: number): PageResult | null {
  const page = layers?.page(pageNumber)
  if (!page) return null
  try {
    const text = page.text(MOST_CHARACTERS)
    return text !== null && hasWords(text) ? layer(text, undrawn(page.width, page.height)) : null
  } finally {
    page.close()
  }
}

/** The picture that a page has once somebody asks for it: most never do, and drawing takes forty times the reading. */
function undrawn(width: number, height: number): PageResult['image'] {
  const dpi = fit(width, height, IMAGE_DPI)
  return dpi === null ? null : { png: null, ...pixelsOf(width, height, dpi) }
}

async function readPdfPage(page: PdfPage, options: OpenOptions): Promise<PageResult> {
  const text = await page.text(MOST_CHARACTERS)
  if (hasWords(text)) return layer(text, undrawn(page.width, page.height))
  const dpi = fit(page.width, page.height, IMAGE_DPI)
  if (!dpi) throw new Unreadable('The page is too large to be drawn and has no text layer')
  options.signal?.throwIfAborted()
  // Drawn once, at the higher of the two resolutions, and scaled down for the other.
  const drawnDpi = options.vision === 'none' ? dpi : (fit(page.width, page.height, VISION_DPI) ?? dpi)
  const large = await page.draw(drawnDpi)
  const small = drawnDpi > dpi ? await scaled(large, dpi / drawnDpi) : large
  return readPixels(large, small, options, () => page.isIncomplete())
}

async function drawPage(page: PdfPage): Promise<PageImage | null> {
  const dpi = fit(page.width, page.height, IMAGE_DPI)
  if (!dpi) return null
  const canvas = await page.draw(dpi)
  return toPng(canvas).finally(() => release(canvas))
}

/** Words, and not only the private, unassigned or replacement characters of a font without a mapping. */
function hasWords(text: string): boolean {
  const sample = text.trimStart().slice(0, 2000)
  const all = sample.match(/\S/gu)?.length ?? 0
  const good = sample.match(/[\p{L}\p{M}\p{N}\p{P}\p{Sm}\p{Sc}\p{Sk}]/gu)?.length ?? 0
  return good > all / 2
}

async function openTiffPages(bytes: Uint8Array, options: OpenOptions): Promise<LocalReader> {
  const pages = tiffPages(bytes)
  return pageReader(pages.length, options, async (pageNumber) => {
    const page = pages[pageNumber - 1]!
    if (page instanceof Unreadable) throw page
    return readImage(await decodeImage(await decodeTiff(page.bytes, options)), options)
  })
}

async function readImage(picture: Picture, options: OpenOptions): Promise<PageResult> {
  const pixels = picture.width * picture.height
  const small = await scaled(picture, Math.min(1, Math.sqrt(STORED_PIXELS / pixels)))
  const large =
    options.vision === 'none' ? small : await scaled(picture, Math.min(2, Math.sqrt(VISION_PIXELS / pixels)))
  return readPixels(large, small, options)
}

/** Reads `large`, keeps `small`; the two may be one. Encoding and reading run side by side, on other threads. */
async function readPixels(
  large: Canvas,
  small: Canvas,
  options: OpenOptions,
  isIncomplete = async () => false,
): Promise<PageResult> {
  const looking = look(large, options, isIncomplete).catch((error) => unread(error))
  const [seen, encoded] = await Promise.allSettled([looking, toPng(small)])
  release(large)
  release(small)
  if (seen.status === 'rejected') throw seen.reason
  if (encoded.status === 'rejected') throw encoded.reason
  return { ...seen.value, image: encoded.value }
}

async function look(
  canvas: Canvas,
  options: OpenOptions,
  isIncomplete: () => Promise<boolean>,
): Promise<Omit<PageResult, 'image'>> {
  if (options.vision === 'none') {
    throw new Unreadable('There is no text layer, and no vision provider is set up to read the image')
  }
  const grey = toGrey(canvas)
  if (isBlank(grey)) {
    if (await isIncomplete())
      throw new Unreadable('The content of the page is damaged or too large to be drawn')
    return { status: 'read', method: 'vision', model: null, detail: null, text: '' }
  }
  const { text, confidence } = await recognizeUpright(grey, { signal: options.signal })
  if (!/[\p{L}\p{N}]/u.test(text) || confidence < LEAST_CONFIDENCE) {
    throw new Unreadable('No words were found in the image of the page')
  }
  return { status: 'read', method: 'vision', model: VISION_MODEL, ...tidy(text.trimEnd()) }
}

/** UTF-8, UTF-16 by its byte order mark, else windows-1252; every kind of line end becomes a line feed. */
function decodeText(bytes: Uint8Array): string {
  // No coding needs more than four bytes a character; the rest would be cut off anyhow.
  const head = bytes.subarray(0, 4 * (MOST_CHARACTERS + 2))
  const text = decode(head, encodingOf(head)) ?? decode(head, 'windows-1252') ?? ''
  return text.replace(/\r\n?/g, '\n')
}

function encodingOf(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : 'utf-8'
}

function decode(bytes: Uint8Array, encoding: string): string | null {
  try {
    // As a stream: a character cut in half at the end is no error.
    return new TextDecoder(encoding, { fatal: encoding === 'utf-8' }).decode(bytes, { stream: true })
  } catch {
    return null
  }
}
