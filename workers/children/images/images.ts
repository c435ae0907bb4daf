/** Decodes bitmaps, scales images, encodes PNG and computes grey levels. The only importer of `@napi-rs/canvas`. */
import type { Canvas, Image } from '@napi-rs/canvas'
import { type GreyImage, GreyLevels } from './grey.ts'

export type { Canvas } from '@napi-rs/canvas'

/** A permanent fault of a document. The message is a plain sentence for the page's `detail`. */
export class Unreadable extends Error {
  override name = 'Unreadable'
}

/** The document is encrypted, and the password is missing or wrong. */
export class Locked extends Unreadable {
  constructor(isGiven: boolean) {
    super(
      isGiven
        ? 'The document is encrypted, and the password does not open it'
        : 'The document is encrypted and needs a password',
    )
  }
}

/** A page image in its stored form. `png` owns its memory, so it may be transferred to another thread. */
export interface PageImage {
  readonly png: Uint8Array<ArrayBuffer>
  readonly width: number
  readonly height: number
}

/** An image that can be drawn at any size. */
export type Picture = Canvas | Image

/** Largest canvas, in pixels: 160 MB of RGBA. An A0 sheet at 150 dpi has 35 million. */
export const MAX_CANVAS_PIXELS = 40_000_000

/** Longest side of a canvas, in pixels: Skia draws nothing beyond 16 bits. */
export const MAX_CANVAS_SIDE = 32_767

/** Decoding limit for an image inside a PDF, in pixels: 256 MB of RGBA. */
export const MAX_SOURCE_PIXELS = 64_000_000

const loadCanvas = () => import('@napi-rs/canvas')

/** Provides the class of browsers for pixels, which decoders built for them use. */
export async function provideImageData(): Promise<void> {
  const { ImageData } = await loadCanvas()
  if (!('ImageData' in globalThis)) Object.assign(globalThis, { ImageData })
}

/** Creates a white canvas. Throws `Unreadable` beyond `MAX_CANVAS_PIXELS` or `MAX_CANVAS_SIDE`: Skia would try to allocate it. */
export async function createWhiteCanvas(width: number, height: number): Promise<Canvas> {
  const canvas = createCheckedCanvas((await loadCanvas()).createCanvas, width, height)
  const context = canvas.getContext('2d')
  context.fillStyle = '#fff'
  context.fillRect(0, 0, width, height)
  return canvas
}

function createCheckedCanvas(
  create: (width: number, height: number) => Canvas,
  width: number,
  height: number,
): Canvas {
  const tooLarge = width * height > MAX_CANVAS_PIXELS || Math.max(width, height) > MAX_CANVAS_SIDE
  if (tooLarge) throw new Unreadable('The page is too large to be drawn')
  return create(width, height)
}

/** Frees the pixels immediately. They are outside the heap, so the garbage collector would free them late. */
export function releaseCanvas(canvas: Canvas): void {
  canvas.width = 0
  canvas.height = 0
}

// Limit for all canvases of one page: 400 MB of RGBA. Groups, masks and patterns each need a canvas, and they nest.
const MAX_PAGE_PIXELS = 100_000_000
let drawnPixels = 0

/** Resets the pixel count for a new page: pdfjs may not have released all canvases of the last one. */
export function beginDrawing(): void {
  drawnPixels = 0
}

/** Returns a class for the `CanvasFactory` option of pdfjs that enforces the limits of this file. */
export async function createCanvasFactory() {
  const { createCanvas } = await loadCanvas()
  return class {
    create(width: number, height: number) {
      drawnPixels += Math.ceil(width) * Math.ceil(height)
      if (drawnPixels > MAX_PAGE_PIXELS) throw new Unreadable('The page is too large to be drawn')
      const canvas = createCheckedCanvas(createCanvas, Math.ceil(width), Math.ceil(height))
      return { canvas, context: canvas.getContext('2d') }
    }
    reset(made: { canvas: Canvas }, width: number, height: number) {
      if (width * height > MAX_CANVAS_PIXELS) throw new Unreadable('The page is too large to be drawn')
      made.canvas.width = width
      made.canvas.height = height
    }
    destroy(made: { canvas: Canvas | null; context: unknown }) {
      if (made.canvas) {
        drawnPixels -= made.canvas.width * made.canvas.height
        releaseCanvas(made.canvas)
      }
      made.canvas = null
      made.context = null
    }
    getNoAlphaContext(canvas: Canvas) {
      return canvas.getContext('2d', { alpha: false })
    }
  }
}

/** A decoded image: RGBA, row by row, with alpha 255. */
export interface Pixels {
  readonly data: Uint8Array | Uint8ClampedArray
  readonly width: number
  readonly height: number
}

