/** Pixels: decoding, scaling, PNG, grey levels. The only importer of `@napi-rs/canvas`. */
import type { Canvas, Image } from '@napi-rs/canvas'

export type { Canvas } from '@napi-rs/canvas'

/** Something in the document that no retry cures. The message is a plain sentence for the page's `detail`. */
export class Unreadable extends Error {
  override name = 'Unreadable'
}

/** One byte per pixel, row by row, 0 black to 255 white. */
export interface Grey {
  readonly data: Uint8Array
  readonly width: number
  readonly height: number
}

/** A page image as it is stored; `png` owns its memory, so it may be transferred to another thread. */
export interface PageImage {
  readonly png: Uint8Array<ArrayBuffer>
  readonly width: number
  readonly height: number
}

/** A picture that can be drawn at a chosen size. */
export type Picture = Canvas | Image

/** Largest canvas, in pixels: 160 MB of RGBA. An A0 sheet at 150 dpi has 35 million. */
export const CANVAS_PIXELS = 40_000_000

/** Longest side of a canvas, in pixels: Skia draws nothing beyond 16 bits. */
export const CANVAS_SIDE = 32_767

/** Largest picture that is decoded, in pixels: 256 MB of RGBA. Photos of a 50-megapixel camera are below it. */
export const SOURCE_PIXELS = 64_000_000

const library = () => import('@napi-rs/canvas')

/** A blank canvas, painted white. Throws `Unreadable` beyond `CANVAS_PIXELS`: Skia would try to allocate it. */
export async function whiteCanvas(width: number, height: number): Promise<Canvas> {
  const canvas = newCanvas((await library()).createCanvas, width, height)
  const context = canvas.getContext('2d')
  context.fillStyle = '#fff'
  context.fillRect(0, 0, width, height)
  return canvas
}

function newCanvas(create: (width: number, height: number) => Canvas, width: number, height: number): Canvas {
  const tooLarge = width * height > CANVAS_PIXELS || Math.max(width, height) > CANVAS_SIDE
  if (tooLarge) throw new Unreadable('The page is too large to be drawn')
  return create(width, height)
}

/** Frees the pixels at once; they are outside the heap, so the garbage collector is in no hurry. */
export function release(canvas: Canvas): void {
  canvas.width = 0
  canvas.height = 0
}

// Limit for one page that is being drawn: 400 MB of RGBA. Groups, masks and patterns have a canvas each, and nest.
const PAGE_PIXELS = 100_000_000
let drawnPixels = 0

/** Starts the count of pixels over for another page: pdfjs may have kept some of the last one. */
export function beginDrawing(): void {
  drawnPixels = 0
}

/** The class that pdfjs creates its canvases with (its `CanvasFactory` option), with the limits of this file. */
export async function canvasFactory() {
  const { createCanvas } = await library()
  return class {
    create(width: number, height: number) {
      drawnPixels += Math.ceil(width) * Math.ceil(height)
      if (drawnPixels > PAGE_PIXELS) throw new Unreadable('The page is too large to be drawn')
      const canvas = newCanvas(createCanvas, Math.ceil(width), Math.ceil(height))
      return { canvas, context: canvas.getContext('2d') }
    }
    reset(made: { canvas: Canvas }, width: number, height: number) {
      if (width * height > CANVAS_PIXELS) throw new Unreadable('The page is too large to be drawn')
      made.canvas.width = width
      made.canvas.height = height
    }
    destroy(made: { canvas: Canvas | null; context: unknown }) {
      if (made.canvas) {
        drawnPixels -= made.canvas.width * made.canvas.height
        release(made.canvas)
      }
      made.canvas = null
      made.context = null
    }
    getNoAlphaContext(canvas: Canvas) {
      return canvas.getContext('2d', { alpha: false })
    }
  }
}

/**
 * Decodes PNG, JPEG (turned upright by its EXIF tag), WebP and GIF (the first frame).
 * The size is read from the header first, so a bomb costs nothing. Throws `Unreadable`.
 */
