/** Reads the words on the pages of image files, and draws those pages. */

import { readPixels } from '../ocr/ocr-page.ts'
import type { OpenOptions, ReadPage } from '../work.ts'
import type { GreyImage } from './grey.ts'
import {
  type DecodedPage,
  type ImageFile,
  MAX_PIXELS,
  openBmp,
  openHeif,
  openImage,
  openJpegXl,
  openNetpbm,
  openPcx,
  openPsd,
} from './image-decoders.ts'
import {
  canvasToGrey,
  computeScaledSize,
  convertToGrey,
  drawPixels,
  isBlank,
  type PageImage,
  type Pixels,
  releaseCanvas,
  toPng,
  Unreadable,
} from './images.ts'

/** Decoders by media type. Each throws `Unreadable`. */
export const DECODERS: Readonly<Record<string, (bytes: Uint8Array) => Promise<ImageFile>>> = {
  'image/png': openImage,
  'image/jpeg': openImage,
  'image/webp': openImage,
  'image/gif': openImage,
  'image/tiff': openImage,
  'image/avif': openImage,
  'image/bmp': openBmp,
  'image/x-portable-anymap': openNetpbm,
  'image/vnd.zbrush.pcx': openPcx,
  'image/vnd.adobe.photoshop': openPsd,
  'image/jxl': openJpegXl,
  'image/heic': openHeif,
  'image/heif': openHeif,
  'image/heic-sequence': openHeif,
  'image/heif-sequence': openHeif,
}

// An image file does not reliably declare its size in inches, so limits are in pixels. A stored image has at most the
// pixels of an A3 page at 150 dpi. For OCR, small type is enlarged up to twofold, but at most to `MAX_PIXELS`.
const MAX_STORED_PIXELS = 4_350_000
const MAX_ENLARGEMENT = 2

const TRANSPARENT_IMAGE_DETAIL = 'The image is transparent: no part of it is visible'
const INCOMPLETE_IMAGE_DETAIL = 'The image is damaged: part of it is missing'

/** Reads the words of an image. The page image is drawn later, on demand, unless a model reads the page. */
export async function readImage(
  { pixels, condition, isTransparent = false }: DecodedPage,
  options: OpenOptions,
): Promise<ReadPage> {
  const grey = convertToGrey(pixels)
  if (condition !== 'whole' && isBlank(grey)) throw new Unreadable('The image is damaged')
  // Only a model needs the PNG now: it receives the stored image.
  const kept =
    options.ocrMode === 'model'
      ? await drawPixels(pixels, storedScaleOf(pixels))
      : { png: null, ...computeScaledSize(pixels, storedScaleOf(pixels)) }
  const scale = Math.min(MAX_ENLARGEMENT, Math.sqrt(MAX_PIXELS / (pixels.width * pixels.height)))
  const enlarged = async (): Promise<GreyImage> => {
    const large = await drawPixels(pixels, scale)
    const finer = canvasToGrey(large)
    releaseCanvas(large)
    return finer
  }
  const page = await readPixels(grey, kept, options, { renderEnlarged: scale > 1 ? enlarged : undefined })
  if (isTransparent && page.status === 'read') return { ...page, detail: TRANSPARENT_IMAGE_DETAIL }
  return condition === 'damaged' && page.status === 'read'
    ? { ...page, detail: INCOMPLETE_IMAGE_DETAIL }
    : page
}

/** Draws the stored image of a page. @throws Unreadable if it exceeds the canvas limits. */
export async function drawImage({ pixels }: DecodedPage): Promise<PageImage> {
  const canvas = await drawPixels(pixels, storedScaleOf(pixels))
  return toPng(canvas).finally(() => releaseCanvas(canvas))
}

const storedScaleOf = ({ width, height }: Pixels): number =>
  Math.min(1, Math.sqrt(MAX_STORED_PIXELS / (width * height)))
