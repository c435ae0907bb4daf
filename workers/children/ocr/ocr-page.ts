/** Reads a page from its pixels with the local OCR engine, or leaves the page to a model that the caller asks. */
import type { PageResult } from '../../../tasks/context.ts'
import { readCpuMs } from '../../../tasks/platform/process-usage.ts'
import { cleanText, countLetters } from '../documents/texts.ts'
import { findDotPitch, joinDots } from '../images/dots.ts'
import type { GreyImage } from '../images/grey.ts'
import { type Canvas, isBlank, isDark, releaseCanvas, toPng, Unreadable } from '../images/images.ts'
import { MIN_SURE_CONFIDENCE, type Read, recognizeUpright } from '../images/orientation.ts'
import { invertPanels } from '../images/panels.ts'
import type { OpenOptions, ReadPage } from '../work.ts'
import { MAX_PAGE_CPU_MS, modelOf, type OcrResult, recognize } from './vision.ts'

// Confidence of the English model: 24 to 37 on a clear page of Greek, Arabic or Russian, 13 to 19 on noise, 74 on German.
// The worst receipts with a few readable words reach about 40.
const MIN_CONFIDENCE = 40
// Word height in pixels. OCR reads 81 % of the words in ten-pixel type correctly, and all of them at twice the size.
// From 13 pixels on, doubling changes little and takes 50 % longer.
const SMALL_TYPE_HEIGHT = 12
// OCR reads print of dots with a confidence of up to 70, and wrongly. With its dots joined, it reaches 80 to 90.
const MIN_PRINT_CONFIDENCE = 75
// OCR finds fewer letters than this in any photograph, with a confidence of up to 64. A real sign reaches 90.
const MIN_SURE_LETTERS = 20
const MIN_FEW_LETTERS_CONFIDENCE = 70

/** Converts `Unreadable` into an unread page; rethrows any other error. */
export function toUnreadPage(error: unknown): PageResult {
  if (!(error instanceof Unreadable)) throw error
  return { status: 'unread', method: 'none', model: null, detail: error.message, text: '', image: null }
}

/** Optional further checks and renderings of an image. */
interface ImageHelpers {
  /** Resolves to true if part of the image is missing. */
  readonly isIncomplete?: () => Promise<boolean>
  /** Renders the image enlarged, for small type. */
  readonly renderEnlarged?: (() => Promise<GreyImage>) | undefined
}

/**
 * Reads an image. `kept` is the page image to store: a canvas, or the size of an image that is drawn on demand. Encoding
 * and OCR run concurrently, on other threads.
 */
export async function readPixels(
  grey: GreyImage,
  kept: Canvas | PageResult['image'],
  options: OpenOptions,
  further: ImageHelpers = {},
): Promise<ReadPage> {
  const encoding =
    kept !== null && 'getContext' in kept ? toPng(kept).finally(() => releaseCanvas(kept)) : null
  const looking = recognizeImage(grey, options, further).catch(toUnreadPage)
  const [seen, encoded] = await Promise.allSettled([looking, encoding])
  if (seen.status === 'rejected') throw seen.reason
  if (encoded.status === 'rejected') throw encoded.reason
  return { ...seen.value, image: encoded.value ?? (kept as PageResult['image']) }
}

async function recognizeImage(
  grey: GreyImage,
  options: OpenOptions,
  { isIncomplete = async () => false, renderEnlarged }: ImageHelpers,
): Promise<Omit<ReadPage, 'image'>> {
  const { ocrMode } = options
  if (ocrMode === 'none') {
    throw new Unreadable('The page has no text layer, and no vision provider is configured to read its image')
  }
  if (isBlank(grey)) {
    if (await isIncomplete())
      throw new Unreadable('The content of the page is damaged or too large to be drawn')
    return BLANK_PAGE
  }
  if (ocrMode === 'model') return MODEL_REQUIRED_PAGE
  return readGrey(grey, options, renderEnlarged)
}

const BLANK_PAGE = {
  status: 'read',
  method: 'vision',
  model: null,
  detail: 'The page is blank',
  text: '',
} as const

