/** Pixels: decoding, scaling, PNG, grey levels. The only importer of `@napi-rs/canvas`. */
import type { Canvas, Image } from '@napi-rs/canvas'
import { type Grey, GreyLevels } from './grey.ts'

export type { Canvas } from '@napi-rs/canvas'

/** Something in the document that no retry cures. The message is a plain sentence for the page's `detail`. */
export class Unreadable extends Error {
  override name = 'Unreadable'
}

/** A document is encrypted and does not open without the right password. */
export class Locked extends Unreadable {
  constructor(isGiven: boolean) {
    super(
      isGiven
        ? 'The document is encrypted, and the password does not open it'
        : 'The document is encrypted and needs a password',
    )
  }
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

/** Largest picture inside a PDF that is decoded, in pixels: 256 MB of RGBA. */
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

/** A decoded picture: four bytes for each pixel, row by row, of which the last is 255. */
export interface Pixels {
  readonly data: Uint8Array | Uint8ClampedArray
  readonly width: number
  readonly height: number
}

/** A decoded picture at `scale`. */
export async function canvasOf({ data, width, height }: Pixels, scale: number): Promise<Canvas> {
  const { createCanvas, ImageData } = await library()
  const canvas = newCanvas(createCanvas, width, height)
  const clamped = new Uint8ClampedArray(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength)
  canvas.getContext('2d').putImageData(new ImageData(clamped, width, height), 0, 0)
  return scale === 1 ? canvas : scaled(canvas, scale).finally(() => release(canvas))
}

/** Decodes a bitmap of Windows. Its size is read from the header first, so a bomb costs nothing. @throws Unreadable. */
export async function loadBitmap(bytes: Uint8Array): Promise<Pixels> {
  if (bytes.length < 30) throw new Unreadable('The image is damaged')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const isOld = view.getUint32(14, true) === 12
  const width = isOld ? view.getUint16(18, true) : Math.abs(view.getInt32(18, true))
  const height = isOld ? view.getUint16(20, true) : Math.abs(view.getInt32(22, true))
  if (width * height > CANVAS_PIXELS) throw tooLarge(width, height)
  const { loadImage } = await library()
  const image = await loadImage(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)).catch(
    (cause) => {
      throw new Unreadable('The image is damaged', { cause })
    },
  )
  const canvas = await scaled(image, 1)
  const { data } = canvas.getContext('2d').getImageData(0, 0, width, height)
  release(canvas)
  return { data, width, height }
}

export const tooLarge = (width: number, height: number): Unreadable =>
  new Unreadable(`The image is too large to be decoded (${width} x ${height} pixels)`)

type Size = Pick<Pixels, 'width' | 'height'>

/** The size of a picture at `scale`, e.g. 0.5 for half the width. */
export const scaledSize = (picture: Size, scale: number): { width: number; height: number } => ({
  width: Math.max(1, Math.round(picture.width * scale)),
  height: Math.max(1, Math.round(picture.height * scale)),
})

/** The picture on white at `scale`. */
export async function scaled(picture: Picture, scale: number): Promise<Canvas> {
  const { width, height } = scaledSize(picture, scale)
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

/** Grey levels for reading. */
export function greyOf({ data, width, height }: Pixels): Grey {
  const levels = new GreyLevels(width, height)
  levels.add(data)
  return levels.grey()
}

/** Grey levels of a canvas, in strips so that no second full copy of the RGBA exists. */
export function toGrey(canvas: Canvas): Grey {
  const { width, height } = canvas
  const context = canvas.getContext('2d')
  const levels = new GreyLevels(width, height)
  const rows = 256
  for (let top = 0; top < height; top += rows)
    levels.add(context.getImageData(0, top, width, Math.min(rows, height - top)).data)
  return levels.grey()
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

/** Whether most of it is dark. */
export function isDark({ data }: Grey): boolean {
  let dark = 0
  for (let i = 0; i < data.length; i++) if (data[i]! < 128) dark++
  return dark > data.length / 2
}
