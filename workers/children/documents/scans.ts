import type { PageResult } from '../../../tasks/context.ts'
import type { GreyImage } from '../images/grey.ts'
import { isBlank } from '../images/images.ts'
import { readGrey, toUnreadPage } from '../ocr/ocr-page.ts'
import { fitDpi, toPixelSize } from '../pdf/pdf.ts'
import type { TextPage } from '../pdf/pdfium.ts'
import type { OpenOptions } from '../work.ts'
import { createTextLayerPage } from './text-pages.ts'
import { countLetters, hasWords, isPoorText, isShortText, MAX_CHARACTERS } from './texts.ts'

/** Reads scanned pages, and chooses between their text layer and OCR. */

export const IMAGE_DPI = 150
// OCR of seven-point scans finds 99.7 % of the words at 150 and 200 dpi and all at 250. At 300 dpi it costs 10 %
// more time and finds no more.
export const VISION_DPI = 250
// Scans of at least this resolution are read at their own resolution: upscaling them only costs time.
const FINE_DPI = 180

// Minimum share of the page that the pictures of a scan cover. Smaller pictures are illustrations.
const MIN_SCAN_COVERAGE = 0.6

/** True if the text layer is only a stamp on a scan, or poor OCR text hidden below it. */
export function isOverScan(page: TextPage, text: string): boolean {
  return (isShortText(text) || isPoorText(text)) && (page.scan()?.covered ?? 0) >= MIN_SCAN_COVERAGE
}

// OCR replaces the text layer if it finds at least this multiple of the layer's letters. A poor layer has about as
// many letters as the page.
const MIN_STAMP_RATIO = 1.5
const MIN_POOR_LAYER_RATIO = 0.8

/** Reads a scanned page with local OCR; null if pdfjs must draw the page or OCR is not local. */
export async function readScan(page: TextPage | null, options: OpenOptions): Promise<PageResult | null> {
  if (options.ocrMode !== 'local') return null
  const scan = drawScan(page)
  // A blank drawing may come from an image that PDFium cannot decode. Only pdfjs can detect this.
  if (scan === null || isBlank(scan.grey)) return null
  const { grey, image, text } = scan
  const seen = { ...(await readGrey(grey, options).catch(toUnreadPage)), image }
  const min = countLetters(text) * (isPoorText(text) ? MIN_POOR_LAYER_RATIO : MIN_STAMP_RATIO)
  return hasWords(text) && countLetters(seen.text) < min
    ? createTextLayerPage({ text, markdown: null }, image)
    : seen
}

interface DrawnScan {
  readonly grey: GreyImage
  readonly image: PageResult['image']
  /** The scan's text layer, which may be only a stamp or poor OCR text; '' if there is none. */
  readonly text: string
}

function drawScan(page: TextPage | null): DrawnScan | null {
  if (page === null) return null
  try {
    const scan = page.scan()
    if (scan === null) return null
    const text = scan.hasText ? (page.text(MAX_CHARACTERS)?.text ?? null) : ''
    if (text === null || (text !== '' && !isOverScan(page, text))) return null
    const wanted = scan.dpi < FINE_DPI ? VISION_DPI : Math.min(scan.dpi, VISION_DPI)
    const dpi = fitDpi(page.width, page.height, wanted)
    const { width, height } = toPixelSize(page.width, page.height, dpi)
    const grey = page.grey(width, height, scan.isColoured)
    return grey && { grey, image: describeUndrawnImage(page.width, page.height), text }
  } finally {
    page.close()
  }
}

/** Describes a page image without drawing it: most are never requested, and drawing takes forty times as long. */
export function describeUndrawnImage(width: number, height: number): PageResult['image'] {
  return { png: null, ...toPixelSize(width, height, fitDpi(width, height, IMAGE_DPI)) }
}
