/** Image files: their pages, and the words on them. */
import type { OpenOptions, ReadPage } from '../work.ts'
import { type ImageFile, MOST_PIXELS, openBmp, openHeif, openImage, type Shown } from './image-decoders.ts'
import { isBlank, release, scaled, toGrey, Unreadable } from './images.ts'
import { readPixels } from './ocr-page.ts'

/** How a file of each type is opened. They throw `Unreadable`. */
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

// An image file has no size in inches. It is stored with at most the pixels of an A3 page at 150 dpi; for the model it
// is scaled towards an A4 page at 300 dpi, at most doubled (ten-pixel type: 81 % of the words, doubled 100 %).
const STORED_PIXELS = 4_350_000

const PARTLY = 'The image is damaged: a part of it is missing'

/** Reads the words of a picture, and keeps it as the image of its page. */
export async function readImage(
  { canvas: picture, condition }: Shown,
  options: OpenOptions,
): Promise<ReadPage> {
  if (condition !== 'whole' && isBlank(toGrey(picture))) throw new Unreadable('The image is damaged')
  const pixels = picture.width * picture.height
  const small = await scaled(picture, Math.min(1, Math.sqrt(STORED_PIXELS / pixels)))
  const large =
    options.sight === 'none' ? small : await scaled(picture, Math.min(2, Math.sqrt(MOST_PIXELS / pixels)))
  release(picture)
  const page = await readPixels(large, small, options)
  return condition === 'damaged' && page.status === 'read' ? { ...page, detail: PARTLY } : page
}
