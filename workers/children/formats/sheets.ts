import { type Archive, keepFirstOfEach } from './archive.ts'
import { moveFormula, parseColumn, showFormula } from './formulas.ts'
import type { Holdings } from './held.ts'
import { countCells, countStrings } from './held-markup.ts'
import { countParts } from './held-parts.ts'
import {
  type CellFormat,
  findBuiltInFormat,
  formatNumber,
  formatWords,
  GENERAL_FORMAT,
  parseFormat,
} from './number-formats.ts'
import { type ReadEmbedded, RelatedParts } from './related.ts'
import { listSheetParts, readHeadersAndFooters, readSheetParts, type SheetPart } from './sheet-parts.ts'
import { PageCollector, type PagedText, type PageText } from './texts.ts'
import { parseXml } from './xml.ts'

/** Opens Office Open XML spreadsheets (ECMA-376, part 1, chapter 18): one page per sheet, one line per row. */

/** Workbook data needed to display cell values. */
interface Workbook {
  readonly strings: readonly string[]
  /** The number formats of cells, by index. */
  readonly formats: readonly CellFormat[]
  /** True if dates count from 1904, as on old Macintoshes. */
  readonly is1904: boolean
}

/** Opens a workbook. Comments, drawings and headers follow the cells of their sheet. @throws Unreadable. */
export async function openXlsx(archive: Archive, readEmbedded?: ReadEmbedded): Promise<PagedText> {
  const main = await archive.findMainPart()
  const related = await archive.readRelations(main)
  const pathOf = new Map(related.map(({ id, path }) => [id, path]))
  const partOf = async (type: string): Promise<string> =>
    (await archive.text(related.find((relation) => relation.type === type)?.path ?? '')) ?? ''
  const named: { readonly name: string; readonly path: string }[] = []
  let is1904 = false
  parseXml(await archive.readRequired(main), {
    open: (name, attributes) => {
      if (name === 'workbookPr') is1904 = /^(1|true)$/.test(attributes.date1904 ?? '')
      const path = name === 'sheet' ? pathOf.get(attributes['r:id'] ?? '') : undefined
      if (path !== undefined) named.push({ name: attributes.name ?? '', path })
    },
  })
  const shown = new RelatedParts(archive, readEmbedded)
  const seen = new Set<string>()
  const sheets: { readonly name: string; readonly path: string; readonly parts: readonly SheetPart[] }[] = []
  for (const sheet of keepFirstOfEach(named))
    sheets.push({ ...sheet, parts: await listSheetParts(archive, sheet.path, shown, seen) })
  const book = {
    strings: parseSharedStrings(await partOf('sharedStrings')),
    formats: parseCellFormats(await partOf('styles')),
    is1904,
  }
  const pageCount = Math.max(1, sheets.length)
  return {
    pageCount,
    ...archive.describePages(pageCount, await archive.placePictures(sheets.map(({ parts }) => parts))),
    title: (page) => sheets[page - 1]?.name ?? '',
    holdings: createHoldings(archive, sheets),
    async read(page) {
      const sheet = sheets[page - 1]
      if (sheet === undefined) return { text: '', markdown: null }
      const xml = (await archive.text(sheet.path)) ?? ''
      const beside = [...(await readSheetParts(archive, sheet.parts, shown)), ...readHeadersAndFooters(xml)]
      return readSheet(sheet.name, xml, book, beside)
    },
  }
}

const SHEET_TYPE = /spreadsheetml\.worksheet\+xml$/
const STRINGS_TYPE = /spreadsheetml\.sharedStrings\+xml$/

/** Counts the cells of sheets, and finds their strings, without the relations that the reader follows. */
function createHoldings(archive: Archive, sheets: readonly { readonly path: string }[]): Holdings {
  let counted: Promise<readonly number[] | null> | undefined
  const readStrings = async (): Promise<readonly number[] | null> => {
    const [declared] = await archive.listParts(STRINGS_TYPE)
    const path = declared ?? archive.paths.find((name) => /sharedstrings[^/]*$/.test(name))
    const bytes = path === undefined ? null : await archive.bytes(path)
    return bytes && countStrings(bytes)
  }
  return {
    unit: 'sheet',
    async letters(page) {
      const path = sheets[page - 1]?.path
      const paths = path === undefined ? await archive.listParts(SHEET_TYPE) : [path]
      counted ??= readStrings()
      const strings = await counted
      return await countParts(archive, paths, (bytes) => countCells(bytes, strings))
    },
  }
}

function parseSharedStrings(xml: string): readonly string[] {
  const strings: string[] = []
  let words = ''
  let isText = false
  // Skip phonetic guides (furigana): they are not cell content.
  let phoneticDepth = 0
  parseXml(xml, {
    open(name) {
      if (name === 'si') words = ''
      else if (name === 'rPh') phoneticDepth++
      else if (name === 't') isText = true
    },
    text(data) {
      if (isText && phoneticDepth === 0) words += data
    },
    close(name) {
      if (name === 'si') strings.push(toSingleLine(words))
      else if (name === 'rPh') phoneticDepth--
      else if (name === 't') isText = false
    },
  })
  return strings
}

