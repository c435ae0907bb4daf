/** From a document's bytes to its pages: text layer, PNG, and words read from pixels. Runs in the calling process. */
import type { PageReader, PageResult } from '../../../tasks/context.ts'
import type { OpenOptions, ReadPage } from '../work.ts'
import { formatOf } from './formats/index.ts'
import type { Attachment } from './formats/mail.ts'
import type { Grey } from './grey.ts'
import { DECODERS, drawImage, readImage } from './image-pages.ts'
import { isBlank, Locked, type PageImage, release, toGrey, toPng, Unreadable } from './images.ts'
import { pdfOfJpeg2000 } from './jpeg2000.ts'
import { readGrey, readPixels, unread } from './ocr-page.ts'
import { fit, openPdf, type Pdf, type PdfPage, pixelsOf } from './pdf.ts'
import { openTextLayer, type TextLayer, type TextPage } from './pdfium.ts'
import { hasWords, isPoor, isShort, lettersIn, MAX_CHARACTERS, tidy } from './texts.ts'

export { closeVision } from './vision.ts'

/** A reader that can also draw the image of a page on its own. */
export interface LocalReader extends Omit<PageReader, 'attachments' | 'attachment' | 'isFast' | 'cpuMs'> {
  /** The files that came with a mail. */
  readonly attachments: readonly Attachment[]
  read(pageNumber: number): Promise<ReadPage>
  /** Reads a page if that takes milliseconds; null when it needs more than that. */
  readAtOnce(pageNumber: number): Promise<PageResult | null>
  /** Draws a page at the resolution that is stored; null when there is nothing to draw. Throws `Unreadable`. */
  draw(pageNumber: number): Promise<PageImage | null>
}

export type { PageReader, PageResult }

type ReadOne = (pageNumber: number) => Promise<ReadPage>

const IMAGE_DPI = 150
// Seven-point scans: 99.7 % of the words at 150 and 200 dpi, all at 250; 300 dpi costs a tenth more for nothing.
const VISION_DPI = 250
// A scan with at least this resolution is read as it is: drawing it finer only takes longer.
const FINE_DPI = 180

/**
 * Opens a document of the given (sniffed) media type. Takes ownership of the bytes: they may be transferred or read
 * later. Never throws for bad bytes: if a document cannot be opened, the reader has one unread page that says why.
 */
export async function openPages(
  bytes: Uint8Array,
  mediaType: string,
  options: OpenOptions,
): Promise<LocalReader> {
  try {
    const reader = await open(bytes, mediaType, options)
    const { maxPages = Number.POSITIVE_INFINITY } = options
    if (reader.pageCount <= maxPages) return reader
    await reader.close()
    throw new Unreadable(
      `The document has ${reader.pageCount} pages, more than the ${maxPages} that may be read`,
    )
  } catch (error) {
    const page = unread(error)
    return pageReader(1, async () => page, { isLocked: error instanceof Locked })
  }
}

async function open(bytes: Uint8Array, mediaType: string, options: OpenOptions): Promise<LocalReader> {
  if (mediaType === 'application/pdf') return openPdfPages(bytes, options)
  if (mediaType === 'image/jp2' || mediaType === 'image/jpx')
    return openPdfPages(pdfOfJpeg2000(bytes), options)
  const size = bytes.length
  const openImage = DECODERS[mediaType]
  if (openImage !== undefined) {
    const { pageCount, page, close } = await openImage(bytes)
    const readPage: ReadOne = async (n) => readImage(await page(n), options)
    const draw = async (n: number): Promise<PageImage> => drawImage(await page(n))
    return pageReader(pageCount, readPage, { unpackedBytes: size, close: async () => close?.(), draw })
  }
  const format = formatOf(mediaType)
  if (format === undefined) throw new Unreadable(`Documents of type ${mediaType} cannot be read`)
  const { pageCount, text, unpackedBytes = size, attachments = [] } = await format(bytes, mediaType)
  const readText: ReadOne = async (n) => layer(await text(n), null)
  return pageReader(pageCount, readText, { unpackedBytes, attachments, readAtOnce: readText })
}

