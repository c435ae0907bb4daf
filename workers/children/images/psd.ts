/** Decodes the flattened image of Photoshop files (PSD and PSB). Layers are not read. */
import { createTooLargeError, MAX_SOURCE_PIXELS, type Raster, Unreadable } from './images.ts'

const HEADER_BYTES = 26
const LARGE_VERSION = 2
const RUN_LENGTH = 1
// Two bytes of run length encoding yield at most 128.
const MAX_EXPANSION = 64

// Other modes have one channel of grey first.
const MODE = { indexed: 2, rgb: 3, cmyk: 4 }

interface Layout {
  readonly width: number
  readonly height: number
  readonly depth: number
  readonly mode: number
  /** Bytes of a line of one channel. */
  readonly lineBytes: number
  /** Number of channels that show colours; others are masks. */
  readonly shown: number
}

/** Decodes a file to RGB. Missing pixels are white. @throws Unreadable. */
export function parsePsd(bytes: Uint8Array): Raster {
  try {
    return decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  } catch (cause) {
    throw cause instanceof Unreadable ? cause : new Unreadable('The image is damaged', { cause })
  }
}

function decode(file: Buffer): Raster {
  const isLarge = file.readUInt16BE(4) === LARGE_VERSION
  const [channels, height, width] = [file.readUInt16BE(12), file.readUInt32BE(14), file.readUInt32BE(18)]
  const [depth, mode] = [file.readUInt16BE(22), file.readUInt16BE(24)]
  if (![1, 8, 16].includes(depth)) throw new Unreadable('The image format is not supported')
  if (width * height > MAX_SOURCE_PIXELS) throw createTooLargeError(width, height)
  const paletteAt = HEADER_BYTES + 4
  const palette = file.subarray(paletteAt, paletteAt + file.readUInt32BE(HEADER_BYTES))
  const resourcesAt = paletteAt + palette.length
  const layersAt = resourcesAt + 4 + file.readUInt32BE(resourcesAt)
  const layersBytes = isLarge ? 8 + Number(file.readBigUInt64BE(layersAt)) : 4 + file.readUInt32BE(layersAt)
  const compression = file.readUInt16BE(layersAt + layersBytes)
  if (compression > RUN_LENGTH) throw new Unreadable('The image format is not supported')
  const stored = file.subarray(layersAt + layersBytes + 2)
  const lineBytes = Math.ceil((width * depth) / 8)
  const shown = mode === MODE.rgb ? 3 : mode === MODE.cmyk ? 4 : 1
  if (width < 1 || height < 1 || channels < shown || lineBytes * height > MAX_EXPANSION * stored.length)
    throw new Unreadable('The image is damaged')
  const layout = { width, height, depth, mode, lineBytes, shown }
  const data = new Uint8Array(3 * width * height).fill(255)
  const lines =
    compression === RUN_LENGTH
      ? expandLines(stored, layout, channels, isLarge ? 4 : 2)
      : cutLines(stored, layout)
  let count = 0
  for (const line of lines) paintLine(data, layout, palette, line, count++)
  return { data, width, height, channels: 3, isWhole: count === shown * height }
}

/** Lists the lines of the shown channels, one channel after the other. */
function* cutLines(stored: Buffer, { lineBytes, height, shown }: Layout): Generator<Uint8Array> {
  for (let n = 0; n < shown * height && (n + 1) * lineBytes <= stored.length; n++)
    yield stored.subarray(n * lineBytes, (n + 1) * lineBytes)
}

/** Lists the lines of the shown channels. Their sizes precede them. */
function* expandLines(
  stored: Buffer,
  { lineBytes, height, shown }: Layout,
  channels: number,
  sizeBytes: number,
): Generator<Uint8Array> {
  const line = new Uint8Array(lineBytes)
  let at = channels * height * sizeBytes
  for (let n = 0; n < shown * height; n++) {
    const size = stored.readUIntBE(n * sizeBytes, sizeBytes)
    if (at + size > stored.length) return
    expandLine(stored.subarray(at, at + size), line)
    at += size
    yield line
  }
}

/** Expands a line of PackBits. */
function expandLine(packed: Buffer, line: Uint8Array): void {
  let to = 0
  for (let at = 0; at < packed.length && to < line.length; ) {
    const code = packed.readInt8(at++)
    if (code >= 0) {
      const literal = packed.subarray(at, at + Math.min(code + 1, line.length - to))
      line.set(literal, to)
      at += code + 1
      to += code + 1
    } else if (code !== -128) {
      line.fill(packed[at++] ?? 0, to, to + 1 - code)
      to += 1 - code
    }
  }
}

function paintLine(data: Uint8Array, layout: Layout, palette: Buffer, line: Uint8Array, n: number): void {
  const { width, height, depth, mode } = layout
  const [channel, y] = [Math.floor(n / height), n % height]
  const step = depth / 8
  for (let x = 0, to = 3 * y * width; x < width; x++, to += 3)
    if (mode === MODE.rgb) data[to + channel] = line[x * step]!
    else if (mode === MODE.cmyk) {
      // Levels are inverted, so that 0 is full ink. Black darkens the other inks.
      if (channel < 3) data[to + channel] = line[x * step]!
      else for (let c = 0; c < 3; c++) data[to + c] = (data[to + c]! * line[x * step]!) / 255
    } else if (mode === MODE.indexed)
      for (let c = 0; c < 3; c++) data[to + c] = palette[256 * c + line[x]!] ?? 255
    else data.fill(depth === 1 ? (isSet(line, x) ? 0 : 255) : line[x * step]!, to, to + 3)
}

const isSet = (line: Uint8Array, x: number): boolean => ((line[x >> 3]! >> (7 - (x & 7))) & 1) === 1
