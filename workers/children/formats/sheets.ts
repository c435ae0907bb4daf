import { parseMarkup } from '../../../tasks/formats/markup.ts'
import { Archive, keepFirstOfEach, stripNamespacePrefix } from './archive.ts'
import { PageCollector, type PagedText } from './texts.ts'

/** Opens Office Open XML spreadsheets (ECMA-376, part 1, chapter 18): one page per sheet, one line per row. */

/** Kind of number that a cell displays: a plain number, a date or time of day, or an elapsed time. */
type NumberKind = 'number' | 'date' | 'duration'

/** Workbook data needed to display cell values. */
interface Workbook {
  readonly strings: readonly string[]
  /** The kind of number that each cell format displays, by format index. */
  readonly formats: readonly NumberKind[]
  /** True if dates count from 1904, as on old Macintoshes. */
  readonly is1904: boolean
}

export async function openXlsx(bytes: Uint8Array): Promise<PagedText> {
  const archive = await Archive.open(bytes)
  const main = await archive.findMainPart()
  const related = await archive.readRelations(main)
  const pathOf = new Map(related.map(({ id, path }) => [id, path]))
  const partOf = async (type: string): Promise<string> =>
    (await archive.text(related.find((relation) => relation.type === type)?.path ?? '')) ?? ''
  const named: { readonly name: string; readonly path: string }[] = []
  let is1904 = false
  parseMarkup(await archive.readRequired(main), 'xml', {
    open: (name, attributes) => {
      if (stripNamespacePrefix(name) === 'workbookPr') is1904 = /^(1|true)$/.test(attributes.date1904 ?? '')
      const path = stripNamespacePrefix(name) === 'sheet' ? pathOf.get(attributes['r:id'] ?? '') : undefined
      if (path !== undefined) named.push({ name: attributes.name ?? '', path })
    },
  })
  const sheets = keepFirstOfEach(named)
  const book = {
    strings: parseSharedStrings(await partOf('sharedStrings')),
    formats: parseCellFormats(await partOf('styles')),
    is1904,
  }
  return {
    pageCount: Math.max(1, sheets.length),
    unpackedBytes: archive.unpackedBytes,
    async text(page) {
      const sheet = sheets[page - 1]
      return sheet === undefined
        ? ''
        : extractSheetText(sheet.name, (await archive.text(sheet.path)) ?? '', book)
    },
  }
}

function parseSharedStrings(xml: string): readonly string[] {
  const strings: string[] = []
  let words = ''
  let isText = false
  // Skip phonetic guides (furigana): they are not cell content.
  let phoneticDepth = 0
  parseMarkup(xml, 'xml', {
    open(qualified) {
      const name = stripNamespacePrefix(qualified)
      if (name === 'si') words = ''
      else if (name === 'rPh') phoneticDepth++
      else if (name === 't') isText = true
    },
    text(data) {
      if (isText && phoneticDepth === 0) words += data
    },
    close(qualified) {
      const name = stripNamespacePrefix(qualified)
      if (name === 'si') strings.push(toSingleLine(words))
      else if (name === 'rPh') phoneticDepth--
      else if (name === 't') isText = false
    },
  })
  return strings
}

// Returns the kind of number of a built-in format (18.8.30). 27 to 36 and 50 to 58 are East Asian dates.
function classifyBuiltInFormat(id: number): NumberKind {
  if (id === 46) return 'duration'
  const isDate =
    (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58)
  return isDate ? 'date' : 'number'
}

/** Reads the kind of number that each cell format displays, by format index. */
function parseCellFormats(xml: string): readonly NumberKind[] {
  const own = new Map<string, NumberKind>()
  const formats: NumberKind[] = []
  let isCells = false
  parseMarkup(xml, 'xml', {
    open(qualified, { numFmtId = '', formatCode = '' }) {
      const name = stripNamespacePrefix(qualified)
      if (name === 'numFmt') own.set(numFmtId, classifyFormat(formatCode))
      else if (name === 'cellXfs') isCells = true
      else if (name === 'xf' && isCells)
        formats.push(own.get(numFmtId) ?? classifyBuiltInFormat(Number(numFmtId)))
    },
    close(qualified) {
      if (stripNamespacePrefix(qualified) === 'cellXfs') isCells = false
    },
  })
  return formats
}

// Matches codes for hours beyond 23, or for minutes or seconds beyond 59.
const ELAPSED_CODES = /\[(?:h+|m+|s+)\]/i

