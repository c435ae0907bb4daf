import type { PageText } from '../formats/texts.ts'
import { findStructure } from './tables.ts'

/** Arranges positioned pieces of text into lines, columns and paragraphs. */

/** A run of characters on one baseline. Coordinates share one unit (points or pixels), in a frame rotated by `angle`. */
export interface Piece {
  readonly text: string
  /** Radians from the left-to-right horizontal. */
  readonly angle: number
  readonly start: number
  readonly end: number
  /** Baseline; smaller values are further down the page. */
  readonly base: number
  readonly size: number
  /** True if this piece is the last of its line. */
  readonly endsLine: boolean
  /**
   * True if the gap before this piece must be ignored, because its script runs in another direction than its positions.
   */
  readonly ignoresGap: boolean
  /** True if this piece was put next to its label: its row does not consist of columns. */
  readonly isPlaced?: boolean
}

/** Text of a line between two gaps that are wider than word spaces. */
interface Cell {
  text: string
  readonly start: number
  end: number
  /** Separator from the previous cell: a tab if the gap is as wide as in a table. */
  readonly separator: ' ' | '\t'
}

interface Row {
  readonly cells: Cell[]
  readonly angle: number
  readonly base: number
  readonly size: number
  /** True if the row holds labels with their values. */
  hasPlaced: boolean
}

// In multiples of the font size. The gutter between narrow columns is slightly wider than 1, a gap in a table is 3.
const MIN_CELL_GAP = 0.9
const MIN_TAB_GAP = 3
// A page with more rows than this is a listing and keeps its order: columns are not detected.
const MAX_ROWS = 3000
const MIN_COLUMN_ROWS = 4
// Average number of characters per cell. Table cells are shorter than the lines of a prose column.
const MIN_COLUMN_CHARACTERS = 16

/** Builds text from pieces in file order: gaps become spaces, table-like gaps tabs, and wide leading a blank line. */
export const textFromPieces = (pieces: Iterable<Piece>): string => joinRows(arrange(pieces))

/** Builds text from pieces, as `textFromPieces` does, and the Markdown of its headings and tables. */
export function readLayout(pieces: Iterable<Piece>): PageText {
  const rows = arrange(pieces)
  const apart = findParagraphs(rows)
  // The values of forms are no cells of a table.
  const lines = rows.map((row) =>
    row.hasPlaced ? { ...row, cells: [{ ...row.cells[0]!, text: joinCells(row.cells) }] } : row,
  )
  return { text: joinRows(rows, apart), markdown: findStructure(lines, apart) }
}

function arrange(pieces: Iterable<Piece>): readonly Row[] {
  const rows: Row[] = []
  let row: Row | null = null
  for (const piece of pieces) {
    if (piece.text.trim() !== '') {
      if (row && !continuesRow(row, piece)) row = null
      if (!row) {
        row = { cells: [], angle: piece.angle, base: piece.base, size: piece.size, hasPlaced: false }
        rows.push(row)
      }
      appendPiece(row, piece)
      row.hasPlaced ||= piece.isPlaced === true
    } else if (row) {
      row.cells.at(-1)!.text += piece.text
    }
    if (piece.endsLine) row = null
  }
  const lines = reverseUpwardRows(joinVerticalLines(rows))
  return lines.length > MAX_ROWS ? lines : orderColumns(lines)
}

// True if a piece is on the baseline of the row. Superscripts and subscripts are within 0.7 of the font size.
function continuesRow(row: Row, piece: Piece): boolean {
  return Math.abs(row.angle - piece.angle) < 0.01 && Math.abs(row.base - piece.base) < 0.7 * piece.size
}

function appendPiece({ cells }: Row, { text, start, end, size, ignoresGap }: Piece): void {
  const cell = cells.at(-1)
  if (cell === undefined) return void cells.push({ text, start, end, separator: ' ' })
  const gap = start - cell.end
  if (!ignoresGap && gap > MIN_CELL_GAP * size) {
    return void cells.push({
      text: text.trimStart(),
      start,
      end,
      separator: gap > MIN_TAB_GAP * size ? '\t' : ' ',
    })
  }
  // A piece that begins far before the end of the cell overprints it.
  const besides = gap > 0.2 * size || gap < -size
  const apart = !ignoresGap && besides && !/\s$/.test(cell.text) && !/^\s/.test(text)
  cell.text += (apart ? ' ' : '') + text
  cell.end = end
}

// Matches one character of a vertical line, with the punctuation that follows it in its row.
const VERTICAL_LINE_CHARACTER =
  /^[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\u3000-\u303f\u30fc\ufe10-\ufe4f\uff00-\uffef][\u3000-\u303f\ufe10-\ufe4f\p{P}]{0,3}$/u
const MIN_VERTICAL_CHARACTERS = 2

/**
 * Joins vertical lines, which arrive as one row per character, and orders them from the right. Other rows stay
 * unchanged.
 */
function joinVerticalLines(rows: readonly Row[]): Row[] {
  const lines: Row[] = []
  let standing: VerticalLine[] = []
  for (let at = 0; at < rows.length; ) {
    let end = at + 1
    while (end < rows.length && isNextInVerticalLine(rows[end - 1]!, rows[end]!)) end++
    if (end - at < MIN_VERTICAL_CHARACTERS) end = at + 1
    const row = rows[at]!
    if (end - at > 1) {
      row.cells[0]!.text = rows.slice(at, end).map(textOfRow).join('')
      standing.push({ row, bottom: rows[end - 1]!.base })
    } else {
      lines.push(...orderFromRight(standing), row)
      standing = []
    }
    at = end
  }
  return [...lines, ...orderFromRight(standing)]
}

