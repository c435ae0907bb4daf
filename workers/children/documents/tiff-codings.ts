/** Decodes TIFF pages that the vision engine can't decode: Deflate, JPEG, and tiles. */
import { inflateSync } from 'node:zlib'
import { SOURCE_PIXELS, Unreadable } from './images.ts'
import { type Directory, SIZES, Tag } from './tiff-directories.ts'

// What one page may decompress to: the largest picture in RGBA.
const MOST_BYTES = 4 * SOURCE_PIXELS
// Tags that no longer apply to a page that is stored without compression and tiles.
const DROPPED = new Set<number>([
  Tag.predictor,
  Tag.tileWidth,
  Tag.tileHeight,
  Tag.tileOffsets,
  Tag.tileCounts,
])

interface Chunks {
  readonly tiled: boolean
  readonly width: number
  readonly height: number
  readonly parts: Uint8Array[]
}

/** The strips or tiles that a page is made of, as they are in the file. */
function chunksOf(bytes: Uint8Array, directory: Directory): Chunks {
  const tiled = directory.fields.has(Tag.tileOffsets)
  const offsets = directory.values(tiled ? Tag.tileOffsets : Tag.stripOffsets)
  const counts = directory.values(tiled ? Tag.tileCounts : Tag.stripCounts)
  const height = directory.first(Tag.height, 0)
  return {
    tiled,
    width: directory.first(tiled ? Tag.tileWidth : Tag.width, 0),
    height: tiled
      ? directory.first(Tag.tileHeight, 0)
      : Math.min(height, directory.first(Tag.rowsPerStrip, height)),
    parts: offsets.map((offset, i) => bytes.subarray(offset, offset + (counts[i] ?? 0))),
  }
}

/** The page as a file of its own without compression and tiles: libtiff supports all the rest. Throws `Unreadable`. */
export function uncoded(bytes: Uint8Array, directory: Directory): Uint8Array {
  const { tiled, width, height, parts } = chunksOf(bytes, directory)
  const apart = directory.first(Tag.planar, 1) === 2
  const samples = apart ? 1 : directory.first(Tag.samples, 1)
  const bits = directory.first(Tag.bits, 1)
  const row = Math.ceil((width * samples * bits) / 8)
  const predictor = directory.first(Tag.predictor, 1)
  const whole = bits === 8 || bits === 16
  if (predictor > 2 || (predictor === 2 && !whole) || (tiled && (apart || !whole)))
    throw new Unreadable('TIFF images with this kind of prediction or tiles cannot be decoded')
  if (row * height < 1 || row * height * parts.length > MOST_BYTES)
    throw new Unreadable('The image is too large to be decoded')
  const plain = parts.map((part) => {
    const inflated = directory.first(Tag.coding, 1) !== 1
    const data = inflated ? inflateSync(part, { maxOutputLength: row * height }) : Buffer.from(part)
    if (inflated && predictor === 2) undoDifferences(data, row, samples, bits, directory.little)
    return data
  })
  return plainFile(bytes, directory, tiled ? [untiled(plain, directory, width, height)] : plain, tiled)
}

/** Joins tiles, which go from left to right and top to bottom, into one strip. */
function untiled(tiles: readonly Buffer[], directory: Directory, width: number, height: number): Buffer {
  const [pageWidth, pageHeight] = [directory.first(Tag.width, 0), directory.first(Tag.height, 0)]
  const pixel = (directory.first(Tag.samples, 1) * directory.first(Tag.bits, 8)) / 8
  const strip = Buffer.alloc(pageWidth * pageHeight * pixel, 255)
  const across = Math.ceil(pageWidth / width)
  for (const [i, tile] of tiles.entries()) {
    const [left, top] = [(i % across) * width, Math.floor(i / across) * height]
    const length = Math.min(width, pageWidth - left) * pixel
    for (let y = 0; y < height && top + y < pageHeight; y++) {
      const from = y * width * pixel
      strip.set(tile.subarray(from, from + length), ((top + y) * pageWidth + left) * pixel)
    }
  }
  return strip
}

// TIFF 6.0, section 14: every sample is stored as its difference from the one to the left.
function undoDifferences(data: Buffer, row: number, samples: number, bits: number, little: boolean): void {
  const step = (samples * bits) / 8
  for (let start = 0; start + row <= data.length; start += row) {
    const line = data.subarray(start, start + row)
    for (let at = step; at < row; at += bits / 8) {
      if (bits === 8) line[at] = line[at]! + line[at - step]!
      else if (little) line.writeUInt16LE((line.readUInt16LE(at) + line.readUInt16LE(at - step)) & 0xffff, at)
      else line.writeUInt16BE((line.readUInt16BE(at) + line.readUInt16BE(at - step)) & 0xffff, at)
    }
  }
}