/** Classifies a format by its date and time codes outside of quoted text, colours and conditions. */
function classifyFormat(code: string): NumberKind {
  const codes = code.replace(/"[^"]*"|\\.|_.|\*.|\[(?!(?:h+|m+|s+)\])[^\]]*\]|general/gi, '')
  if (ELAPSED_CODES.test(codes)) return 'duration'
  return /[dmyhs]/i.test(codes) ? 'date' : 'number'
}

// Limit of tabs before an isolated cell, one for each empty column.
const MAX_GAP_TABS = 100

function extractSheetText(title: string, xml: string, book: Workbook): string {
  const pages = new PageCollector()
  pages.add(`${title}\n`)
  let cell = { type: '', format: 0 }
  let value = ''
  let isValue = false
  // The column of the current cell, and the column after the last written one.
  let [at, next] = [-1, 0]
  parseMarkup(xml, 'xml', {
    open(qualified, attributes) {
      const name = stripNamespacePrefix(qualified)
      if (name === 'row') [at, next] = [-1, 0]
      else if (name === 'c') {
        at = parseColumn(attributes.r ?? '') ?? at + 1
        cell = { type: attributes.t ?? 'n', format: Number(attributes.s ?? 0) }
        value = ''
      } else if (name === 'v' || name === 't') isValue = true
    },
    text(data) {
      if (isValue) value += data
    },
    close(qualified) {
      const name = stripNamespacePrefix(qualified)
      if (name === 'v' || name === 't') isValue = false
      else if (name === 'c' && value !== '' && !pages.isFull) {
        const gap = Math.max(0, Math.min(at - next, MAX_GAP_TABS))
        pages.add(`${'\t'.repeat(gap)}${formatCell(value, cell, book)}\t`)
        next = at + 1
      } else if (name === 'row') pages.endLine()
    },
  })
  return pages.end().join('\n')
}

/** Parses the zero-based column of a reference such as `AB12`; null if it has no column. */
function parseColumn(reference: string): number | null {
  const [letters] = /^[A-Z]{1,3}/.exec(reference) ?? []
  if (letters === undefined) return null
  return [...letters].reduce((sum, letter) => 26 * sum + letter.charCodeAt(0) - 64, 0) - 1
}

function formatCell(
  value: string,
  { type, format }: { type: string; format: number },
  book: Workbook,
): string {
  switch (type) {
    case 's':
      return book.strings[Number(value)] ?? ''
    case 'b':
      return value === '1' ? 'TRUE' : 'FALSE'
    case 'n': {
      const number = Number(value)
      if (!Number.isFinite(number)) return value
      const as = book.formats[format]
      if (as === 'date') return formatDate(number, book.is1904) ?? value
      if (as === 'duration') return formatDuration(number)
      // Spreadsheets show 15 significant digits, but store the 17 of a binary double.
      return String(Number(number.toPrecision(15)))
    }
    default:
      return toSingleLine(value)
  }
}

/** Puts a text on one line. Decodes `_xHHHH_`, which escapes line ends and characters invalid in XML (22.9.2.19). */
const toSingleLine = (text: string): string =>
  text
    .replace(/_x([\da-f]{4})_/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/\s+/g, ' ')

const DAY_MS = 86_400_000
// Day 60 is 29 February 1900, which never existed. Earlier days therefore count from 31 December 1899.
const DAY_ZERO = Date.UTC(1899, 11, 30)
const DAY_ZERO_1904 = Date.UTC(1904, 0, 1)
const NONEXISTENT_DAY = 60

/** Formats a day number as ISO date, time of day or both, separated by a space; null if out of range. */
function formatDate(days: number, is1904: boolean): string | null {
  const counted = !is1904 && days < NONEXISTENT_DAY ? days + 1 : days
  const time = new Date((is1904 ? DAY_ZERO_1904 : DAY_ZERO) + Math.round((counted * DAY_MS) / 1000) * 1000)
  if (days < 0 || Number.isNaN(time.getTime()) || time.getUTCFullYear() > 9999) return null
  const [date, clock] = [time.toISOString().slice(0, 10), time.toISOString().slice(11, 19)]
  if (days < 1) return clock
  return Number.isInteger(days) ? date : `${date} ${clock}`
}

/** Formats days as hours, minutes and seconds, such as 42:30:00. */
function formatDuration(days: number): string {
  const seconds = Math.round((Math.abs(days) * DAY_MS) / 1000)
  const two = (part: number): string => String(Math.floor(part) % 60).padStart(2, '0')
  const clock = `${String(Math.floor(seconds / 3600)).padStart(2, '0')}:${two(seconds / 60)}:${two(seconds)}`
  return days < 0 ? `-${clock}` : clock
}
