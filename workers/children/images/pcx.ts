/** Decodes PCX images of imaging programs and fax software. */
import { createTooLargeError, MAX_SOURCE_PIXELS, type Raster, Unreadable } from './images.ts'

const HEADER_BYTES = 128
const PALETTE_BYTES = 768
const PALETTE_MARK = 0x0c
// A byte of run length encoding yields at most 63 bytes, from two.
const MAX_EXPANSION = 32

/** Decodes a PCX file to RGB. Missing pixels are white. @throws Unreadable. */
export function parsePcx(bytes: Uint8Array): Raster {
  if (bytes.length < HEADER_BYTES) throw new Unreadable('The image is damaged')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const word = (at: number): number => view.getUint16(at, true)
  const [width, height] = [word(8) - word(4) + 1, word(10) - word(6) + 1]
  const [bits, planes, lineBytes] = [bytes[3]!, bytes[65]!, word(66)]
  const isKnown = [1, 2, 4, 8].includes(bits) && planes >= 1 && planes <= 4
  if (width < 1 || height < 1 || !isKnown || lineBytes * 8 < width * bits)
    throw new Unreadable('The image is damaged')
  if (width * height > MAX_SOURCE_PIXELS) throw createTooLargeError(width, height)
  const size = lineBytes * planes * height
  if (size > MAX_EXPANSION * bytes.length) throw new Unreadable('The image is damaged')
  const { lines, count } = expand(bytes, size)
  const palette = readPalette(bytes, bits * planes)
  const data = new Uint8Array(3 * width * height).fill(255)
  const rows = Math.min(height, Math.floor(count / (lineBytes * planes)))
  for (let y = 0, to = 0; y < rows; y++)
    for (let x = 0; x < width; x++, to += 3) {
      const line = y * lineBytes * planes
      if (bits === 8 && planes >= 3)
        for (let p = 0; p < 3; p++) data[to + p] = lines[line + p * lineBytes + x]!
      else data.set(colourOf(palette, readIndex(lines, { line, lineBytes, bits, planes }, x)), to)
    }
  return { data, width, height, channels: 3, isWhole: rows === height }
}

/** Expands the run length encoding. */
function expand(bytes: Uint8Array, size: number): { lines: Uint8Array; count: number } {
  const lines = new Uint8Array(size)
  const isEncoded = bytes[2] === 1
  let count = 0
  for (let at = HEADER_BYTES; at < bytes.length && count < size; at++) {
    const byte = bytes[at]!
    if (!isEncoded || byte < 0xc0) lines[count++] = byte
    else {
      const end = Math.min(size, count + (byte & 0x3f))
      lines.fill(bytes[++at] ?? 0, count, end)
      count = end
    }
  }
  return { lines, count }
}

interface Layout {
  readonly line: number
  readonly lineBytes: number
  readonly bits: number
  readonly planes: number
}

/** Reads the palette index of a pixel: its bits in each plane. */
function readIndex(lines: Uint8Array, { line, lineBytes, bits, planes }: Layout, x: number): number {
  const [byte, shift] = [(x * bits) >> 3, 8 - bits - ((x * bits) & 7)]
  let index = 0
  for (let p = 0; p < planes; p++)
    index |= ((lines[line + p * lineBytes + byte]! >> shift) & ((1 << bits) - 1)) << (p * bits)
  return index
}

/** Returns the palette; null for two colours, which are black and white. */
function readPalette(bytes: Uint8Array, bits: number): Uint8Array | null {
  if (bits === 1) return null
  const at = bytes.length - PALETTE_BYTES
  if (bits <= 4) return bytes.subarray(16, 64)
  if (at > HEADER_BYTES && bytes[at - 1] === PALETTE_MARK) return bytes.subarray(at)
  // Without a palette, the levels are those of grey.
  return Uint8Array.from({ length: PALETTE_BYTES }, (_, i) => Math.floor(i / 3))
}

function colourOf(palette: Uint8Array | null, index: number): Uint8Array | number[] {
  if (palette === null) return index === 0 ? [0, 0, 0] : [255, 255, 255]
  return palette.subarray(3 * index, 3 * index + 3)
}
