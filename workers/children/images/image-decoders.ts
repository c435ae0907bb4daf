/** Decodes image files page by page. The only importer of `sharp` and `libheif-js`. */
import type { Metadata, Sharp, SharpOptions } from 'sharp'
import { composeOnGround } from './ground.ts'
import { createTooLargeError, loadBitmap, type Pixels, type Raster, Unreadable } from './images.ts'
import { decodeJpegXl } from './jpeg-xl.ts'
import { parseNetpbm } from './netpbm.ts'
import { parsePcx } from './pcx.ts'
import { parsePsd } from './psd.ts'

/** An open image file. Page numbers start at 1. Request one page at a time. */
export interface ImageFile {
  readonly pageCount: number
  /** @throws Unreadable. */
  page(pageNumber: number): Promise<DecodedPage>
  /** Frees memory outside the garbage-collected heap. */
  readonly close?: () => void
}

/** A page as displayed: upright, opaque, scaled down to `MAX_PIXELS` if it is larger. */
export interface DecodedPage {
  readonly pixels: Pixels
  readonly condition: ImageCondition
  /** True if no pixel of the image is visible. */
  readonly isTransparent?: boolean
}

/**
 * Completeness of a decoded image. `odd` means that the decoder only warned: the image is often complete, but counts as
 * damaged if it is blank. `damaged` means that the decoder reported errors.
 */
export type ImageCondition = 'whole' | 'odd' | 'damaged'
const CONDITIONS: readonly ImageCondition[] = ['whole', 'odd', 'damaged']

/** Pixel limit of a decoded image: an A4 page at 300 dpi. Larger images are scaled down during decoding. */
export const MAX_PIXELS = 8_700_000
// Limit of the decoded source in bytes, over all channels: an RGBA image of 64 megapixels or a grey scan of 256.
const MAX_SOURCE_BYTES = 256_000_000
// Decompression bombs have thousands of pages, which may share the same data.
const MAX_PAGES = 1000
// Decoding any frame of an animation starts at the first one, so frames are decoded in batches of up to this many.
const MAX_FRAMES = 100
// The only allowed loaders, whatever type a file claims: an SVG, for example, may reference local files.
const ALLOWED_LOADERS = ['Png', 'Jpeg', 'Webp', 'Nsgif', 'Tiff', 'Heif'].map(
  (name) => `VipsForeignLoad${name}Buffer`,
)

const loadSharp = async () => {
  const { default: sharp } = await import('sharp')
  // The child reads one page at a time and no page twice, so it needs neither concurrency nor a cache.
  sharp.concurrency(1)
  sharp.cache(false)
  sharp.block({ operation: ['VipsForeignLoad'] })
  sharp.unblock({ operation: ALLOWED_LOADERS })
  return sharp
}

/** Opens PNG, JPEG, WebP, GIF, TIFF and AVIF. @throws Unreadable. */
export async function openImage(bytes: Uint8Array): Promise<ImageFile> {
  const sharp = await loadSharp()
  const open: OpenSharp = (options) => sharp(bytes, { limitInputPixels: false, ...options })
  const first = await readMetadata(open, {})
  const { pages: pageCount = 1, format } = first
  assertPageCount(pageCount)
  const isAnimation = pageCount > 1 && (format === 'gif' || format === 'webp')
  if (isAnimation) return { pageCount, page: createFrameReader(open, first, pageCount) }
  return { pageCount, page: (pageNumber) => decodePage(open, { page: pageNumber - 1 }) }
}

function assertPageCount(pageCount: number): void {
  if (pageCount > MAX_PAGES)
    throw new Unreadable(`The image has ${pageCount} pages; the limit is ${MAX_PAGES}`)
}

type OpenSharp = (options: SharpOptions) => Sharp

/** Returns a function that decodes frames as displayed: each frame is composed with the earlier ones. */
function createFrameReader(open: OpenSharp, first: Metadata, pageCount: number): ImageFile['page'] {
  const { width, pageHeight: height = first.height } = first
  const together = Math.max(1, Math.min(MAX_FRAMES, Math.floor(MAX_PIXELS / (width * height))))
  let [from, frames] = [0, new Uint8Array()]
  let condition: ImageCondition = 'whole'
  let isTransparent = false
  return async (pageNumber) => {
    if (together === 1) return decodePage(open, { page: pageNumber - 1 })
    if (frames.length === 0 || pageNumber <= from || pageNumber > from + together) {
      from = pageNumber - 1
      const some = await decodeRaw(open, { page: from, pages: Math.min(together, pageCount - from) }, first)
      ;({ data: frames, condition, isTransparent } = some)
    }
    const size = 4 * width * height
    const at = (pageNumber - 1 - from) * size
    return { pixels: { data: frames.subarray(at, at + size), width, height }, condition, isTransparent }
  }
}

async function decodePage(open: OpenSharp, which: SharpOptions): Promise<DecodedPage> {
  const metadata = await readMetadata(open, which)
  const { width: ownWidth, height: ownHeight, channels = 4, autoOrient } = metadata
  if (ownWidth * ownHeight * channels > MAX_SOURCE_BYTES) throw createTooLargeError(ownWidth, ownHeight)
  const { width, height } = autoOrient
  const scale = Math.sqrt(MAX_PIXELS / (width * height))
  const [across, down] = [width, height].map((side) => Math.max(1, Math.floor(side * scale)))
  const { data, info, ...rest } = await decodeRaw(open, which, metadata, (image) =>
    scale >= 1 ? image.autoOrient() : image.autoOrient().resize(across, down, { fit: 'fill' }),
  )
  return { pixels: { data, width: info.width, height: info.height }, ...rest }
}

