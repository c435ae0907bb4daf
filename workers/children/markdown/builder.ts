import { MAX_CHARACTERS } from '../documents/texts.ts'
import { type Block, renderMarkdown } from './render.ts'

/** Collects the structure of a page from the events of a reader. */

// Deeper lists are shown at this depth. Word has nine levels.
export const MAX_LIST_DEPTH = 8
// Limit of the columns and rows that one cell spans. HTML allows 1000 columns, but files use that for "all".
const MAX_SPAN = 100
// Characters that the marks of a cell, a row or a block take.
const MARK_CHARACTERS = 3

/** The kind of the block that is being written. */
export type BlockStart =
  | { readonly kind: 'text' }
  | { readonly kind: 'code' }
  | { readonly kind: 'heading'; readonly level: number }
  | { readonly kind: 'item'; readonly depth: number; readonly marker: string | null }

type Cell = string | readonly Block[]

interface Table {
  readonly rows: Cell[][]
  /** The blocks of the open cell; null between cells. */
  cell: Block[] | null
  /** The number of columns and rows that the open cell spans. */
  span: { columns: number; rows: number }
  /** The number of rows, by column, that cells from above still reach into. */
  readonly covered: number[]
}

const TEXT: BlockStart = { kind: 'text' }

/**
 * Builds the Markdown of pages. A table with another table or a heading in a cell is a layout: its cells become part of
 * the page.
 */
export class MarkdownBuilder {
  #blocks: Block[] = []
  #start: BlockStart = TEXT
  #text = ''
  #table: Table | null = null
  // Number of open tables around `#table` that are only layouts.
  #layouts = 0
  #hasStructure = false
  // An estimate of the length of the Markdown.
  #size = 0
  /** The number of list items around paragraphs. */
  listDepth = 0

  /** True if the open block has no words. */
  get isBlank(): boolean {
    return this.#text.trim() === ''
  }

