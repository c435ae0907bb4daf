/** Decodes JPEG XL (ISO/IEC 18181) with libjxl. The only importer of `@jsquash/jxl`. */
import { readFile } from 'node:fs/promises'
import { createTooLargeError, provideImageData, type Raster, Unreadable } from './images.ts'

/** The decoder needs 60 bytes per pixel, which leaves room for the rest of the child: an A4 page at 300 dpi. */
const MAX_DECODED_PIXELS = 8_800_000

async function createDecoder() {
  // The decoder would define a class of its own, which pdfjs could not use.
  await provideImageData()
  const { default: create } = await import('@jsquash/jxl/codec/dec/jxl_dec.js')
  const wasmBinary = await readFile(new URL(import.meta.resolve('@jsquash/jxl/codec/dec/jxl_dec.wasm')))
  return create({ wasmBinary, printErr: () => {} })
}

/** Decodes an image to RGBA; the first frame of an animation. @throws Unreadable. */
export async function decodeJpegXl(bytes: Uint8Array): Promise<Raster> {
  const { width, height } = readSize(bytes)
  if (width * height > MAX_DECODED_PIXELS) throw createTooLargeError(width, height)
  // Each image has a decoder of its own: the memory of one never shrinks.
  const decoder = await createDecoder()
  try {
    const image = decoder.decode(bytes)
    if (image === null) throw new Unreadable('The image is damaged')
    return {
      data: new Uint8Array(image.data.buffer),
      width: image.width,
      height: image.height,
      channels: 4,
      isWhole: true,
    }
  } catch (cause) {
    throw cause instanceof Unreadable ? cause : new Unreadable('The image is damaged', { cause })
  }
}

/** Reads the size from the header of the image (ISO/IEC 18181-1, D.2). @throws Unreadable. */
function readSize(bytes: Uint8Array): { width: number; height: number } {
  const codestream = findCodestream(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  if (codestream[0] !== 0xff || codestream[1] !== 0x0a) throw new Unreadable('The image is damaged')
  const read = createBitReader(codestream.subarray(2))
  const isSmall = read(1) === 1
  const readSide = (): number => 1 + (isSmall ? 8 * read(5) + 7 : read([9, 13, 18, 30][read(2)]!))
  const height = readSide()
  const [across, down] = RATIOS[read(3)] ?? []
  return { height, width: across === undefined ? readSide() : Math.floor((height * across) / down!) }
}

// Width by height; null if the width follows.
const RATIOS = [null, [1, 1], [12, 10], [4, 3], [3, 2], [16, 9], [5, 4], [2, 1]] as const

/** Returns a function that reads numbers of some bits, lowest first. Bits beyond the end are zero. */
function createBitReader(bytes: Buffer): (bits: number) => number {
  let at = 0
  return (bits) => {
    let value = 0
    for (let n = 0; n < bits; n++, at++) value += (((bytes[at >> 3] ?? 0) >> (at & 7)) & 1) * 2 ** n
    return value
  }
}

/** Returns the bytes from the codestream on, which may lie in a container of boxes. */
function findCodestream(file: Buffer): Buffer {
  if (file[0] === 0xff) return file
  for (let at = 0; at + 8 <= file.length; ) {
    const [size, type] = [file.readUInt32BE(at), file.toString('latin1', at + 4, at + 8)]
    if (type === 'jxlc' || type === 'jxlp') {
      const head = size === 1 ? 16 : 8
      // A part begins with its number.
      return file.subarray(at + head + (type === 'jxlp' ? 4 : 0))
    }
    if (size < 8) break
    at += size
  }
  return Buffer.alloc(0)
}