function pageReader(
  pageCount: number,
  readPage: ReadOne,
  {
    unpackedBytes = 0,
    isLocked = false,
    attachments = [],
    close = async () => {},
    draw = async () => null,
    readAtOnce = async () => null,
  }: Partial<Omit<LocalReader, 'pageCount' | 'read'>> = {},
): LocalReader {
  const check = (pageNumber: number): void => {
    if (!(Number.isInteger(pageNumber) && pageNumber >= 1 && pageNumber <= pageCount)) {
      throw new RangeError(`No page ${pageNumber} of ${pageCount}`)
    }
  }
  return {
    pageCount,
    unpackedBytes,
    isLocked,
    attachments,
    close,
    async read(pageNumber) {
      check(pageNumber)
      return await readPage(pageNumber).catch(unread)
    },
    async draw(pageNumber) {
      check(pageNumber)
      return draw(pageNumber)
    },
    async readAtOnce(pageNumber) {
      check(pageNumber)
      return await readAtOnce(pageNumber).catch(unread)
    },
  }
}

function layer(text: string, image: PageResult['image']): PageResult {
  return { status: 'read', method: 'text_layer', model: null, ...tidy(text), image }
}

async function openPdfPages(bytes: Uint8Array, options: OpenOptions): Promise<LocalReader> {
  const size = bytes.length
  const layers = options.withoutPdfium === true ? null : await openTextLayer(bytes, options.password)
  let opened: Promise<Pdf> | null = null
  const looks = (): Promise<Pdf> => {
    opened ??= openPdf(bytes, options.password)
    return opened
  }
  const close = async (): Promise<void> => {
    layers?.close()
    await (await opened?.catch(() => null))?.close()
  }
  // PDFium is not asked twice about a page for which it has no text.
  let without = 0
  const readAtOnce = async (pageNumber: number): Promise<PageResult | null> => {
    const page =
      pageNumber === without ? null : readLayer(layers, pageNumber, false, options.ocrMode === 'local')
    if (page === null) without = pageNumber
    return page
  }
  const readPage: ReadOne = async (pageNumber) =>
    (await readAtOnce(pageNumber)) ??
    (await readScan(layers, pageNumber, options)) ??
    (await onPage(looks, pageNumber, (page) =>
      readPdfPage(page, options, () => readLayer(layers, pageNumber, true)),
    ))
  const draw = (pageNumber: number): Promise<PageImage | null> => onPage(looks, pageNumber, drawPage)
  const pageCount = await countPages(size, layers, looks)
  return pageReader(pageCount, readPage, { unpackedBytes: size, close, draw, readAtOnce })
}

// A page is a dictionary and an entry of the cross-reference table. Compressed, identical pages take six bytes each.
const BYTES_PER_PAGE = 4

/**
 * The number of pages, if it is plausible: it is what the file claims, and a damaged one may claim two billion. Throws
 * `Unreadable` when there are more than the bytes can hold.
 */