// Values of sharp's `failOn`, strictest first. The first one that succeeds has the index of the image's condition.
const STRICTNESS = ['warning', 'error', 'none'] as const

/** Decodes to opaque RGBA. Returns the intact part of a damaged image. @throws Unreadable if there is none. */
async function decodeRaw(
  open: OpenSharp,
  which: SharpOptions,
  { hasAlpha, depth }: Metadata,
  change = (image: Sharp): Sharp => image,
) {
  let complaint: unknown
  const brighten = depth === 'ushort' ? await measureRange(open, which) : (image: Sharp): Sharp => image
  for (const [damage, failOn] of STRICTNESS.entries())
    try {
      const decoded = await brighten(change(open({ ...which, failOn })))
        .toColourspace('srgb')
        .ensureAlpha()
        .raw({ depth: 'uchar' })
        .toBuffer({ resolveWithObject: true })
      const isTransparent = hasAlpha && !composeOnGround(decoded.data)
      return { ...decoded, condition: CONDITIONS[damage]!, isTransparent }
    } catch (error) {
      complaint = error
    }
  return throwDamaged(complaint)
}

/**
 * Returns a function that stretches samples of 9 to 15 bits to the 16 bits in which the file stores them. Without it,
 * white of 12 bits is nearly black.
 */
async function measureRange(open: OpenSharp, which: SharpOptions): Promise<(image: Sharp) => Sharp> {
  const stats = await open({ ...which, failOn: 'none' })
    .stats()
    .catch(throwDamaged)
  const colours = stats.isOpaque ? stats.channels : stats.channels.slice(0, -1)
  const most = Math.max(...colours.map(({ max }) => max))
  const bits = Math.ceil(Math.log2(most + 1))
  const gain = bits > 8 && bits < 16 ? 65_535 / (2 ** bits - 1) : 1
  return (image) => (gain === 1 ? image : image.linear(gain, 0))
}

async function readMetadata(open: OpenSharp, which: SharpOptions): Promise<Metadata> {
  try {
    return await open({ ...which, failOn: 'none' }).metadata()
  } catch (error) {
    return throwDamaged(error)
  }
}

/** Throws `Unreadable` with a plain message for the page. The library's own error becomes its cause. */
function throwDamaged(cause: unknown): never {
  const isUnknown = /not (configured|supported|implemented)/i.test(String(cause))
  throw new Unreadable(isUnknown ? 'The image format is not supported' : 'The image is damaged', {
    cause,
  })
}

/** Opens a Windows bitmap (BMP). @throws Unreadable. */
export async function openBmp(bytes: Uint8Array): Promise<ImageFile> {
  return { pageCount: 1, page: async () => ({ pixels: await loadBitmap(bytes), condition: 'whole' }) }
}

/** Opens an image of the Netpbm family. @throws Unreadable. */
export async function openNetpbm(bytes: Uint8Array): Promise<ImageFile> {
  const images = parseNetpbm(bytes)
  return { pageCount: images.length, page: async (pageNumber) => decodeRaster(images[pageNumber - 1]!()) }
}

/** Opens a PCX image. @throws Unreadable. */
export async function openPcx(bytes: Uint8Array): Promise<ImageFile> {
  return { pageCount: 1, page: async () => decodeRaster(parsePcx(bytes)) }
}

/** Opens the flattened image of a Photoshop file. @throws Unreadable. */
export async function openPsd(bytes: Uint8Array): Promise<ImageFile> {
  return { pageCount: 1, page: async () => decodeRaster(parsePsd(bytes)) }
}

/** Opens a JPEG XL image. @throws Unreadable. */
export async function openJpegXl(bytes: Uint8Array): Promise<ImageFile> {
  return { pageCount: 1, page: async () => decodeRaster(await decodeJpegXl(bytes)) }
}

async function decodeRaster({ data, width, height, channels, isWhole }: Raster): Promise<DecodedPage> {
  const sharp = await loadSharp()
  const raw = { width, height, channels: channels as 1 | 2 | 3 | 4 }
  const page = await decodePage((options) => sharp(data, { ...options, raw }), {})
  return isWhole ? page : { ...page, condition: 'damaged' }
}

/** Opens HEIC (phone photos) and other HEIF. @throws Unreadable. */
export async function openHeif(bytes: Uint8Array): Promise<ImageFile> {
  const { default: libheif } = await import('libheif-js/wasm-bundle.js')
  const images = new libheif.HeifDecoder().decode(bytes)
  if (images.length === 0) throw new Unreadable('The image is damaged')
  assertPageCount(images.length)
  const page = async (pageNumber: number): Promise<DecodedPage> => {
    const image = images[pageNumber - 1]!
    const [width, height] = [image.get_width(), image.get_height()]
    if (4 * width * height > MAX_SOURCE_BYTES) throw createTooLargeError(width, height)
    const pixels = new Uint8ClampedArray(4 * width * height)
    const shown = await new Promise((resolve) => image.display({ data: pixels, width, height }, resolve))
    if (!shown) throw new Unreadable('The image is damaged')
    const sharp = await loadSharp()
    return decodePage((options) => sharp(pixels, { ...options, raw: { width, height, channels: 4 } }), {})
  }
  const close = (): void => {
    for (const image of images) image.free()
  }
  return { pageCount: images.length, page, close }
}