const MODEL_REQUIRED_PAGE = {
  status: 'unread',
  method: 'none',
  model: null,
  detail: null,
  text: '',
  forModel: true,
} as const

/** Reads light text on a dark page; null if the page is not dark or the result is unreliable. */
async function readLightText(grey: GreyImage, read: Read): Promise<OcrResult | null> {
  if (!isDark(grey)) return null
  const seen = await read(invertImage(grey), MAX_PAGE_CPU_MS / 2).catch(() => null)
  return seen !== null && seen.confidence >= MIN_SURE_CONFIDENCE ? seen : null
}

const invertImage = (grey: GreyImage): GreyImage => ({ ...grey, data: grey.data.map((level) => 255 - level) })

/** Reads dark text on a light page, and again enlarged if the type is small. */
async function readDarkText(
  grey: GreyImage,
  read: Read,
  end: number,
  enlarged: ImageHelpers['renderEnlarged'],
): Promise<OcrResult> {
  const seen = await recognizeUpright(grey, read, end)
  if (enlarged === undefined || seen.wordHeight >= SMALL_TYPE_HEIGHT) return seen
  const larger = await recognizeUpright(await enlarged(), read, end).catch(() => seen)
  return larger.confidence >= Math.min(seen.confidence, MIN_CONFIDENCE) ? larger : seen
}

/** Reads a page that has both light text on dark panels and dark text; null if it has no panels. */
async function readPanels(
  grey: GreyImage,
  read: Read,
  end: number,
  enlarged: ImageHelpers['renderEnlarged'],
): Promise<OcrResult | null> {
  const inverted = invertPanels(grey)
  if (inverted === null) return null
  const invertEnlarged = enlarged && (async () => enlarged().then((large) => invertPanels(large) ?? large))
  return readDarkText(inverted, read, end, invertEnlarged)
}

/** Reads print of separate dots; null if there is none. The engine itself finds no words in it. */
async function readDots(grey: GreyImage, read: Read, end: number): Promise<OcrResult | null> {
  const dark = isDark(grey) ? invertImage(grey) : grey
  const pitch = findDotPitch(dark)
  return pitch === null ? null : recognizeUpright(joinDots(dark, pitch), read, end)
}

/** Reads a non-blank page with the OCR engine. @throws Unreadable if it finds no letters or its confidence is low. */
export async function readGrey(
  grey: GreyImage,
  { languages = 'eng' }: OpenOptions,
  enlarged?: ImageHelpers['renderEnlarged'],
  limitMs = MAX_PAGE_CPU_MS,
): Promise<Omit<PageResult, 'image'>> {
  const read: Read = (picture, limitMs) => recognize(picture, languages, limitMs)
  const end = readCpuMs() + limitMs
  let seen = await readPanels(grey, read, end, enlarged)
  if (seen === null || seen.confidence < MIN_SURE_CONFIDENCE) {
    const whole = (await readLightText(grey, read)) ?? (await readDarkText(grey, read, end, enlarged))
    if (seen === null || whole.confidence > seen.confidence) seen = whole
  }
  if (seen.confidence < MIN_PRINT_CONFIDENCE) {
    const dots = await readDots(grey, read, end).catch(() => null)
    if (dots !== null && dots.confidence > seen.confidence) seen = dots
  }
  const fault = findFault(seen, languages)
  if (fault !== null) throw new Unreadable(fault)
  const { text, words } = seen
  return { status: 'read', method: 'vision', model: modelOf(languages), ...cleanText(text.trimEnd()), words }
}

/** Returns the reason why the result is no text of the page; null if it is. */
function findFault({ text, confidence }: OcrResult, languages: string): string | null {
  const letters = countLetters(text)
  if (letters === 0 || (letters < MIN_SURE_LETTERS && confidence < MIN_FEW_LETTERS_CONFIDENCE))
    return 'No words were found in the page image'
  if (confidence < MIN_CONFIDENCE)
    return `OCR confidence is too low (${Math.round(confidence)} of 100): the image is poor, or its text is not in ${languages}`
  return null
}
