/** Scans that are sideways or upside down: which way their lines run, and reading them the right way up. */
import { cpuMs } from '../serve.ts'
import type { Grey } from './grey.ts'
import { PAGE_CPU_MS, recognize, type Seen } from './vision.ts'

// The model's confidence is 20 to 50 for text that is upside down or sideways, and 75 even for a poor upright scan.
const SURE = 70
// Fewer letters than this are not enough to tell up from down.
const LEAST_LETTERS = 20
// Less CPU time than this is not worth another try.
const TRY_MS = 3000

/**
 * Reads a picture that may be rotated by quarter turns: first as its lines seem to run, then the other ways if the
 * result makes little sense. All tries together take no more CPU time than one page may.
 */
export async function recognizeUpright(grey: Grey): Promise<Seen> {
  const end = cpuMs() + PAGE_CPU_MS
  let best: Seen | null = null
  for (const quarters of linesRunDown(grey) ? [1, 3, 0] : [0, 2, 1, 3]) {
    const limitMs = end - cpuMs()
    if (best !== null && limitMs < TRY_MS) break
    const seen = await recognize(turned(grey, quarters), limitMs).catch((error) => {
      if (best === null) throw error
      return best
    })
    if (best === null || seen.confidence > best.confidence) best = seen
    const letters = seen.text.match(/[\p{L}\p{N}]/gu)?.length ?? 0
    if (best.confidence >= SURE || letters < LEAST_LETTERS) break
  }
  return best!
}

/** The picture rotated clockwise by this many quarter turns. */
export function turned(grey: Grey, quarters: number): Grey {
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

// Wide enough for letters to even out, narrow enough for a page that is slightly skewed.
const STRIP = 400
const INK = 128

/**
 * Whether lines of text clearly run from top to bottom. Along the lines, the ink changes much from one row of pixels to
 * the next: full in a line, none between two. Across the lines, letters even it out.
 */
export function linesRunDown({ data, width, height }: Grey): boolean {
  const across = Math.ceil(width / STRIP)
  const down = Math.ceil(height / STRIP)
  const rows = new Float64Array(height * across)
  const columns = new Float64Array(width * down)
  for (let y = 0; y < height; y++) {
    const strip = Math.floor(y / STRIP) * width
    for (let x = 0; x < width; x++) {
      if (data[y * width + x]! >= INK) continue
      rows[Math.floor(x / STRIP) * height + y]! += 1
      columns[strip + x]! += 1
    }
  }
  return unrest(columns) > CLEARLY * unrest(rows)
}

// The ratio is below 0.05 for upright pages and above 20 for those on their side, with 3 lines or 40, at 150 to 300
// dpi, skewed by up to 3 degrees.
const CLEARLY = 4

// About the height of small letters: the strokes of letters are narrower, and lines are further apart.
const BIN = 16

function unrest(profile: Float64Array): number {
  let sum = 0
  let last = 0
  for (let from = 0; from < profile.length; from += BIN) {
    const bin = profile.subarray(from, from + BIN).reduce((a, b) => a + b, 0)
    sum += (bin - last) ** 2
    last = bin
  }
  return sum
}
