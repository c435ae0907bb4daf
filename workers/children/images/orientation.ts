/** Detects scans that are sideways or upside down, and reads them upright. */

import type { PlacedWord } from '../../../tasks/context.ts'
import { readCpuMs } from '../../../tasks/platform/process-usage.ts'
import { placeWord } from '../documents/placed-words.ts'
import { countLetters } from '../documents/texts.ts'
import type { OcrResult } from '../ocr/vision.ts'
import type { GreyImage } from './grey.ts'

// Model confidence: 20 to 50 for upside-down or sideways text, 70 to 85 for upright receipts. The worst receipts reach 36
// upright and at most 34 in any other orientation.
export const MIN_SURE_CONFIDENCE = 55
const MIN_CONFIDENCE_GAIN = 10
// Fewer letters than this cannot distinguish upright from upside down.
const MIN_LETTERS = 20
// With less CPU time left than this, another attempt is not worth starting.
const MIN_ATTEMPT_MS = 3000

/** Reads an image in at most `limitMs` of CPU time. */
export type Read = (grey: GreyImage, limitMs: number) => Promise<OcrResult>

/**
 * Reads an image that may be rotated by quarter turns. The first attempt follows the detected line direction. If its
 * confidence is low, the second uses the rotation in which a part of the image reads best. `end` is the deadline for
 * all attempts, in CPU milliseconds of this process (`readCpuMs`).
 */
export async function recognizeUpright(grey: GreyImage, read: Read, end: number): Promise<OcrResult> {
  const first = hasVerticalLines(grey) ? 1 : 0
  const readRotated = async (quarters: number): Promise<OcrResult> => {
    const rotated = await read(rotateImage(grey, quarters), end - readCpuMs())
    return { ...rotated, words: rotated.words.map((word) => turnBack(word, quarters)) }
  }
  const seen = await readRotated(first)
  if (seen.confidence >= MIN_SURE_CONFIDENCE) return seen
  const better = await findBestRotation(findTextPart(grey), first, read, end).catch(() => first)
  if (better === first || end - readCpuMs() < MIN_ATTEMPT_MS) return seen
  const other = await readRotated(better).catch(() => seen)
  return other.confidence > seen.confidence ? other : seen
}

async function findBestRotation(part: GreyImage, first: number, read: Read, end: number): Promise<number> {
  let best = { quarters: first, confidence: 0 }
  for (const more of [0, 2, 1, 3]) {
    if (best.confidence >= MIN_SURE_CONFIDENCE || end - readCpuMs() < MIN_ATTEMPT_MS) break
    const quarters = (first + more) % 4
    const { text, confidence } = await read(rotateImage(part, quarters), end - readCpuMs())
    const isSurer = countLetters(text) >= MIN_LETTERS && confidence > best.confidence + MIN_CONFIDENCE_GAIN
    if (more === 0 || isSurer) best = { quarters, confidence }
  }
  return best.quarters
}

// Size of the part that `findTextPart` returns, in cells: ten lines of six words at 250 dpi, a tenth of an A4 page.
const PART_CELLS = 4
const CELL_SIZE = 200

/** Returns the part of an image with the most edges, where text is most likely. */
export function findTextPart(grey: GreyImage): GreyImage {
  const { data, width, height } = grey
  const side = PART_CELLS * CELL_SIZE
  if (width <= side && height <= side) return grey
  const [across, down] = [Math.ceil(width / CELL_SIZE), Math.ceil(height / CELL_SIZE)]
  const edges = new Uint32Array(across * down)
  for (let y = 0; y < height; y++) {
    const row = Math.floor(y / CELL_SIZE) * across
    for (let x = 1, at = y * width + 1; x < width; x++, at++)
      if (data[at]! < INK_THRESHOLD !== data[at - 1]! < INK_THRESHOLD)
        edges[row + Math.floor(x / CELL_SIZE)]!++
  }
  let best = { count: -1, left: 0, top: 0 }
  for (let top = 0; top <= Math.max(0, down - PART_CELLS); top++)
    for (let left = 0; left <= Math.max(0, across - PART_CELLS); left++) {
      let count = 0
      for (let y = top; y < Math.min(down, top + PART_CELLS); y++)
        for (let x = left; x < Math.min(across, left + PART_CELLS); x++) count += edges[y * across + x]!
      if (count > best.count) best = { count, left, top }
    }
  return cropImage(grey, {
    left: best.left * CELL_SIZE,
    top: best.top * CELL_SIZE,
    width: side,
    height: side,
  })
}

