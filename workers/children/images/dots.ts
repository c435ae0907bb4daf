/** Finds print of dots on a grid, such as that of receipt printers and displays, and joins its dots into strokes. */
import type { GreyImage } from './grey.ts'

// In pixels: dots closer than this touch after any scan, and no dots of a printed letter are farther apart.
const MIN_PITCH = 2
const MAX_PITCH = 40
// A letter of five by seven dots has about 15 dots. Five digits have about this many runs of ink, in both directions.
const MIN_RUNS = 80
// Share of the ink runs that begin one pitch behind another: about 0.38 for dots of a 5 x 7 font.
const MIN_PITCH_SHARE = 0.25
// Share of the ink in runs that are no longer than the pitch: nearly all for dots. Other print has at most 0.76.
const MIN_SHORT_SHARE = 0.85
// A dot has at least this share of the pitch as its diameter.
const MIN_DOT_SIZE = 0.25

/**
 * Returns the distance of neighbouring dots in pixels; null unless nearly all ink consists of dots on a grid. The dots
 * are separate, or squares that touch.
 */
export function findDotPitch(grey: GreyImage): number | null {
  const { width, height } = grey
  const steps = new Uint32Array(MAX_PITCH + 1)
  const lengths = new Uint32Array(4 * MAX_PITCH)
  const { paper, black } = measureLevels(grey.data)
  const counts: RunCounts = { steps, lengths, threshold: (paper + black) / 2 }
  let runs = 0
  for (let y = 0; y < height; y++)
    runs += countRuns(grey.data, { from: y * width, step: 1, length: width }, counts)
  for (let x = 0; x < width; x++)
    runs += countRuns(grey.data, { from: x, step: width, length: height }, counts)
  if (runs < MIN_RUNS) return null
  return findPitch(runs, steps, lengths) ?? findSquareSize(lengths)
}

// Share of the runs whose length is a multiple of the size of a square.
const MIN_SQUARE_SHARE = 0.97
const MAX_SQUARE_SIZE = 16

/** Returns the size of the squares that make up all ink; null if there are none. */
function findSquareSize(lengths: Uint32Array): number | null {
  // The last count is that of all longer runs.
  const counts = lengths.subarray(0, -1)
  const all = counts.reduce((a, b) => a + b, 0)
  for (let size = MAX_SQUARE_SIZE; size >= MIN_PITCH; size--) {
    const whole = counts.reduce((sum, n, length) => (length % size === 0 ? sum + n : sum), 0)
    if (whole > MIN_SQUARE_SHARE * all && counts[size]! > 0) return size
  }
  return null
}

/** Returns the mean step between separate dots; null if the ink is no such dots. */
function findPitch(runs: number, steps: Uint32Array, lengths: Uint32Array): number | null {
  const most = indexOfMaximum(steps)
  if (most < MIN_PITCH || most === MAX_PITCH) return null
  if (indexOfMaximum(lengths) < MIN_DOT_SIZE * most) return null
  // A resized image has a fractional pitch, so its steps have two lengths.
  const near = steps.subarray(most - 1, most + 2)
  const count = near.reduce((a, b) => a + b, 0)
  const ink = lengths.reduce((sum, n, length) => sum + n * length, 0)
  const short = lengths.subarray(0, most + 1).reduce((sum, n, length) => sum + n * length, 0)
  if (count < MIN_PITCH_SHARE * runs || short < MIN_SHORT_SHARE * ink) return null
  return near.reduce((sum, n, i) => sum + n * (most - 1 + i), 0) / count
}

const indexOfMaximum = (counts: Uint32Array): number =>
  counts.indexOf(counts.reduce((a, b) => Math.max(a, b), 0))

/** A row or column of pixels. */
interface Line {
  readonly from: number
  readonly step: number
  readonly length: number
}

/** Counts of ink runs by their distance from the run before, start to start, and by their length. */
interface RunCounts {
  readonly steps: Uint32Array
  readonly lengths: Uint32Array
  /** Darker pixels are ink. */
  readonly threshold: number
}

/** Counts the ink runs of a line. */
function countRuns(data: Uint8Array, { from, step, length }: Line, counts: RunCounts): number {
  const { steps, lengths, threshold } = counts
  let [runs, start, isInk] = [0, -MAX_PITCH - 1, false]
  for (let i = 0, at = from; i <= length; i++, at += step) {
    const isDark = i < length && data[at]! < threshold
    if (isDark === isInk) continue
    isInk = isDark
    if (isDark) {
      if (i - start <= MAX_PITCH) steps[i - start]!++
      start = i
    } else {
      runs++
      lengths[Math.min(i - start, lengths.length - 1)]!++
    }
  }
  return runs
}

// Width of each of the two blurs, in pitches: OCR reads most words between 1.4 and 1.8.
const BLUR_WIDTH = 1.45

/** Blurs the image until the dots merge, and restores the contrast. */
export function joinDots(grey: GreyImage, pitch: number): GreyImage {
  const size = Math.max(2, Math.round(BLUR_WIDTH * pitch))
  const { width, height } = grey
  const data = new Uint8Array(grey.data.length)
  let levels: Uint8Array = grey.data
  for (let n = 0; n < 2; n++) {
    for (let y = 0; y < height; y++) blurLine(levels, data, { from: y * width, step: 1, length: width }, size)
    levels = data.slice()
    for (let x = 0; x < width; x++) blurLine(levels, data, { from: x, step: width, length: height }, size)
    levels = data.slice()
  }
  return { data: stretchContrast(data), width, height }
}

/** Writes the means of `size` pixels around each pixel of a row or column. Beyond its ends, the end pixels repeat. */
function blurLine(source: Uint8Array, target: Uint8Array, { from, step, length }: Line, size: number): void {
  const before = size >> 1
  const level = (i: number): number => source[from + step * Math.max(0, Math.min(length - 1, i))]!
  let sum = 0
  for (let i = -before; i < size - before; i++) sum += level(i)
  for (let i = 0, at = from; i < length; i++, at += step) {
    target[at] = Math.round(sum / size)
    sum += level(i + size - before) - level(i - before)
  }
}

// Share of the ink that may be darker than black: specks.
const MAX_SPECKS = 0.05
const PAPER_NOISE = 8

/** Returns the most common level, and that of the darkest ink. */
function measureLevels(data: Uint8Array): { paper: number; black: number } {
  const counts = new Uint32Array(256)
  for (let i = 0; i < data.length; i++) counts[data[i]!]!++
  const paper = indexOfMaximum(counts)
  const ink = counts.subarray(0, Math.max(1, paper - PAPER_NOISE)).reduce((a, b) => a + b, 0)
  let black = 0
  for (let sum = counts[0]!; sum < MAX_SPECKS * ink; ) sum += counts[++black]!
  return { paper, black }
}

function stretchContrast(data: Uint8Array): Uint8Array {
  const { paper, black } = measureLevels(data)
  const scale = 255 / Math.max(1, paper - black)
  return data.map((level) => Math.max(0, Math.min(255, (level - black) * scale)))
}
