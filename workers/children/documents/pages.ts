/** Turns a document's bytes into pages with text layer, PNG and OCR words. Runs in the calling process. */
import type { AttachmentInfo, PageReader, PageResult, PlacedWord } from '../../../tasks/context.ts'
import type { ZipEntry } from '../../../tasks/formats/zip.ts'
import { describeUnreadable } from '../formats/describe.ts'
import { findFormat } from '../formats/index.ts'
import { DECODERS, drawImage, readImage } from '../images/image-pages.ts'
import { canvasToGrey, Locked, type PageImage, releaseCanvas, toPng, Unreadable } from '../images/images.ts'
import { wrapJpeg2000InPdf } from '../images/jpeg2000.ts'
import { cropImage } from '../images/orientation.ts'
import { readPixels, toUnreadPage } from '../ocr/ocr-page.ts'
import { type Picture, PictureReader } from '../ocr/pictures.ts'
import { createFactsReader, findSigns } from '../pdf/facts.ts'
import { fitDpi, openPdf, type Pdf, type PdfPage, toPixelSize } from '../pdf/pdf.ts'
import type { TextLayer, TextPage } from '../pdf/pdfium.ts'
import type { PagePicture } from '../pdf/pdfium-pictures.ts'
import type { OpenOptions, ReadPage } from '../work.ts'
import { findUnmapped } from './losses.ts'
import { addMissingTexts, listMissingTexts } from './missing-texts.ts'
import { describeUndrawnImage, IMAGE_DPI, isOverScan, readScan, VISION_DPI } from './scans.ts'
import { createTextLayerPage, readTextPage } from './text-pages.ts'
import { hasWords, MAX_CHARACTERS } from './texts.ts'

export { closeVision } from '../ocr/vision.ts'

/** A page reader that can also draw a page's image without reading the page. */
export interface LocalReader extends Omit<PageReader, 'attachments' | 'readAttachment' | 'isFast' | 'cpuMs'> {
  /** Files that the document carries. */
  readonly attachments: readonly AttachedFile[]
  read(pageNumber: number): Promise<ReadPage>
  /** Reads a page if that takes only milliseconds; null if the page needs `read`. */
  readIfFast(pageNumber: number): Promise<PageResult | null>
  /** Draws a page at the stored resolution; null if there is nothing to draw. Throws `Unreadable`. */
  draw(pageNumber: number): Promise<PageImage | null>
  /** Returns the words of a page's text layer with their places; none if it has no text layer. */
  words(pageNumber: number): Promise<readonly PlacedWord[]>
}

/** A file that a document carries. */
export interface AttachedFile extends AttachmentInfo {
  read(): Promise<Uint8Array>
}

export type { PageReader, PageResult }

type ReadPageByNumber = (pageNumber: number) => Promise<ReadPage>

const JPEG_2000_TYPES = new Set(['image/jp2', 'image/jpx', 'image/j2c'])
const IWORK_TYPES = new Set(['pages', 'numbers', 'keynote'].map((name) => `application/vnd.apple.${name}`))
// At this resolution ten-point text is five pixels high. Below it, text is illegible.
const MIN_LEGIBLE_DPI = 36
/**
 * Opens a document of the given (sniffed) media type. Takes ownership of the bytes: they may be transferred or read
 * later. Never throws for bad bytes: the reader of an unreadable document has one unread page with the reason.
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
    throw new Unreadable(`The document has ${reader.pageCount} pages; the limit is ${maxPages}`)
  } catch (error) {
    const page = toUnreadPage(error)
    return createPageReader(1, async () => page, { isLocked: error instanceof Locked })
  }
}

async function open(bytes: Uint8Array, mediaType: string, options: OpenOptions): Promise<LocalReader> {
  if (mediaType === 'application/pdf') return openPdfPages(bytes, options)
  if (JPEG_2000_TYPES.has(mediaType)) return openPdfPages(wrapJpeg2000InPdf(bytes), options)
  if (IWORK_TYPES.has(mediaType))
    return openPdfPages(await (await import('../formats/iwork.ts')).readPreview(bytes), options)
  const size = bytes.length
  const openImage = DECODERS[mediaType]
  if (openImage !== undefined) {
    const { pageCount, page, close } = await openImage(bytes)
    const readPage: ReadPageByNumber = async (n) => readImage(await page(n), options)
    const draw = async (n: number): Promise<PageImage> => drawImage(await page(n))
    return createPageReader(pageCount, readPage, { unpackedBytes: size, close: async () => close?.(), draw })
  }
  const format = findFormat(mediaType)
  if (format === undefined) throw new Unreadable(describeUnreadable(mediaType, options.fileName))
  const { password = null, encoding: given = null } = options
  const opened = await format(bytes, mediaType, { password, encoding: given, fileName: options.fileName })
  const { pageCount, unpackedBytes = size, attachments: files = [], encoding = null } = opened
  const attachments = files.map(({ bytes: content, ...info }) => ({ ...info, read: async () => content }))
  const readText = (n: number): Promise<PageResult> => readTextPage(opened, n, mediaType)
  const pictureReader = new PictureReader(options)
  const listPictures = (n: number): readonly ZipEntry[] =>
    readsPictures(options) ? (opened.pictures?.(n) ?? []) : []
  const readPage: ReadPageByNumber = async (n) => {
    const pictures = listPictures(n)
    if (pictures.length === 0) return await readText(n)
    const { createPicture } = await import('../formats/pictures.ts')
    return await readTextPage(opened, n, mediaType, (page) =>
      pictureReader.append(page, n, pictures.map(createPicture)),
    )
  }
  const readIfFast = async (n: number): Promise<PageResult | null> =>
    listPictures(n).length > 0 ? null : readText(n)
  return createPageReader(pageCount, readPage, { unpackedBytes, attachments, encoding, readIfFast })
}

/** A model reads whole pages only, so the local engine reads the pictures. */
const readsPictures = ({ ocrMode, withPictures = true }: OpenOptions): boolean =>
  withPictures && ocrMode !== 'none'

