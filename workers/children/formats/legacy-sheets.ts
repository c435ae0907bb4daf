import { Unreadable } from '../images/images.ts'
import { nameColumn, showFormula } from './formulas.ts'
import { readTextsBeside } from './legacy-sheets-beside.ts'
import { decryptWorkbook } from './legacy-sheets-crypto.ts'
import { type CellFormat, formatNumber, formatWords, GENERAL_FORMAT, parseFormat } from './number-formats.ts'
import { type CellObject, readWorkbook, type WorkSheet } from './sheetjs.ts'
import { PageCollector, type PagedText, type PageText } from './texts.ts'

/**
 * Opens xls, xlsb and the XML of Excel 2003 with SheetJS: one page per sheet and one line per row. Comments and the other
 * texts of the sheet follow.
 */

const MAX_GAP_TABS = 100

/** Counts of the cells of a workbook, made without the library. */
export interface HeldCells {
  /** Cells with content of each sheet; absent if unknown. */
  readonly cells?: readonly number[]
  /** Letters of the whole workbook; absent if unknown. */
  readonly letters?: () => number | Promise<number>
  readonly hasPictures?: boolean
}

/**
 * Opens a workbook. `stream` has the records of an xls file, which hold what SheetJS does not read.
 * @throws Unreadable if it is damaged.
 */
export function openLegacyWorkbook(bytes: Uint8Array, held: HeldCells = {}, stream?: Uint8Array): PagedText {
  const book = parse(bytes)
  const beside = stream && readTextsBeside(Buffer.from(stream.buffer, stream.byteOffset, stream.byteLength))
  const is1904 = book.Workbook?.WBProps?.date1904 === true
  const formats = new Map<string, CellFormat>()
  const formatOf = ({ z }: CellObject): CellFormat => {
    if (typeof z !== 'string') return GENERAL_FORMAT
    const known = formats.get(z) ?? parseFormat(z)
    formats.set(z, known)
    return known
  }
  const { cells, letters, hasPictures = false } = held
  const isEmpty = Object.values(book.Sheets).every(({ '!data': rows = [] }) => rows.length === 0)
  const nameOf = (page: number): string => book.SheetNames[page - 1] ?? ''
  return {
    pageCount: Math.max(1, book.SheetNames.length),
    hasPictures,
    title: nameOf,
    holdings: {
      unit: 'sheet',
      letters: (page) =>
        cells?.length === book.SheetNames.length
          ? cells[page - 1]!
          : isEmpty && page === 1
            ? (letters?.() ?? 0)
            : 0,
    },
    read(page) {
      const name = nameOf(page)
      const sheet = book.Sheets[name]
      return sheet === undefined
        ? { text: name, markdown: null }
        : readSheet(name, sheet, beside?.get(name), (cell) => formatCell(cell, formatOf(cell), is1904))
    },
  }
}

/** Opens a workbook of Excel 2 to 4. @throws Unreadable if it is damaged, and Locked. */
export const openOldWorkbook = (bytes: Uint8Array, password: string | null): PagedText =>
  openLegacyWorkbook(decryptWorkbook(bytes, password) ?? bytes)

function parse(bytes: Uint8Array): ReturnType<typeof readWorkbook> {
  try {
    return readWorkbook(bytes)
  } catch (cause) {
    throw new Unreadable('The document is damaged', { cause })
  }
}

function readSheet(
  name: string,
  sheet: WorkSheet,
  beside: ReadonlySet<string> | undefined,
  format: (cell: CellObject) => string,
): PageText {
  const pages = new PageCollector()
  pages.addSheetTitle(name)
  const table: string[][] = []
  const comments: string[] = []
  const rows: readonly (readonly (CellObject | undefined)[] | undefined)[] = sheet['!data'] ?? []
  // `forEach` skips the rows and cells that a sparse array lacks.
  rows.forEach((row, r) => {
    let next = 0
    const cells: string[] = []
    row?.forEach((cell, c) => {
      if (cell === undefined || pages.isFull) return
      for (const { t: words = '' } of cell.c ?? [])
        comments.push(`${nameColumn(c)}${r + 1}: ${toLine(words)}`)
      const text = format(cell)
      if (text === '') return
      const gap = Math.min(c - next, MAX_GAP_TABS)
      pages.add(`${'\t'.repeat(gap)}${text}\t`, '')
      cells.push(...Array<string>(gap).fill(''), text)
      next = c + 1
    })
    if (cells.length > 0) table.push(cells)
    pages.endLine()
  })
  pages.structure.addRows(table)
  for (const line of [...comments, ...(beside ?? [])]) pages.add(`${line}\n`)
  return { text: pages.end().join('\n'), markdown: pages.markdown[0] ?? null }
}

const toLine = (text: string): string => text.replace(/\s+/g, ' ').trim()

// Errors by their number (MS-XLS, 2.5.10).
const ERRORS: Readonly<Record<number, string>> = {
  0: '#NULL!',
  7: '#DIV/0!',
  15: '#VALUE!',
  23: '#REF!',
  29: '#NAME?',
  36: '#NUM!',
  42: '#N/A',
}

function formatCell(
  { t: type, v: value, f: formula }: CellObject,
  format: CellFormat,
  is1904: boolean,
): string {
  if (value === undefined || value === '') return formula === undefined ? '' : toLine(showFormula(formula))
  if (type === 'b') return value === true ? 'TRUE' : 'FALSE'
  if (type === 'e') return ERRORS[Number(value)] ?? '#N/A'
  if (type === 'n') return formatNumber(Number(value), format, is1904)
  return formatWords(toLine(String(value instanceof Date ? value.toISOString() : value)), format)
}