export async function decodeImage(bytes: Uint8Array): Promise<Image> {
  const { loadImage } = await library()
  const size = imageSize(bytes)
  if (!size || size.width < 1 || size.height < 1) throw new Unreadable('The image is damaged')
  if (size.width * size.height > SOURCE_PIXELS) {
    throw new Unreadable(`The image is too large to be decoded (${size.width} x ${size.height} pixels)`)
  }
  try {
    return await loadImage(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  } catch {
    throw new Unreadable('The image is damaged')
  }
}

/** The picture on white at `scale`, e.g. 0.5 for half the width. */
export async function scaled(picture: Picture, scale: number): Promise<Canvas> {
  const width = Math.max(1, Math.round(picture.width * scale))
  const height = Math.max(1, Math.round(picture.height * scale))
  const canvas = await whiteCanvas(width, height)
  const context = canvas.getContext('2d')
  context.imageSmoothingQuality = 'high'
  context.drawImage(picture, 0, 0, width, height)
  return canvas
}

/** Encodes off the calling thread: 60 ms for an A4 page at 150 dpi. */
export async function toPng(canvas: Canvas): Promise<PageImage> {
  const { width, height } = canvas
  return { png: new Uint8Array(await canvas.encode('png')), width, height }
}

/** Grey levels by the Rec. 601 weights, in strips so that no second full copy of the RGBA exists. */
export function toGrey(canvas: Canvas): Grey {
  const { width, height } = canvas
  const context = canvas.getContext('2d')
  const data = new Uint8Array(width * height)
  const rows = 256
  let at = 0
  for (let top = 0; top < height; top += rows) {
    const rgba = context.getImageData(0, top, width, Math.min(rows, height - top)).data
    for (let i = 0; i < rgba.length; i += 4) {
      data[at++] = (rgba[i]! * 77 + rgba[i + 1]! * 150 + rgba[i + 2]! * 29) >> 8
    }
  }
  return { data, width, height }
}

/**
 * Whether nothing is written there: all pixels but one in 100,000 are within 32 levels of the most common one.
 * A lone page number in 10 points is twice that on A4; the noise of a scanner is below it.
 */
export function isBlank(grey: Grey): boolean {
  const counts = new Uint32Array(256)
  const { data } = grey
  // By index: an iterator over the bytes takes twelve times as long.
  for (let i = 0; i < data.length; i++) counts[data[i]!]!++
  const paper = counts.indexOf(counts.reduce((a, b) => Math.max(a, b), 0))
  let ink = 0
  for (let level = 0; level < 256; level++) if (Math.abs(level - paper) > 32) ink += counts[level]!
  return ink <= data.length / 100_000
}

interface Size {
  readonly width: number
  readonly height: number
}

function imageSize(bytes: Uint8Array): Size | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length < 30) return null
  if (view.getUint32(0) === 0x89504e47) return { width: view.getUint32(16), height: view.getUint32(20) }
  if (view.getUint32(0) === 0x47494638) {
    return { width: view.getUint16(6, true), height: view.getUint16(8, true) }
  }
  if (view.getUint32(0) === 0x52494646 && view.getUint32(8) === 0x57454250) return webpSize(view)
  return view.getUint16(0) === 0xffd8 ? jpegSize(view) : null
}

// RFC 9649, sections 2.5 to 2.7
function webpSize(view: DataView): Size | null {
  const kind = view.getUint32(12)
  const uint24 = (at: number) => view.getUint16(at, true) | (view.getUint8(at + 2) << 16)
  if (kind === 0x56503858) return { width: uint24(24) + 1, height: uint24(27) + 1 }
  if (kind === 0x56503820) {
    return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff }
  }
  if (kind !== 0x5650384c) return null
  const bits = view.getUint32(21, true)
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
}

// ITU T.81, annex B: segments up to the first start-of-frame, which is C0 to CF without C4, C8 and CC
function jpegSize(view: DataView): Size | null {
  for (let at = 2; at + 9 <= view.byteLength; ) {
    if (view.getUint8(at) !== 0xff) return null
    const marker = view.getUint8(at + 1)
    if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) }
    }
    const bare = marker === 0xff || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)
    at += marker === 0xff ? 1 : bare ? 2 : 2 + view.getUint16(at + 2)
  }
  return null
}