function createPageReader(
  pageCount: number,
  readPage: ReadPageByNumber,
  {
    unpackedBytes = 0,
    isLocked = false,
    attachments = [],
    encoding = null,
    close = async () => {},
    draw = async () => null,
    words = async () => [],
    readIfFast = async () => null,
  }: Partial<Omit<LocalReader, 'pageCount' | 'read'>> = {},
): LocalReader {
  const check = (pageNumber: number): void => {
    if (!(Number.isInteger(pageNumber) && pageNumber >= 1 && pageNumber <= pageCount)) {
      throw new RangeError(`Page ${pageNumber} does not exist; the document has ${pageCount} pages`)
    }
  }
  return {
    pageCount,
    unpackedBytes,
    isLocked,
    attachments,
    encoding,
    close,
    async read(pageNumber) {
      check(pageNumber)
      return await readPage(pageNumber).catch(toUnreadPage)
    },
    async draw(pageNumber) {
      check(pageNumber)
      return draw(pageNumber)
    },
    async words(pageNumber) {
      check(pageNumber)
      return words(pageNumber)
    },
    async readIfFast(pageNumber) {
      check(pageNumber)
      return await readIfFast(pageNumber).catch(toUnreadPage)
    },
  }
}

async function openPdfPages(bytes: Uint8Array, options: OpenOptions): Promise<LocalReader> {
  const size = bytes.length
  const layers =
    options.withoutPdfium === true
      ? null
      : await (await import('../pdf/pdfium.ts')).openTextLayer(bytes, options.password)
  let opened: Promise<Pdf> | null = null
  const looks = (): Promise<Pdf> => {
    opened ??= openPdf(bytes, options.password)
    return opened
  }
  const close = async (): Promise<void> => {
    layers?.close()
    await (await opened?.catch(() => null))?.close()
  }
  const signs = findSigns(bytes)
  const readFacts = createFactsReader(signs, looks)
  const openLayer = async (n: number): Promise<TextPage | null> => layers?.page(n, await readFacts(n)) ?? null
  const addTexts = <T extends ReadPage | null>(page: T, n: number): T | ReadPage =>
    page && addMissingTexts(page, listMissingTexts(layers, n))
  const pictureReader = readsPictures(options) ? new PictureReader(options) : null
  const isDoubted = options.ocrMode === 'local'
  const readOwnLayer = async (n: number, doubted: boolean): Promise<PageLayer | null> =>
    readLayer(await openLayer(n), () => openLayer(n), doubted)
  const readLayerAndPictures = async (n: number, doubted: boolean): Promise<PageResult | null> => {
    const layer = await readOwnLayer(n, doubted)
    return layer && pictureReader
      ? pictureReader.append(layer.page, n, layer.pictures)
      : (layer?.page ?? null)
  }
  const readIfFast = async (n: number): Promise<PageResult | null> => {
    const layer = await readOwnLayer(n, isDoubted)
    if (layer === null || (layer.pictures.length > 0 && pictureReader !== null)) return null
    return addTexts(layer.page, n)
  }
  const checkBlank = async (page: ReadPage, n: number): Promise<ReadPage> =>
    page.status === 'read' && page.text === '' ? findUnmapped(page, await openLayer(n)) : page
  const readAny: ReadPageByNumber = async (n) =>
    addTexts(
      (await readLayerAndPictures(n, isDoubted)) ??
        (await orUnread(
          async () =>
            (await readScan(await openLayer(n), options)) ??
            (await readLayerAndPictures(n, false)) ??
            (await withPdfPage(looks, n, (page) => readDrawing(page, options))),
        )),
      n,
    )
  const readPage: ReadPageByNumber = async (n) => checkBlank(await readAny(n), n)
  const pageCount = await countPages(size, layers, looks)
  const mayHaveFiles = layers === null || layers.hasFiles || signs.hasFileAnnotations
  return createPageReader(pageCount, readPage, {
    unpackedBytes: size,
    attachments: mayHaveFiles ? await listFiles(looks) : [],
    close,
    draw: (n) => withPdfPage(looks, n, drawPage),
    words: async (n) => placeWords(await openLayer(n)),
    readIfFast,
  })
}