  get #isFull(): boolean {
    return this.#size > MAX_CHARACTERS
  }

  /** Adds text to the open block. A line feed ends the block, except in code. */
  add(text: string): void {
    if (this.#isFull || text === '') return
    this.#size += text.length
    if (this.#start.kind === 'code' || !text.includes('\n')) this.#text += text
    else
      for (const [i, line] of text.split('\n').entries()) {
        if (i > 0) this.endBlock()
        this.#text += line
      }
  }

  /** Ends the line, but not the block. */
  addBreak(): void {
    if (this.#isFull) return
    this.#text += '\n'
    this.#size++
  }

  /** Begins a block of this kind. */
  begin(start: BlockStart): void {
    this.endBlock()
    this.#start = start
  }

  endBlock(): void {
    const [start, text] = [this.#start, this.#text]
    ;[this.#start, this.#text] = [TEXT, '']
    if (text.trim() === '' || this.#isFull) return
    this.#size += MARK_CHARACTERS
    const blocks = this.#table === null ? this.#blocks : this.#table.cell
    // A text between cells, such as white space, belongs to none.
    if (blocks === null) this.#blocks.push({ kind: 'text', text, depth: 0 })
    else blocks.push(toBlock(start, text, this.listDepth))
    if (start.kind !== 'text' && this.#table === null) this.#hasStructure = true
  }

  openTable(): void {
    this.endBlock()
    this.#unwrap(true)
    this.#table = createTable()
  }

  openRow(): void {
    this.closeCell()
    if (this.#table === null || this.#isFull) return
    this.#size += MARK_CHARACTERS
    const { rows, covered } = this.#table
    endRow(rows.at(-1)?.length ?? 0, covered)
    rows.push([])
  }

  openCell(columns = 1, rows = 1): void {
    this.closeCell()
    if (this.#table === null || this.#isFull) return
    if (this.#table.rows.length === 0) this.openRow()
    this.#table.cell = []
    this.spanCell(columns, rows)
  }

  /** Sets the number of columns and rows that the open cell spans. */
  spanCell(columns: number, rows = 1): void {
    const limit = (count: number): number => Math.min(Math.max(Math.trunc(count) || 1, 1), MAX_SPAN)
    if (this.#table !== null) this.#table.span = { columns: limit(columns), rows: limit(rows) }
  }

  closeCell(): void {
    this.endBlock()
    const table = this.#table
    if (table === null || table.cell === null) return
    const cells = table.rows.at(-1)!
    const { columns, rows } = table.span
    skipCovered(cells, table.covered)
    for (let n = 0; n < columns; n++) {
      if (rows > 1) table.covered[cells.length] = rows - 1
      cells.push(n > 0 ? '' : toCell(table.cell))
    }
    this.#size += columns * MARK_CHARACTERS
    table.cell = null
  }

  closeTable(): void {
    this.closeCell()
    const table = this.#table
    if (table === null) {
      this.#layouts = Math.max(0, this.#layouts - 1)
      return
    }
    if (table.rows.every(hasOneCell)) this.#unwrap(false)
    else this.#addTable(table.rows.map((row) => row.map(toText)))
    this.#table = null
  }

  /** Adds a table without blocks in its cells. */
  addRows(rows: readonly (readonly string[])[]): void {
    this.endBlock()
    for (const row of rows) for (const cell of row) this.#size += cell.length + MARK_CHARACTERS
    if (rows.length > 0) this.#addTable(rows)
  }

  /** Marks the open table as a layout. */
  unwrapTable(): void {
    this.#unwrap(true)
  }

  /** Ends the page. Returns its Markdown; null if it has only paragraphs. An open table goes on on the next page. */
  end(): string | null {
    const table = this.#table
    const isInCell = table?.cell !== null
    // A page break may follow the start of a paragraph, before its text.
    const start = this.isBlank || this.#start.kind === 'heading' ? this.#start : TEXT
    if (table !== null) this.closeTable()
    else this.endBlock()
    const markdown = this.#hasStructure ? renderMarkdown(this.#blocks) : null
    ;[this.#blocks, this.#hasStructure, this.#size] = [[], false, 0]
    if (table !== null) {
      this.#table = createTable()
      this.openRow()
      if (isInCell) this.openCell()
    }
    this.#start = start
    return markdown === '' ? null : markdown
  }

  #addBlocks(blocks: readonly Block[]): void {
    for (const block of blocks) {
      this.#blocks.push(block)
      this.#hasStructure ||= block.kind !== 'text'
    }
  }

  #addTable(rows: readonly (readonly string[])[]): void {
    this.#blocks.push({ kind: 'table', rows })
    this.#hasStructure = true
  }

  /** Moves the blocks of the cells to the page. `isOpen` is true if the table goes on as a layout. */
  #unwrap(isOpen: boolean): void {
    if (this.#table === null) return
    for (const row of this.#table.rows)
      for (const cell of row)
        if (typeof cell !== 'string') this.#addBlocks(cell)
        else if (cell !== '') this.#blocks.push({ kind: 'text', text: cell, depth: 0 })
    this.#addBlocks(this.#table.cell ?? [])
    this.#table = null
    if (isOpen) this.#layouts++
  }
}

const createTable = (): Table => ({ rows: [], cell: null, span: { columns: 1, rows: 1 }, covered: [] })

function toBlock(start: BlockStart, text: string, listDepth: number): Block {
  if (start.kind === 'text') return { kind: 'text', text, depth: Math.min(listDepth, MAX_LIST_DEPTH) }
  if (start.kind === 'item') return { ...start, text, depth: Math.min(start.depth, MAX_LIST_DEPTH) }
  return { ...start, text }
}

/** Adds an empty cell for each column that a cell from above reaches into. */
function skipCovered(cells: Cell[], covered: number[]): void {
  for (let left = covered[cells.length]; left !== undefined && left > 0; left = covered[cells.length]) {
    covered[cells.length] = left - 1
    cells.push('')
  }
}

/** Counts the row for the columns behind its last cell. */
function endRow(length: number, covered: number[]): void {
  for (let at = length; at < covered.length; at++) covered[at] = Math.max(0, (covered[at] ?? 0) - 1)
  while (covered.length > 0 && !covered.at(-1)) covered.pop()
}

/** Most cells are one paragraph, which takes less memory as text. */
function toCell(blocks: readonly Block[]): Cell {
  const [first] = blocks
  if (first === undefined) return ''
  return blocks.length === 1 && first.kind === 'text' ? first.text : blocks
}

const hasOneCell = (row: readonly Cell[]): boolean => row.slice(1).every((cell) => cell === '')

const toText = (cell: Cell): string =>
  typeof cell === 'string'
    ? cell
    : cell
        .map((block) => (block.kind === 'table' ? '' : `${block.kind === 'item' ? '- ' : ''}${block.text}`))
        .join('\n')
