/** Finds pictures on PDF pages that also have text. */
import { createHash } from 'node:crypto'
import type { Native } from './pdfium-native.ts'

const TEXT_OBJECT = 1
const IMAGE_OBJECT = 3
const METADATA_BYTES = 28
const GREY_BITS = 8
const MAX_OBJECTS = 20_000
const MAX_PICTURES = 20
// Limits of a picture that may hold words. Most logos are smaller.
const MIN_WIDTH_POINTS = 90
const MIN_HEIGHT_POINTS = 36
const MIN_PAGE_SHARE = 0.03
const MIN_PIXELS = 20_000
// More bytes than this are hashed in part.
const MAX_HASHED_BYTES = 2 ** 20

/** A picture's place on the displayed page, as shares of its width and height from the top left corner. */
export interface PagePicture {
  readonly key: string
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
  readonly isColoured: boolean
}

/** Returns the pictures that are large enough to hold words, except those behind text. */
export function findPictures(native: Native, page: number): readonly PagePicture[] {
  const count = native._FPDFPage_CountObjects(page)
  if (count < 1 || count > MAX_OBJECTS) return []
  const objects: number[] = []
  for (let i = 0; i < count && objects.length < MAX_PICTURES; i++) {
    const object = native._FPDFPage_GetObject(page, i)
    if (native._FPDFPageObj_GetType(object) === IMAGE_OBJECT) objects.push(object)
  }
  if (objects.length === 0) return []
  const at = native.wasmExports.malloc(METADATA_BYTES)
  if (at === 0) return []
  try {
    const area = native._FPDF_GetPageWidthF(page) * native._FPDF_GetPageHeightF(page)
    const bounds = objects
      .map((object) => ({ object, box: readBounds(native, object, at) }))
      .filter(({ box }) => isLarge(box, area))
    if (bounds.length === 0) return []
    const texts = findTextCentres(native, page, count, at)
    return bounds
      .filter(({ box }) => !texts.some(([x, y]) => isInside(box, x, y)))
      .flatMap(({ object, box }) => describePicture(native, page, object, box, at) ?? [])
  } finally {
    native.wasmExports.free(at)
  }
}

/** Bounds in points of the page's own coordinates. */
interface Box {
  readonly left: number
  readonly bottom: number
  readonly right: number
  readonly top: number
}

function readBounds(native: Native, object: number, at: number): Box {
  if (native._FPDFPageObj_GetBounds(object, at, at + 4, at + 8, at + 12) === 0)
    return { left: 0, bottom: 0, right: 0, top: 0 }
  const [left, bottom, right, top] = native.HEAPF32.subarray(at >> 2, (at >> 2) + 4) as never as number[]
  return { left: left!, bottom: bottom!, right: right!, top: top! }
}

function isLarge({ left, bottom, right, top }: Box, area: number): boolean {
  const [width, height] = [right - left, top - bottom]
  return (
    Math.max(width, height) >= MIN_WIDTH_POINTS &&
    Math.min(width, height) >= MIN_HEIGHT_POINTS &&
    width * height >= MIN_PAGE_SHARE * area
  )
}

const isInside = ({ left, bottom, right, top }: Box, x: number, y: number): boolean =>
  x > left && x < right && y > bottom && y < top

function findTextCentres(native: Native, page: number, count: number, at: number): [number, number][] {
  const centres: [number, number][] = []
  for (let i = 0; i < count; i++) {
    const object = native._FPDFPage_GetObject(page, i)
    if (native._FPDFPageObj_GetType(object) !== TEXT_OBJECT) continue
    const { left, bottom, right, top } = readBounds(native, object, at)
    if (right > left) centres.push([(left + right) / 2, (bottom + top) / 2])
  }
  return centres
}

// Size of the square of device units to which PDFium maps the page.
const DEVICE_SIZE = 100_000

function describePicture(
  native: Native,
  page: number,
  object: number,
  box: Box,
  at: number,
): PagePicture | null {
  if (native._FPDFImageObj_GetImageMetadata(object, page, at) === 0) return null
  const [width, height, , , bits] = native.HEAPU32.subarray(at >> 2, (at >> 2) + 5) as never as number[]
  if (width! * height! < MIN_PIXELS) return null
  const toShare = (x: number, y: number): [number, number] => {
    native._FPDF_PageToDevice(page, 0, 0, DEVICE_SIZE, DEVICE_SIZE, 0, x, y, at, at + 4)
    const [across, down] = native.HEAPU32.subarray(at >> 2, (at >> 2) + 2) as never as number[]
    const clamp = (value: number): number => Math.max(0, Math.min(1, (value | 0) / DEVICE_SIZE))
    return [clamp(across!), clamp(down!)]
  }
  const [x1, y1] = toShare(box.left, box.bottom)
  const [x2, y2] = toShare(box.right, box.top)
  return {
    key: `${width} ${height} ${hashImage(native, object)}`,
    left: Math.min(x1, x2),
    right: Math.max(x1, x2),
    top: Math.min(y1, y2),
    bottom: Math.max(y1, y2),
    isColoured: bits! > GREY_BITS,
  }
}

/** Returns a hash of an image's encoded bytes. */
function hashImage(native: Native, object: number): string {
  const size = native._FPDFImageObj_GetImageDataRaw(object, 0, 0)
  const at = size > 0 ? native.wasmExports.malloc(size) : 0
  if (at === 0) return ''
  try {
    native._FPDFImageObj_GetImageDataRaw(object, at, size)
    const bytes = native.HEAPU8.subarray(at, at + Math.min(size, MAX_HASHED_BYTES))
    return `${size} ${createHash('sha1').update(bytes).digest('base64')}`
  } finally {
    native.wasmExports.free(at)
  }
}