/** Reads the number format of each cell format, by index. */
function parseCellFormats(xml: string): readonly CellFormat[] {
  const own = new Map<string, CellFormat>()
  const formats: CellFormat[] = []
  let isCells = false
  parseXml(xml, {
    open(name, { numFmtId = '', formatCode = '' }) {
      if (name === 'numFmt') own.set(numFmtId, parseFormat(formatCode))
      else if (name === 'cellXfs') isCells = true
      else if (name === 'xf' && isCells)
        formats.push(own.get(numFmtId) ?? findBuiltInFormat(Number(numFmtId)))
    },
    close(name) {
      if (name === 'cellXfs') isCells = false
    },
  })
  return formats
}

// Limit of tabs before an isolated cell, one for each empty column.
const MAX_GAP_TABS = 100

function readSheet(title: string, xml: string, book: Workbook, beside: readonly string[]): PageText {
  const pages = new PageCollector()
  pages.addSheetTitle(title)
  const cells = new SheetCells(pages, book)
  parseXml(xml, {
    open: (name, attributes) => cells.open(name, attributes),
    text: (data) => cells.text(data),
    close: (name) => cells.close(name),
  })
  pages.endLine()
  pages.structure.addRows(cells.rows)
  for (const line of beside) pages.add(`${line}\n`)
  return { text: pages.end().join('\n'), markdown: pages.markdown[0] ?? null }
}

/** Writes the cells of a sheet row by row. */
class SheetCells {
  readonly #pages: PageCollector
  readonly #book: Workbook
  #cell = { type: '', format: 0 }
  #value = ''
  #formula = ''
  #sharedIndex: string | undefined
  // The first cell and the formula of each shared formula.
  readonly #shared = new Map<string, { formula: string; row: number; column: number }>()
  #reading: 'value' | 'formula' | null = null
  #phonetic = 0
  #row = -1
  // The column of the current cell, and the column after the last written one.
  #column = -1
  #next = 0
  /** The cells of the rows so far. */
  readonly rows: string[][] = []

  constructor(pages: PageCollector, book: Workbook) {
    this.#pages = pages
    this.#book = book
  }

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    if (name === 'row') {
      ;[this.#column, this.#next] = [-1, 0]
      if (this.rows.length === 0 || this.rows.at(-1)!.length > 0) this.rows.push([])
      this.#row = attributes.r === undefined ? this.#row + 1 : Number(attributes.r) - 1
    } else if (name === 'c') {
      this.#column = parseColumn(attributes.r ?? '') ?? this.#column + 1
      this.#cell = { type: attributes.t ?? 'n', format: Number(attributes.s ?? 0) }
      ;[this.#value, this.#formula, this.#sharedIndex] = ['', '', undefined]
    } else if (name === 'v' || name === 't') this.#reading = 'value'
    else if (name === 'rPh') this.#phonetic++
    else if (name === 'f') {
      this.#reading = 'formula'
      if (attributes.t === 'shared') this.#sharedIndex = attributes.si
    }
  }

  text(data: string): void {
    if (this.#phonetic > 0) return
    if (this.#reading === 'value') this.#value += data
    else if (this.#reading === 'formula') this.#formula += data
  }

  close(name: string): void {
    if (name === 'rPh') this.#phonetic--
    else if (name === 'v' || name === 't' || name === 'f') this.#reading = null
    else if (name === 'c') this.#write()
    else if (name === 'row') this.#pages.endLine()
  }

  #write(): void {
    if (this.#pages.isFull) return
    const formula = this.#resolveFormula()
    const text =
      this.#value !== ''
        ? formatCell(this.#value, this.#cell, this.#book)
        : formula === ''
          ? ''
          : toSingleLine(showFormula(formula))
    if (text === '') return
    const gap = Math.max(0, Math.min(this.#column - this.#next, MAX_GAP_TABS))
    this.#pages.add(`${'\t'.repeat(gap)}${text}\t`, '')
    if (this.rows.length === 0) this.rows.push([])
    const row = this.rows.at(-1)!
    for (let n = 0; n < gap; n++) row.push('')
    row.push(text)
    this.#next = this.#column + 1
  }

  #resolveFormula(): string {
    if (this.#sharedIndex === undefined) return this.#formula
    const position = { row: this.#row, column: this.#column }
    if (this.#formula !== '') this.#shared.set(this.#sharedIndex, { formula: this.#formula, ...position })
    const shared = this.#shared.get(this.#sharedIndex)
    return shared === undefined || this.#value !== '' ? '' : moveFormula(shared.formula, shared, position)
  }
}

function formatCell(
  value: string,
  { type, format: index }: { type: string; format: number },
  { formats, strings, is1904 }: Workbook,
): string {
  const format = formats[index] ?? GENERAL_FORMAT
  switch (type) {
    case 's':
      return formatWords(strings[Number(value)] ?? '', format)
    case 'b':
      return value === '1' ? 'TRUE' : 'FALSE'
    case 'n': {
      const number = Number(value)
      return Number.isFinite(number) ? formatNumber(number, format, is1904, value) : value
    }
    default:
      return formatWords(toSingleLine(value), format)
  }
}

/** Puts a text on one line. Decodes `_xHHHH_`, which escapes line ends and characters invalid in XML (22.9.2.19). */
const toSingleLine = (text: string): string =>
  text
    .replace(/_x([\da-f]{4})_/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/\s+/g, ' ')
