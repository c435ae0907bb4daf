import { type Block, renderMarkdown } from '../markdown/render.ts'

/** Finds the headings and tables of a page in its arranged lines. */

/** A line of a page, in reading order. */
export interface Line {
  readonly cells: readonly LineCell[]
  readonly angle: number
  readonly base: number
  readonly size: number
}

interface LineCell {
  readonly text: string
  readonly start: number
  readonly end: number
  /** A tab if the gap before the cell is as wide as in a table. */
  readonly separator: ' ' | '\t'
}

// Sizes of headings, as multiples of the size of the body.
const HEADING_SIZES = [1.7, 1.35, 1.12] as const
// Longer lines are not headings.
const MAX_HEADING_CHARACTERS = 150
// A page with more lines than this is a listing.
const MAX_LINES = 5000
// Lines of a table without wide gaps. With wide gaps, two are enough.
const MIN_TABLE_LINES = 3
// Lines with more cells are no rows of a printed table.
const MAX_COLUMNS = 50
// Average number of characters in a cell of the longest texts in tables. Columns of prose have more.
const MAX_CELL_CHARACTERS = 60

/** Returns the Markdown of a page; null if its lines show no headings or tables. */
export function findStructure(lines: readonly Line[], paragraphs: readonly boolean[]): string | null {
  if (lines.length < 2 || lines.length > MAX_LINES) return null
  const body = findBodySize(lines)
  const hasHeading = lines.some((line) => findLevel(line, body) !== null)
  const mayHaveTable = lines.some((line, i) => line.cells.length > 1 && (lines[i + 1]?.cells.length ?? 0) > 1)
  if (!hasHeading && !mayHaveTable) return null
  const blocks = listBlocks(lines, paragraphs, body)
  return blocks.some(({ kind }) => kind !== 'text') ? renderMarkdown(blocks) : null
}

/** Returns the size that most characters have. */
function findBodySize(lines: readonly Line[]): number {
  const counts = new Map<number, number>()
  for (const line of lines) {
    const rounded = Math.round(line.size * 2) / 2
    counts.set(rounded, (counts.get(rounded) ?? 0) + countCharacters(line))
  }
  return [...counts].reduce((most, one) => (one[1] > most[1] ? one : most))[0]
}

/** Returns the level of a heading by its size; null for other lines. */
function findLevel(line: Line, body: number): number | null {
  if (line.size < HEADING_SIZES[2] * body || countCharacters(line) > MAX_HEADING_CHARACTERS) return null
  if (!line.cells.some(({ text }) => /\p{L}{2}/u.test(text))) return null
  return HEADING_SIZES.findIndex((ratio) => line.size >= ratio * body) + 1
}

const countCharacters = ({ cells }: Line): number => cells.reduce((sum, { text }) => sum + text.length, 0)

/** `paragraphs` is true for each line that begins a paragraph. */
function listBlocks(lines: readonly Line[], paragraphs: readonly boolean[], body: number): Block[] {
  const blocks: Block[] = []
  let text: string[] = []
  const endParagraph = (): void => {
    if (text.length > 0) blocks.push({ kind: 'text', text: text.join('\n'), depth: 0, isWrapped: true })
    text = []
  }
  // Lines before this one begin no table: a table that begins further up has failed to be one.
  let next = 0
  for (let at = 0; at < lines.length; ) {
    const found = at < next ? null : findTable(lines, at)
    next = found?.end ?? next
    const table = found?.rows == null ? null : { ...found, rows: found.rows }
    const level = table === null ? findLevel(lines[at]!, body) : null
    if (table !== null || level !== null || paragraphs[at]) endParagraph()
    if (table !== null) {
      blocks.push({ kind: 'table', rows: table.rows })
      at = table.end
    } else if (level !== null) {
      const end = findHeadingEnd(lines, at, level, body)
      blocks.push({ kind: 'heading', level, text: lines.slice(at, end).map(textOf).join(' ') })
      at = end
    } else text.push(textOf(lines[at++]!))
  }
  endParagraph()
  return blocks
}

const textOf = ({ cells }: Line): string => cells.map(({ text }) => text.trim()).join(' ')

// Multiples of the size. Lines of one heading are closer than this.
const MAX_HEADING_STEP = 1.2

