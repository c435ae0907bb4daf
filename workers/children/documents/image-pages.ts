/** Reads the words on the pages of image files, and draws those pages. */
import type { OpenOptions, ReadPage } from '../work.ts'
import type { Grey } from './grey.ts'
import { type ImageFile, MAX_PIXELS, openBmp, openHeif, openImage, type Shown } from './image-decoders.ts'
import {
  canvasOf,
  greyOf,
  isBlank,
  type PageImage,
  type Pixels,
  release,
  scaledSize,
  toGrey,
  toPng,
  Unreadable,
} from './images.ts'
import { readPixels } from './ocr-page.ts'

/** Decoders by media type. Each throws `Unreadable`. */
export const DECODERS: Readonly<Record<string, (bytes: Uint8Array) => Promise<ImageFile>>> = {
  'image/png': openImage,
  'image/jpeg': openImage,
  'image/webp': openImage,
  'image/gif': openImage,
  'image/tiff': openImage,
  'image/avif': openImage,
  'image/bmp': openBmp,
  'image/heic': openHeif,
  'image/heif': openHeif,
  'image/heic-sequence': openHeif,
  'image/heif-sequence': openHeif,
}

// Image files have no reliable size in inches. Stored images have at most the pixels of an A3 page at 150 dpi. OCR gets
// small type enlarged twofold, but at most to `MAX_PIXELS`.
const STORED_PIXELS = 4_350_000
const LARGER = 2

const PARTLY = 'The image is damaged: part of it is missing'

/** Reads the words of an image. The page image is drawn later, on demand, unless a model reads the page. */
export async function readImage({ pixels, condition }: Shown, options: OpenOptions): Promise<ReadPage> {
  const grey = greyOf(pixels)
  if (condition !== 'whole' && isBlank(grey)) throw new Unreadable('The image is damaged')
  // Only a model needs the PNG now: it receives the stored image.
  const kept =
    options.ocrMode === 'model'
      ? await canvasOf(pixels, storedScale(pixels))
      : { png: null, ...scaledSize(pixels, storedScale(pixels)) }
  const scale = Math.min(LARGER, Math.sqrt(MAX_PIXELS / (pixels.width * pixels.height)))
  const enlarged = async (): Promise<Grey> => {
    const large = await canvasOf(pixels, scale)
    const finer = toGrey(large)
    release(large)
    return finer
  }
  const page = await readPixels(grey, kept, options, { enlarged: scale > 1 ? enlarged : undefined })
  return condition === 'damaged' && page.status === 'read' ? { ...page, detail: PARTLY } : page
}

/** Draws the stored image of a page. @throws Unreadable if it exceeds the canvas limits. */
export async function drawImage({ pixels }: Shown): Promise<PageImage> {
  const canvas = await canvasOf(pixels, storedScale(pixels))
  return toPng(canvas).finally(() => release(canvas))
}

const storedScale = ({ width, height }: Pixels): number =>
  Math.min(1, Math.sqrt(STORED_PIXELS / (width * height)))