interface Entry {
  readonly tag: number
  readonly kind: number
  readonly count: number
  readonly data: Uint8Array
}

/** A classic TIFF of one page: its tags as they are, with new, uncompressed chunks. */
function plainFile(
  bytes: Uint8Array,
  directory: Directory,
  chunks: readonly Uint8Array[],
  one: boolean,
): Uint8Array {
  const { little } = directory
  const longs = (values: readonly number[]): Uint8Array => {
    const data = new DataView(new ArrayBuffer(4 * values.length))
    for (const [i, value] of values.entries()) data.setUint32(4 * i, value, little)
    return new Uint8Array(data.buffer)
  }
  const starts: number[] = []
  let end = 8
  for (const chunk of chunks) {
    starts.push(end)
    end += chunk.length + (chunk.length & 1)
  }
  const own = new Map<number, readonly number[]>([
    [Tag.coding, [1]],
    [Tag.stripOffsets, starts],
    [Tag.stripCounts, chunks.map((chunk) => chunk.length)],
    ...(one ? [[Tag.rowsPerStrip, [directory.first(Tag.height, 0)]] as const] : []),
  ])
  const entries: Entry[] = [...own].map(([tag, values]) => ({
    tag,
    kind: 4,
    count: values.length,
    data: longs(values),
  }))
  for (const [tag, { kind, count, at }] of directory.fields) {
    // A classic file can't have BigTIFF's own types; pictures only need them for offsets.
    if (own.has(tag) || DROPPED.has(tag) || SIZES[kind] === undefined || kind >= 16) continue
    entries.push({ tag, kind, count, data: bytes.subarray(at, at + count * SIZES[kind]!) })
  }
  entries.sort((a, b) => a.tag - b.tag)
  return assembled(little, end, chunks, starts, entries)
}

function assembled(
  little: boolean,
  end: number,
  chunks: readonly Uint8Array[],
  starts: readonly number[],
  entries: readonly Entry[],
): Uint8Array {
  const large = entries.reduce(
    (sum, { data }) => sum + (data.length > 4 ? data.length + (data.length & 1) : 0),
    0,
  )
  const file = new Uint8Array(end + 2 + 12 * entries.length + 4 + large)
  const view = new DataView(file.buffer)
  view.setUint16(0, little ? 0x4949 : 0x4d4d)
  view.setUint16(2, 42, little)
  view.setUint32(4, end, little)
  for (const [i, chunk] of chunks.entries()) file.set(chunk, starts[i]!)
  view.setUint16(end, entries.length, little)
  let free = end + 2 + 12 * entries.length + 4
  for (const [i, { tag, kind, count, data }] of entries.entries()) {
    const at = end + 2 + 12 * i
    view.setUint16(at, tag, little)
    view.setUint16(at + 2, kind, little)
    view.setUint32(at + 4, count, little)
    file.set(data, data.length > 4 ? free : at + 8)
    if (data.length <= 4) continue
    view.setUint32(at + 8, free, little)
    free += data.length + (data.length & 1)
  }
  return file
}

// An Adobe segment that says that there is no colour transform: without it, three colours are taken for YCbCr.
const AS_RGB = Buffer.from('ffee000e41646f626500640000000000', 'hex')
const RGB = 2

/**
 * The JPEGs of a page and their positions. Its chunks are JPEGs without their tables, and the tables are a JPEG without
 * a picture (TIFF technical note 2).
 */
export function jpegsOf(bytes: Uint8Array, directory: Directory, pageWidth: number) {
  const { width, height, parts } = chunksOf(bytes, directory)
  const tables = Uint8Array.from(directory.values(Tag.jpegTables))
  const head = tables.length > 4 ? tables.subarray(2, -2) : tables.subarray(0, 0)
  const colours = directory.first(Tag.photometric, 6) === RGB ? AS_RGB : new Uint8Array()
  const across = Math.max(1, Math.ceil(pageWidth / Math.max(1, width)))
  return parts.map((part, i) => ({
    bytes: Buffer.concat([Buffer.from('ffd8', 'hex'), colours, head, part.subarray(2)]),
    x: (i % across) * width,
    y: Math.floor(i / across) * height,
  }))
}
