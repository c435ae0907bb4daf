/** Image files: their pages, and the words on them. */
import type { OpenOptions, ReadPage } from '../work.ts'
import { type GifFrame, gifFrames } from './gif.ts'
import { type Canvas, decodeImage, type Picture, release, scaled, Unreadable, whiteCanvas } from './images.ts'
import { readPixels } from './ocr-page.ts'
import { type TiffPage, tiffPages } from './tiff.ts'
import { decodeTiff } from './vision.ts'

/** An open image file. Only pages that it has may be asked for, one after the other. */
export interface Pictures {
  readonly pageCount: number
  /** Throws `Unreadable`. */
  readPage(pageNumber: number): Promise<ReadPage>
  close(): Promise<void>
}

// An image file has no size in inches. It is stored with at most the pixels of an A3 page at 150 dpi; for the model it
// is scaled towards an A4 page at 300 dpi, at most doubled (ten-pixel type: 81 % of the words, doubled 100 %).
const STORED_PIXELS = 4_350_000
const VISION_PIXELS = 8_700_000

/** How a file of each type is opened. They throw `Unreadable`. */
export const PICTURES = {
  'image/png': onePicture,
  'image/jpeg': onePicture,
  'image/webp': onePicture,
  'image/gif': gifPictures,
  'image/tiff': tiffPictures,
} as const satisfies Record<string, (bytes: Uint8Array, options: OpenOptions) => Pictures>

function onePicture(bytes: Uint8Array, options: OpenOptions): Pictures {
  const readPage = async (): Promise<ReadPage> => readImage(await decodeImage(bytes), options)
  return { pageCount: 1, readPage, close: async () => {} }
}

function tiffPictures(bytes: Uint8Array, options: OpenOptions): Pictures {
  const pages = tiffPages(bytes)
  const readPage = async (pageNumber: number): Promise<ReadPage> => {
    const page = pages[pageNumber - 1]!
    if (page instanceof Unreadable) throw page
    const file = page.file()
    if (file !== null) return readImage(await decodeImage(await decodeTiff(file)), options)
    const canvas = await drawJpegs(page)
    return readImage(canvas, options).finally(() => release(canvas))
  }
  return { pageCount: pages.length, readPage, close: async () => {} }
}

async function drawJpegs(page: TiffPage): Promise<Canvas> {
  const canvas = await whiteCanvas(page.width, page.height)
  const context = canvas.getContext('2d')
  for (const { bytes, x, y } of page.jpegs()) context.drawImage(await decodeImage(bytes), x, y)
  return canvas
}

/** Every frame is a page, as it is displayed: with what the earlier frames have left. */
function gifPictures(bytes: Uint8Array, options: OpenOptions): Pictures {
  const frames = gifFrames(bytes)
  if (frames.length < 2) return onePicture(bytes, options)
  let shown: { canvas: Canvas; count: number; next: () => Promise<void> } | null = null
  const close = async (): Promise<void> => {
    if (shown !== null) release(shown.canvas)
    shown = null
  }
  const readPage = async (pageNumber: number): Promise<ReadPage> => {
    if (shown === null || shown.count >= pageNumber) {
      await close()
      const first = await decodeImage(frames[0]!.bytes)
      shown = { canvas: await whiteCanvas(first.width, first.height), count: 0, next: async () => {} }
    }
    const show = shown
    while (show.count < pageNumber) {
      await show.next()
      show.next = await showFrame(show.canvas, frames[show.count++]!)
    }
    return readImage(show.canvas, options)
  }
  return { pageCount: frames.length, readPage, close }
}

/** Draws a frame over the earlier ones; returns what has to be done before the next one. */
async function showFrame(canvas: Canvas, frame: GifFrame): Promise<() => Promise<void>> {
  const picture = await decodeImage(frame.bytes)
  const context = canvas.getContext('2d')
  const before = frame.after === 'restored' ? await scaled(canvas, 1) : null
  context.drawImage(picture, 0, 0)
  return async () => {
    if (before !== null) {
      context.drawImage(before, 0, 0)
      release(before)
    } else if (frame.after === 'cleared') {
      context.fillStyle = '#fff'
      context.fillRect(frame.left, frame.top, frame.width, frame.height)
    }
  }
}

async function readImage(picture: Picture, options: OpenOptions): Promise<ReadPage> {
  const pixels = picture.width * picture.height
  const small = await scaled(picture, Math.min(1, Math.sqrt(STORED_PIXELS / pixels)))
  const large =
    options.sight === 'none' ? small : await scaled(picture, Math.min(2, Math.sqrt(VISION_PIXELS / pixels)))
  return readPixels(large, small, options)
}