/** Returns the index after the lines of a heading. */
function findHeadingEnd(lines: readonly Line[], at: number, level: number, body: number): number {
  let end = at + 1
  for (; end < lines.length && findLevel(lines[end]!, body) === level; end++) {
    const step = lines[end - 1]!.base - lines[end]!.base
    if (Math.abs(step) > MAX_HEADING_STEP * lines[end]!.size) break
  }
  return end
}

interface Column {
  start: number
  end: number
}

interface FoundTable {
  /** Null if the lines are no table. */
  readonly rows: string[][] | null
  /** Index of the line after those that were looked at. */
  readonly end: number
}

/** Finds a table that begins with a line: the cells of its lines stand in the same columns. Null for a line of one cell. */
function findTable(lines: readonly Line[], at: number): FoundTable | null {
  const first = lines[at]!
  if (first.cells.length < 2 || first.cells.length > MAX_COLUMNS) return null
  let columns: Column[] = first.cells.map(({ start, end }) => ({ start, end }))
  const members: { readonly line: Line; readonly continues: boolean }[] = [{ line: first, continues: false }]
  let end = at + 1
  for (; end < lines.length; end++) {
    const line = lines[end]!
    if (line.angle !== first.angle || line.base >= lines[end - 1]!.base) break
    const continues = line.cells.length === 1 && continuesCell(lines, end, columns)
    if (line.cells.length < 2 && !continues) break
    const widened = addToColumns(columns, line)
    if (widened === null || widened.length > MAX_COLUMNS) break
    columns = widened
    members.push({ line, continues })
  }
  const full = members.filter(({ continues }) => !continues)
  const min = full.every(({ line }) => hasTab(line)) ? MIN_TABLE_LINES - 1 : MIN_TABLE_LINES
  if (full.length < min) return { rows: null, end: at + 1 }
  return { rows: isProse(full.map(({ line }) => line)) ? null : toRows(members, columns), end }
}

const hasTab = ({ cells }: Line): boolean => cells.some(({ separator }) => separator === '\t')

const isProse = (lines: readonly Line[]): boolean => {
  const cells = lines.flatMap((line) => line.cells)
  return cells.reduce((sum, { text }) => sum + text.length, 0) > MAX_CELL_CHARACTERS * cells.length
}

// Multiples of the size. Lines of one cell are closer than this.
const MAX_LINE_STEP = 1.5

/** True if a line is the next line of a cell: it lies within a later column, close to the line above. */
function continuesCell(lines: readonly Line[], at: number, columns: readonly Column[]): boolean {
  const [above, line] = [lines[at - 1]!, lines[at]!]
  const [cell] = line.cells
  const column = columns.findIndex(({ start, end }) => cell!.start < end && cell!.end > start)
  const last = columns.findLastIndex(({ start, end }) => cell!.start < end && cell!.end > start)
  if (column === -1 || column !== last || above.base - line.base > MAX_LINE_STEP * line.size) return false
  return column > 0 || (lines[at + 1]?.cells.length ?? 0) > 1
}

/** Returns the columns with the cells of a line; null if a cell spans several columns. */
function addToColumns(columns: readonly Column[], { cells }: Line): Column[] | null {
  const merged: Column[] = []
  const all = [
    ...columns.map((column) => ({ ...column, isOld: true })),
    ...cells.map(({ start, end }) => ({ start, end, isOld: false })),
  ]
  let hasOld = false
  let hasNew = false
  for (const { start, end, isOld } of all.sort((a, b) => a.start - b.start)) {
    const last = merged.at(-1)
    if (last === undefined || start >= last.end) {
      merged.push({ start, end })
      ;[hasOld, hasNew] = [isOld, !isOld]
      continue
    }
    if (isOld ? hasOld : hasNew) return null
    last.end = Math.max(last.end, end)
    if (isOld) hasOld = true
    else hasNew = true
  }
  return merged
}

function toRows(
  members: readonly { readonly line: Line; readonly continues: boolean }[],
  columns: readonly Column[],
): string[][] {
  const rows: string[][] = []
  for (const { line, continues } of members) {
    if (!continues) rows.push(Array<string>(columns.length).fill(''))
    const row = rows.at(-1)!
    for (const { text, start, end } of line.cells) {
      const middle = (start + end) / 2
      const at = columns.findIndex((column) => middle <= column.end)
      const column = at === -1 ? columns.length - 1 : at
      row[column] = `${row[column]} ${text.trim()}`.trim()
    }
  }
  return rows
}