/** A decoded image in the form of its file: 8-bit samples of grey, grey and alpha, RGB or RGBA, row by row. */
export interface Raster {
  readonly data: Uint8Array
  readonly width: number
  readonly height: number
  readonly channels: number
  /** False if the file ends before its last pixel. */
  readonly isWhole: boolean
}

/** Draws a decoded image at `scale`. @throws Unreadable if it exceeds the canvas limits. */
export async function drawPixels({ data, width, height }: Pixels, scale: number): Promise<Canvas> {
  const { createCanvas, ImageData } = await loadCanvas()
  const canvas = createCheckedCanvas(createCanvas, width, height)
  const clamped = new Uint8ClampedArray(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength)
  canvas.getContext('2d').putImageData(new ImageData(clamped, width, height), 0, 0)
  return scale === 1 ? canvas : drawScaled(canvas, scale).finally(() => releaseCanvas(canvas))
}

/** Decodes a Windows bitmap. Checks the size in its header first, so a bomb costs nothing. @throws Unreadable. */
export async function loadBitmap(bytes: Uint8Array): Promise<Pixels> {
  if (bytes.length < 30) throw new Unreadable('The image is damaged')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const isOld = view.getUint32(14, true) === 12
  const width = isOld ? view.getUint16(18, true) : Math.abs(view.getInt32(18, true))
  const height = isOld ? view.getUint16(20, true) : Math.abs(view.getInt32(22, true))
  if (width * height > MAX_CANVAS_PIXELS) throw createTooLargeError(width, height)
  const { loadImage } = await loadCanvas()
  const image = await loadImage(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)).catch(
    (cause) => {
      throw new Unreadable('The image is damaged', { cause })
    },
  )
  const canvas = await drawScaled(image, 1)
  const { data } = canvas.getContext('2d').getImageData(0, 0, width, height)
  releaseCanvas(canvas)
  return { data, width, height }
}

export const createTooLargeError = (width: number, height: number): Unreadable =>
  new Unreadable(`The image is too large to be decoded (${width} x ${height} pixels)`)

type Size = Pick<Pixels, 'width' | 'height'>

/** Returns the size of an image at `scale`, at least 1 x 1. A scale of 0.5 halves both sides. */
export const computeScaledSize = (picture: Size, scale: number): { width: number; height: number } => ({
  width: Math.max(1, Math.round(picture.width * scale)),
  height: Math.max(1, Math.round(picture.height * scale)),
})

/** Draws the image on white at `scale`. @throws Unreadable if it exceeds the canvas limits. */
export async function drawScaled(picture: Picture, scale: number): Promise<Canvas> {
  const { width, height } = computeScaledSize(picture, scale)
  const canvas = await createWhiteCanvas(width, height)
  const context = canvas.getContext('2d')
  context.imageSmoothingQuality = 'high'
  context.drawImage(picture, 0, 0, width, height)
  return canvas
}

/** Encodes a PNG on another thread; an A4 page at 150 dpi takes 60 ms. */
export async function toPng(canvas: Canvas): Promise<PageImage> {
  const { width, height } = canvas
  return { png: new Uint8Array(await canvas.encode('png')), width, height }
}

/** Converts decoded pixels to grey levels for OCR. */
export function convertToGrey({ data, width, height }: Pixels): GreyImage {
  const levels = new GreyLevels(width, height)
  levels.add(data)
  return levels.grey()
}

/** Converts a canvas to grey levels, in strips to avoid a second full copy of the RGBA. */
export function canvasToGrey(canvas: Canvas): GreyImage {
  const { width, height } = canvas
  const context = canvas.getContext('2d')
  const levels = new GreyLevels(width, height)
  const rows = 256
  for (let top = 0; top < height; top += rows)
    levels.add(context.getImageData(0, top, width, Math.min(rows, height - top)).data)
  return levels.grey()
}

/**
 * True if the image shows no writing: at most one pixel in 100,000 differs by over 32 levels from the most common one.
 * A lone 10-point page number on A4 has twice as many such pixels. Scanner noise has fewer.
 */
export function isBlank(grey: GreyImage): boolean {
  const counts = new Uint32Array(256)
  const { data } = grey
  // Loop by index: an iterator over the bytes takes twelve times as long.
  for (let i = 0; i < data.length; i++) counts[data[i]!]!++
  const paper = counts.indexOf(counts.reduce((a, b) => Math.max(a, b), 0))
  let ink = 0
  for (let level = 0; level < 256; level++) if (Math.abs(level - paper) > 32) ink += counts[level]!
  return ink <= data.length / 100_000
}

/** True if more than half of the pixels are dark. */
export function isDark({ data }: GreyImage): boolean {
  let dark = 0
  for (let i = 0; i < data.length; i++) if (data[i]! < 128) dark++
  return dark > data.length / 2
}