interface VerticalLine {
  readonly row: Row
  /** Baseline of the line's last character. */
  readonly bottom: number
}

/** Orders consecutive vertical lines by tier, then from right to left. PDFium reports them from the left. */
function orderFromRight(lines: readonly VerticalLine[]): Row[] {
  const tiers: VerticalLine[][] = []
  for (const line of lines.toSorted((a, b) => b.row.base - a.row.base)) {
    const tier = tiers.at(-1)
    if (tier !== undefined && line.row.base > Math.min(...tier.map(({ bottom }) => bottom))) tier.push(line)
    else tiers.push([line])
  }
  const start = ({ row }: VerticalLine): number => row.cells[0]!.start
  return tiers.flatMap((tier) => tier.toSorted((a, b) => start(b) - start(a)).map(({ row }) => row))
}

const MIN_REVERSED_ROWS = 3

/** Reverses rows that arrive from the bottom up. PDFium uses that order where lines run downwards on the page. */
function reverseUpwardRows(rows: Row[]): Row[] {
  const up = rows.filter(
    ({ base, angle }, i) => base > (rows[i - 1] ?? rows[0]!).base && angle === rows[0]!.angle,
  )
  return rows.length >= MIN_REVERSED_ROWS && up.length === rows.length - 1 ? rows.toReversed() : rows
}

/**
 * True if `lower` continues the vertical line of `upper`: it follows directly, whereas rows of a list have space
 * between them.
 */
function isNextInVerticalLine(upper: Row, lower: Row): boolean {
  const [above, below] = [textOfRow(upper), textOfRow(lower)]
  if (
    !VERTICAL_LINE_CHARACTER.test(above) ||
    !VERTICAL_LINE_CHARACTER.test(below) ||
    upper.angle !== lower.angle
  )
    return false
  const [{ start, end }, next] = [upper.cells[0]!, lower.cells[0]!]
  const width = (end - start) / above.length
  const step = upper.base - lower.base
  return (
    Math.abs(next.start - start) < 0.5 * width && step > 0.7 * width && step < (above.length + 0.3) * width
  )
}

const textOfRow = ({ cells }: Row): string => (cells.length === 1 ? cells[0]!.text.trimEnd() : '')

/**
 * Puts the left column first if the file writes both columns line by line across the page. If the file writes one
 * column after the other, no row has cells of both, and the order stays.
 */
function orderColumns(rows: readonly Row[]): Row[] {
  const ordered: Row[] = []
  for (let at = 0; at < rows.length; ) {
    const columns = findColumns(rows, at)
    if (columns === null) ordered.push(rows[at++]!)
    else {
      ordered.push(...orderColumns(columns.left), ...orderColumns(columns.right))
      at = columns.end
    }
  }
  return ordered
}

interface Columns {
  readonly left: Row[]
  readonly right: Row[]
  /** Index of the first row after the columns. */
  readonly end: number
}

/** Finds two prose columns, separated by one gutter, from row `at`; null if there are none. */
function findColumns(rows: readonly Row[], at: number): Columns | null {
  for (let cell = 1; cell < rows[at]!.cells.length; cell++) {
    const columns = divideAtGutter(rows, at, rows[at]!.cells[cell - 1]!.end, rows[at]!.cells[cell]!.start)
    if (isProse(columns)) return columns
  }
  return null
}

function divideAtGutter(rows: readonly Row[], at: number, from: number, to: number): Columns {
  const left: Row[] = []
  const right: Row[] = []
  let end = at
  for (let [low, high] = [from, to]; end < rows.length; end++) {
    const { cells, ...place } = rows[end]!
    if (place.hasPlaced) break
    const before = cells.filter((cell) => (cell.start + cell.end) / 2 < (low + high) / 2)
    const behind = cells.slice(before.length)
    low = Math.max(low, ...before.map((cell) => cell.end))
    high = Math.min(high, ...behind.map((cell) => cell.start))
    if (low >= high) break
    if (before.length > 0) left.push({ ...place, cells: before })
    if (behind.length > 0) right.push({ ...place, cells: behind })
  }
  return { left, right, end }
}

function isProse({ left, right }: Columns): boolean {
  return [left, right].every((rows) => {
    const characters = rows.reduce(
      (sum, { cells }) => sum + cells.reduce((n, { text }) => n + text.length, 0),
      0,
    )
    const cells = rows.reduce((sum, row) => sum + row.cells.length, 0)
    return rows.length >= MIN_COLUMN_ROWS && characters >= MIN_COLUMN_CHARACTERS * cells
  })
}

const joinRows = (rows: readonly Row[], apart: readonly boolean[] = findParagraphs(rows)): string =>
  rows.map(({ cells }, i) => (apart[i] ? '\n' : '') + joinCells(cells)).join('\n')

/** Returns true for each row that wide leading parts from the row above. */
function findParagraphs(rows: readonly Row[]): readonly boolean[] {
  const steps = rows.slice(1).map((row, i) => rows[i]!.base - row.base)
  const down = steps.filter((step) => step > 0).sort((a, b) => a - b)
  const usual = down[down.length >> 1] ?? 0
  return rows.map((_, i) => {
    const step = steps[i - 1] ?? usual
    return i > 0 && (step > 1.5 * usual || step < -usual)
  })
}

function joinCells(cells: readonly Cell[]): string {
  return cells
    .reduce((text, cell) => text.trimEnd() + (text === '' ? '' : cell.separator) + cell.text, '')
    .trimEnd()
}
