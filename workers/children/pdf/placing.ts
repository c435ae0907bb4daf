/** Places texts that annotations show, such as the values of form fields, next to their labels. */
import type { Piece } from './layout.ts'

/** Pieces of one line that stay together. */
interface Run {
  readonly pieces: readonly Piece[]
  readonly angle: number
  readonly start: number
  readonly end: number
  readonly base: number
  readonly size: number
}

// Multiples of the font size. A value and its label may have baselines that differ by less than this.
const MAX_SHIFT = 0.6
// Pieces of a value are closer than this.
const MAX_GAP = 1
// A value may overlap its label by this.
const MAX_OVERLAP = 0.5
// Limit of the comparisons. A form of 5,000 fields has 50 million.
const MAX_PAIRS = 100_000_000

/**
 * Inserts each shown text behind the piece that is left of it on its line, or else before the piece right of it. A text
 * on a line of its own, or over other text, follows the line above it.
 */
export function placeNextToLabels(pieces: readonly Piece[], shown: readonly Piece[]): readonly Piece[] {
  if (shown.length === 0) return pieces
  const runs = groupRuns(shown)
  if (runs.length * pieces.length > MAX_PAIRS) return [...pieces, ...shown]
  const places = new Places(pieces)
  for (const run of runs) places.add(run)
  return places.all()
}

function groupRuns(shown: readonly Piece[]): Run[] {
  const runs: Piece[][] = []
  for (const piece of shown) {
    const last = runs.at(-1)?.at(-1)
    const continues =
      last !== undefined &&
      !last.endsLine &&
      Math.abs(last.angle - piece.angle) < 0.01 &&
      Math.abs(last.base - piece.base) < MAX_SHIFT * piece.size &&
      Math.abs(piece.start - last.end) < MAX_GAP * piece.size
    if (continues) runs.at(-1)!.push(piece)
    else if (piece.text.trim() !== '') runs.push([piece])
  }
  const made = runs.map((run) => ({
    pieces: run,
    angle: run[0]!.angle,
    start: run[0]!.start,
    end: run.at(-1)!.end,
    base: run[0]!.base,
    size: run[0]!.size,
  }))
  return made.sort((a, b) => b.base - a.base || a.start - b.start)
}

// Height of the strips by which pieces are found, in points.
const STRIP = 8

class Places {
  readonly #pieces: readonly Piece[]
  readonly #strips = new Map<number, number[]>()
  readonly #before = new Map<number, Run[]>()
  readonly #behind = new Map<number, Run[]>()
  readonly #below = new Map<number, Run[]>()

  constructor(pieces: readonly Piece[]) {
    this.#pieces = pieces
    for (const [i, { base, text }] of pieces.entries()) {
      if (text.trim() === '') continue
      const strip = Math.floor(base / STRIP)
      const found = this.#strips.get(strip)
      if (found === undefined) this.#strips.set(strip, [i])
      else found.push(i)
    }
  }

  add(run: Run): void {
    const line = this.#findLine(run)
    const touching = MAX_OVERLAP * run.size
    const pieceAt = (i: number): Piece => this.#pieces[i]!
    const isCovered = line.some(
      (i) => pieceAt(i).start < run.end - touching && pieceAt(i).end > run.start + touching,
    )
    if (isCovered || line.length === 0) {
      append(this.#below, this.#findAbove(run), run)
      return
    }
    const left = line.filter((i) => pieceAt(i).end <= run.start + touching && pieceAt(i).start < run.start)
    const right = line.filter((i) => !left.includes(i))
    if (left.length > 0)
      append(
        this.#behind,
        left.reduce((a, b) => (pieceAt(b).end > pieceAt(a).end ? b : a)),
        run,
      )
    else
      append(
        this.#before,
        right.reduce((a, b) => (pieceAt(b).start < pieceAt(a).start ? b : a)),
        run,
      )
  }

  /** Returns the pieces on the line of a run. */
  #findLine({ base, size, angle }: Run): number[] {
    const found: number[] = []
    const reach = MAX_SHIFT * size
    for (let strip = Math.floor((base - reach) / STRIP); strip <= Math.floor((base + reach) / STRIP); strip++)
      for (const i of this.#strips.get(strip) ?? []) {
        const piece = this.#pieces[i]!
        if (Math.abs(piece.base - base) < reach && Math.abs(piece.angle - angle) < 0.01) found.push(i)
      }
    return found
  }

  /** Returns the last piece of the closest line above a run, preferably one right above it; -1 if there is none. */
  #findAbove({ base, start, end, angle }: Run): number {
    let [over, above] = [-1, -1]
    for (const [i, piece] of this.#pieces.entries()) {
      if (piece.base <= base || Math.abs(piece.angle - angle) >= 0.01 || piece.text.trim() === '') continue
      const isCloser = (other: number): boolean => other === -1 || piece.base < this.#pieces[other]!.base
      if (isCloser(above)) above = i
      if (piece.start < end && piece.end > start && isCloser(over)) over = i
    }
    let last = over === -1 ? above : over
    if (last === -1) return -1
    while (last + 1 < this.#pieces.length && isSameLine(this.#pieces[last]!, this.#pieces[last + 1]!)) last++
    return last
  }

  all(): Piece[] {
    const all: Piece[] = []
    const addLines = (runs: readonly Run[] = []): void => {
      for (const line of groupLines(runs)) all.push(...alignRuns(line, line[0]!, true))
    }
    addLines(this.#below.get(-1))
    for (const [i, piece] of this.#pieces.entries()) {
      const [before, behind, below] = [this.#before.get(i), this.#behind.get(i), this.#below.get(i)]
      if (before !== undefined) all.push(...alignRuns(before, piece, false))
      all.push(
        behind === undefined && below === undefined ? piece : { ...piece, endsLine: behind === undefined },
      )
      if (behind !== undefined) all.push(...alignRuns(behind, piece, piece.endsLine || below !== undefined))
      addLines(below)
    }
    return all
  }
}

const isSameLine = (piece: Piece, next: Piece): boolean =>
  !piece.endsLine &&
  Math.abs(piece.angle - next.angle) < 0.01 &&
  Math.abs(piece.base - next.base) < MAX_SHIFT * next.size

function groupLines(runs: readonly Run[]): Run[][] {
  const lines: Run[][] = []
  for (const run of runs.toSorted((a, b) => b.base - a.base)) {
    const [first] = lines.at(-1) ?? []
    if (first !== undefined && first.base - run.base < MAX_SHIFT * run.size) lines.at(-1)!.push(run)
    else lines.push([run])
  }
  return lines
}

/** Puts runs on one baseline, from left to right. */
function alignRuns(runs: readonly Run[], { base }: { readonly base: number }, endsLine: boolean): Piece[] {
  const pieces = runs.toSorted((a, b) => a.start - b.start).flatMap((run) => run.pieces)
  return pieces.map((piece, i) => ({
    ...piece,
    base,
    text: `${piece.text.trimEnd()} `,
    isPlaced: true,
    endsLine: endsLine && i === pieces.length - 1,
  }))
}

function append(runs: Map<number, Run[]>, at: number, run: Run): void {
  const present = runs.get(at)
  if (present === undefined) runs.set(at, [run])
  else present.push(run)
}