// A lower bound. Each page needs a dictionary and a cross-reference entry, and identical pages compress to six bytes
// each.
const BYTES_PER_PAGE = 4

/**
 * Returns the file's own page count. A damaged file may claim two billion pages. Throws `Unreadable` if the count
 * exceeds what the file size can hold.
 */
async function countPages(
  size: number,
  layers: TextLayer | null,
  looks: () => Promise<Pdf>,
): Promise<number> {
  const last = layers?.pageCount ?? 0
  // If PDFium cannot open the last page, pdfjs counts the pages that exist.
  const count = last > 0 && layers!.has(last) ? last : (await looks()).pageCount
  if (count * BYTES_PER_PAGE > size)
    throw new Unreadable(`The document is damaged: it claims ${count} pages in ${size} bytes`)
  return count
}

async function withPdfPage<T>(
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

// Limit of files, as for mails.
const MAX_FILES = 1000

/** Lists the files that a PDF carries; none if pdfjs cannot read it. */
async function listFiles(looks: () => Promise<Pdf>): Promise<AttachedFile[]> {
  const files = await looks()
    .then((pdf) => pdf.files())
    .catch(() => [])
  return files.slice(0, MAX_FILES).map((file) => ({ ...file, mediaType: '' }))
}

const orUnread = (read: () => Promise<ReadPage>): Promise<ReadPage> => read().catch(toUnreadPage)

/** A page's text layer, and the pictures around its text. */
interface PageLayer {
  readonly page: PageResult
  readonly pictures: readonly Picture[]
}

/**
 * Reads a page's text layer; null if it has none. With `doubted`, a short or poor layer over a scan is left to OCR.
 * `reopen` opens the page again, to draw its pictures.
 */
function readLayer(
  page: TextPage | null,
  reopen: () => Promise<TextPage | null>,
  doubted: boolean,
): PageLayer | null {
  if (page === null) return null
  try {
    const read = page.text(MAX_CHARACTERS)
    if (read === null || !hasWords(read.text) || (doubted && isOverScan(page, read.text))) return null
    return {
      page: createTextLayerPage(read, describeUndrawnImage(page.width, page.height)),
      pictures: page.pictures().map((picture) => createPagePicture(reopen, picture)),
    }
  } finally {
    page.close()
  }
}

function placeWords(page: TextPage | null): readonly PlacedWord[] {
  try {
    return page?.words() ?? []
  } finally {
    page?.close()
  }
}

/** Returns a picture of a page, which is drawn on demand with the page. */
const createPagePicture = (open: () => Promise<TextPage | null>, picture: PagePicture): Picture => ({
  key: picture.key,
  async load() {
    const page = await open()
    const dpi = page && fitDpi(page.width, page.height, VISION_DPI)
    try {
      if (page === null || !dpi) return null
      const { width, height } = toPixelSize(page.width, page.height, dpi)
      const [left, top] = [Math.floor(picture.left * width), Math.floor(picture.top * height)]
      const [right, bottom] = [Math.ceil(picture.right * width), Math.ceil(picture.bottom * height)]
      const grey = page.grey(width, height, picture.isColoured)
      return grey && cropImage(grey, { left, top, width: right - left, height: bottom - top })
    } finally {
      page?.close()
    }
  },
})

/** Draws a page and reads the drawing with OCR. */
async function readDrawing(page: PdfPage, options: OpenOptions): Promise<ReadPage> {
  const dpi = fitDpi(page.width, page.height, IMAGE_DPI)
  const image = describeUndrawnImage(page.width, page.height)
  if (dpi < MIN_LEGIBLE_DPI)
    return { ...toUnreadPage(new Unreadable('The page is too large for OCR and has no text layer')), image }
  // Local OCR gets a finer image. A model gets the stored image.
  const drawnDpi = options.ocrMode === 'local' ? fitDpi(page.width, page.height, VISION_DPI) : dpi
  const canvas = await page.draw(drawnDpi)
  const grey = canvasToGrey(canvas)
  const kept = options.ocrMode === 'model' ? canvas : image
  if (kept !== canvas) releaseCanvas(canvas)
  return readPixels(grey, kept, options, { isIncomplete: () => page.isIncomplete() })
}

async function drawPage(page: PdfPage): Promise<PageImage | null> {
  const dpi = fitDpi(page.width, page.height, IMAGE_DPI)
  const canvas = await page.draw(dpi)
  return toPng(canvas).finally(() => releaseCanvas(canvas))
}
