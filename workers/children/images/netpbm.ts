/** Decodes images of the Netpbm family (PBM, PGM, PPM, PAM), which SANE scanners write by default. */
import { createTooLargeError, MAX_SOURCE_PIXELS, type Raster, Unreadable } from './images.ts'

interface Header {
  /** The digit of the signature: 1 to 3 for text, 4 to 6 for binary samples, 7 for PAM. */
  readonly kind: number
  readonly width: number
  readonly height: number
  /** Samples per pixel. */
  readonly depth: number
  readonly max: number
  /** Offset of the samples. */
  readonly start: number
}

const MAX_IMAGES = 1000
const MAX_HEADER_BYTES = 4096

/** Finds the images of a file: a binary one may hold several. Each is decoded on demand. @throws Unreadable. */
export function parseNetpbm(bytes: Uint8Array): readonly (() => Raster)[] {
  const images: Header[] = []
  let at = 0
  while (at < bytes.length && images.length < MAX_IMAGES) {
    const header = parseHeader(bytes, at)
    if (header === null) break
    images.push(header)
    if (header.kind <= 3) break
    at = header.start + measureRow(header) * header.height
  }
  if (images.length === 0) throw new Unreadable('The image is damaged')
  return images.map(
    (header) => () => (header.kind <= 3 ? readText(bytes, header) : readBinary(bytes, header)),
  )
}

const isBitmap = ({ kind }: Header): boolean => kind === 1 || kind === 4

/** Returns the size of a row of binary samples in bytes. */
const measureRow = ({ kind, width, depth, max }: Header): number =>
  kind === 4 ? Math.ceil(width / 8) : width * depth * (max > 255 ? 2 : 1)

function parseHeader(bytes: Uint8Array, from: number): Header | null {
  const head = Buffer.from(bytes.subarray(from, from + MAX_HEADER_BYTES)).toString('latin1')
  const [, digit] = /^P([1-7])/.exec(head) ?? []
  if (digit === undefined) return null
  const kind = Number(digit)
  if (kind === 7) return parsePamHeader(head, from)
  const isBits = kind === 1 || kind === 4
  // Comments may precede each number.
  const number = '(?:\\s|#[^\\n]*\\n)+(\\d{1,9})'
  const found = new RegExp(`^P.${number}${number}${isBits ? '' : number}\\s`).exec(head)
  if (found === null) return null
  const [width = 0, height = 0, max = 1] = found.slice(1).map(Number)
  const depth = kind === 3 || kind === 6 ? 3 : 1
  return checkHeader({ kind, width, height, depth, max, start: from + found[0].length })
}

function parsePamHeader(head: string, from: number): Header | null {
  const end = head.indexOf('ENDHDR\n')
  if (end < 0) return null
  const read = (name: string): number =>
    Number(new RegExp(`^${name}\\s+(\\d{1,9})\\s*$`, 'm').exec(head.slice(0, end))?.[1] ?? 0)
  const start = from + end + 'ENDHDR\n'.length
  return checkHeader({
    ...{ kind: 7, width: read('WIDTH'), height: read('HEIGHT'), depth: read('DEPTH'), max: read('MAXVAL') },
    start,
  })
}

function checkHeader(header: Header): Header {
  const { width, height, depth, max } = header
  if (width < 1 || height < 1 || depth < 1 || depth > 4 || max < 1 || max > 65_535)
    throw new Unreadable('The image is damaged')
  if (width * height > MAX_SOURCE_PIXELS) throw createTooLargeError(width, height)
  return header
}

// Share of the samples that must be there. The file's size limits what a header can make the reader allocate.
const MIN_SHARE = 0.01

function createRaster(header: Header, present: number): Raster {
  const { width, height, depth } = header
  const wanted = width * height * depth
  if (present < MIN_SHARE * wanted) throw new Unreadable('The image is damaged')
  // Missing samples are white.
  return {
    data: new Uint8Array(wanted).fill(255),
    width,
    height,
    channels: depth,
    isWhole: present >= wanted,
  }
}

function readBinary(bytes: Uint8Array, header: Header): Raster {
  const { width, height, depth, max, start } = header
  const row = measureRow(header)
  const isBits = isBitmap(header)
  const rows = (bytes.length - start) / row
  const raster = createRaster(header, Math.floor(Math.min(rows, height) * width * depth))
  const { data } = raster
  const wide = max > 255
  const scale = 255 / max
  for (let y = 0, to = 0; y < height && y < Math.floor(rows); y++) {
    const from = start + y * row
    for (let x = 0; x < width * depth; x++, to++)
      if (isBits) data[to] = (bytes[from + (x >> 3)]! >> (7 - (x & 7))) & 1 ? 0 : 255
      else if (wide)
        data[to] = Math.min(255, ((bytes[from + 2 * x]! << 8) | bytes[from + 2 * x + 1]!) * scale)
      else data[to] = max === 255 ? bytes[from + x]! : Math.min(255, bytes[from + x]! * scale)
  }
  return raster
}

const ZERO = 0x30
const NINE = 0x39
const HASH = 0x23
const LINE_FEED = 0x0a

function readText(bytes: Uint8Array, header: Header): Raster {
  const { max, start } = header
  const isBits = isBitmap(header)
  // Without spaces between the digits, a bitmap has a sample in each byte. Other samples need a byte and a space.
  const raster = createRaster(header, Math.ceil((bytes.length - start) / (isBits ? 1 : 2)))
  const { data } = raster
  let [to, value] = [0, -1]
  for (let at = start; at <= bytes.length && to < data.length; at++) {
    const byte = bytes[at] ?? LINE_FEED
    const isDigit = byte >= ZERO && byte <= NINE
    if (isBits) {
      if (isDigit) data[to++] = byte === ZERO ? 255 : 0
    } else if (isDigit) value = Math.min(max, Math.max(0, value) * 10 + byte - ZERO)
    else if (value >= 0) {
      data[to++] = (value * 255) / max
      value = -1
    }
    if (byte === HASH) while (at < bytes.length && bytes[at] !== LINE_FEED) at++
  }
  return { ...raster, isWhole: to === data.length }
}