/** An area of an image in pixels. */
interface Area {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** Copies an area of an image, as far as the image reaches. */
export function cropImage({ data, width, height }: GreyImage, area: Area): GreyImage {
  const { left, top } = area
  const [wide, high] = [Math.min(area.width, width - left), Math.min(area.height, height - top)]
  const part = new Uint8Array(wide * high)
  for (let y = 0; y < high; y++) {
    const from = (top + y) * width + left
    part.set(data.subarray(from, from + wide), y * wide)
  }
  return { data: part, width: wide, height: high }
}

/** Rotates the image clockwise by `quarters` quarter turns. */
export function rotateImage(grey: GreyImage, quarters: number): GreyImage {
  if (quarters === 0) return grey
  const { data, width, height } = grey
  if (quarters === 2) return { data: data.slice().reverse(), width, height }
  const out = new Uint8Array(data.length)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = quarters === 1 ? x * height + (height - 1 - y) : (width - 1 - x) * height + y
      out[at] = data[y * width + x]!
    }
  }
  return { data: out, width: height, height: width }
}

/** Returns the place that a word had before its image was rotated clockwise by `quarters` quarter turns. */
function turnBack(word: PlacedWord, quarters: number): PlacedWord {
  if (quarters === 0) return word
  const { left, top, width, height } = word
  const [right, bottom] = [left + width, top + height]
  if (quarters === 2)
    return placeWord(word.text, { left: 1 - right, top: 1 - bottom, right: 1 - left, bottom: 1 - top })
  return quarters === 1
    ? placeWord(word.text, { left: top, top: 1 - right, right: bottom, bottom: 1 - left })
    : placeWord(word.text, { left: 1 - bottom, top: left, right: 1 - top, bottom: right })
}

// Width of the strips in which ink is summed, in pixels: averages out letters, but tolerates a slightly skewed page.
const STRIP_WIDTH = 400
const INK_THRESHOLD = 128

/**
 * True if text lines clearly run from top to bottom. Ink sums along the text direction vary strongly: high in a line,
 * zero between two lines. Sums across the text direction vary little, because the letters average out.
 */
function hasVerticalLines({ data, width, height }: GreyImage): boolean {
  const across = Math.ceil(width / STRIP_WIDTH)
  const down = Math.ceil(height / STRIP_WIDTH)
  const rows = new Float64Array(height * across)
  const columns = new Float64Array(width * down)
  for (let y = 0; y < height; y++) {
    const strip = Math.floor(y / STRIP_WIDTH) * width
    for (let x = 0; x < width; x++) {
      if (data[y * width + x]! >= INK_THRESHOLD) continue
      rows[Math.floor(x / STRIP_WIDTH) * height + y]! += 1
      columns[strip + x]! += 1
    }
  }
  return measureVariation(columns) > MIN_VARIATION_RATIO * measureVariation(rows)
}

// The ratio of the variations is below 0.05 for upright pages and above 20 for sideways pages. Measured with 3 and with
// 40 lines, at 150 to 300 dpi and up to 3 degrees of skew.
const MIN_VARIATION_RATIO = 4

// Size of a bin of ink sums, in pixels: about the height of small letters, more than a stroke, less than the spacing of
// lines.
const BIN_SIZE = 16

function measureVariation(profile: Float64Array): number {
  let sum = 0
  let last = 0
  for (let from = 0; from < profile.length; from += BIN_SIZE) {
    const bin = profile.subarray(from, from + BIN_SIZE).reduce((a, b) => a + b, 0)
    sum += (bin - last) ** 2
    last = bin
  }
  return sum
}