async function countPages(
  size: number,
  layers: TextLayer | null,
  looks: () => Promise<Pdf>,
): Promise<number> {
  const last = layers?.pageCount ?? 0
  // pdfjs finds the pages that exist when the last one doesn't.
  const count = last > 0 && layers!.has(last) ? last : (await looks()).pageCount
  if (count * BYTES_PER_PAGE > size)
    throw new Unreadable(`The document is damaged: it claims to have ${count} pages, in ${size} bytes`)
  return count
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

/**
 * What PDFium reads on a page; null when pdfjs has to read it, which is better at lines that are `turned`, or when it may be
 * `doubted`, and the words of a scan tell more.
 */
function readLayer(
  layers: TextLayer | null,
  pageNumber: number,
  turned: boolean,
  doubted = false,
): PageResult | null {
  const page = layers?.page(pageNumber)
  if (!page) return null
  try {
    const text = page.text(MAX_CHARACTERS, turned)
    if (text === null || !hasWords(text) || (doubted && isOverScan(page, text))) return null
    return layer(text, undrawn(page.width, page.height))
  } finally {
    page.close()
  }
}

// Less of a page than this is a picture in a text.
const MOSTLY = 0.6

/** Whether a text is a stamp on a scan, or the poor result of reading it, which is hidden below. */
function isOverScan(page: TextPage, text: string): boolean {
  return (isShort(text) || isPoor(text)) && (page.scan()?.covered ?? 0) >= MOSTLY
}

// How many times the letters of the layer the engine has to find, to be believed: a poor layer has as many as the page.
const MORE_THAN_STAMP = 1.5
const MORE_THAN_POOR = 0.8

/** What the engine here reads on a page of pictures; null when pdfjs has to draw the page. */
async function readScan(
  layers: TextLayer | null,
  pageNumber: number,
  options: OpenOptions,
): Promise<PageResult | null> {
  if (options.ocrMode !== 'local') return null
  const scan = drawScan(layers?.page(pageNumber) ?? null)
  // Only pdfjs knows whether the picture could be decoded.
  if (scan === null || isBlank(scan.grey)) return null
  const { grey, image, text } = scan
  const seen = { ...(await readGrey(grey, options).catch(unread)), image }
  const min = lettersIn(text) * (isPoor(text) ? MORE_THAN_POOR : MORE_THAN_STAMP)
  return hasWords(text) && lettersIn(seen.text) < min ? layer(text, image) : seen
}

interface DrawnScan {
  readonly grey: Grey
  readonly image: PageResult['image']
  /** Its text layer, which may be a stamp or poor. */
  readonly text: string
}

function drawScan(page: TextPage | null): DrawnScan | null {
  if (page === null) return null
  try {
    const scan = page.scan()
    if (scan === null) return null
    const text = scan.hasText ? page.text(MAX_CHARACTERS, false) : ''
    if (text === null || (text !== '' && !isOverScan(page, text))) return null
    const wanted = scan.dpi < FINE_DPI ? VISION_DPI : Math.min(scan.dpi, VISION_DPI)
    const dpi = fit(page.width, page.height, wanted)
    if (!dpi) return null
    const { width, height } = pixelsOf(page.width, page.height, dpi)
    const grey = page.grey(width, height, scan.isColoured)
    return grey && { grey, image: undrawn(page.width, page.height), text }
  } finally {
    page.close()
  }
}

/** The image of a page, to be drawn on demand: most are never asked for, and drawing takes forty times the reading. */
function undrawn(width: number, height: number): PageResult['image'] {
  const dpi = fit(width, height, IMAGE_DPI)
  return dpi === null ? null : { png: null, ...pixelsOf(width, height, dpi) }
}

async function readPdfPage(
  page: PdfPage,
  options: OpenOptions,
  again: () => PageResult | null,
): Promise<ReadPage> {
  const text = await page.text(MAX_CHARACTERS)
  if (hasWords(text)) return layer(text, undrawn(page.width, page.height))
  // A rotated form: only PDFium knows what is filled into it.
  const turned = again()
  if (turned !== null) return turned
  const dpi = fit(page.width, page.height, IMAGE_DPI)
  if (!dpi) throw new Unreadable('The page is too large to be drawn and has no text layer')
  // The engine here gets a finer picture than a model, which is sent the one that is stored.
  const drawnDpi = options.ocrMode === 'local' ? (fit(page.width, page.height, VISION_DPI) ?? dpi) : dpi
  const canvas = await page.draw(drawnDpi)
  const grey = toGrey(canvas)
  const kept = options.ocrMode === 'model' ? canvas : undrawn(page.width, page.height)
  if (kept !== canvas) release(canvas)
  return readPixels(grey, kept, options, { isIncomplete: () => page.isIncomplete() })
}

async function drawPage(page: PdfPage): Promise<PageImage | null> {
  const dpi = fit(page.width, page.height, IMAGE_DPI)
  if (!dpi) return null
  const canvas = await page.draw(dpi)
  return toPng(canvas).finally(() => release(canvas))
}
