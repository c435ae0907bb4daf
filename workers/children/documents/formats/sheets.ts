import { readMarkup } from '../../../../tasks/markup.ts'
import { Archive, localName } from './archive.ts'
import { Pages, type Texts } from './texts.ts'

/** Spreadsheets of Office Open XML (ECMA-376, part 1, chapter 18): a page for each sheet, a line for each row. */

/** How the values of a workbook are shown. */
interface Book {
  readonly strings: readonly string[]
  /** Whether a cell format shows a date or time. */
  readonly dates: readonly boolean[]
  /** Days count from 1904 on, as on old Macintoshes. */
  readonly is1904: boolean
}

export async function openXlsx(bytes: Uint8Array): Promise<Texts> {
  const archive = await Archive.open(bytes)
  const main = await archive.mainPart()
  const related = await archive.relations(main)
  const pathOf = new Map(related.map(({ id, path }) => [id, path]))
  const partOf = async (type: string): Promise<string> =>
    (await archive.text(related.find((relation) => relation.type === type)?.path ?? '')) ?? ''
  const sheets: { readonly name: string; readonly path: string }[] = []
  let is1904 = false
  readMarkup(await archive.needed(main), 'xml', {
    open: (name, attributes) => {
      if (localName(name) === 'workbookPr') is1904 = /^(1|true)$/.test(attributes.date1904 ?? '')
      const path = localName(name) === 'sheet' ? pathOf.get(attributes['r:id'] ?? '') : undefined
      if (path !== undefined) sheets.push({ name: attributes.name ?? '', path })
    },
  })
  const book = {
    strings: sharedStrings(await partOf('sharedStrings')),
    dates: dateFormats(await partOf('styles')),
    is1904,
  }
  return {
    pageCount: Math.max(1, sheets.length),
    async text(page) {
      const sheet = sheets[page - 1]
      return sheet === undefined ? '' : sheetText(sheet.name, (await archive.text(sheet.path)) ?? '', book)
    },
  }
}

function sharedStrings(xml: string): readonly string[] {
  const strings: string[] = []
  let words = ''
  let isText = false
  // How Chinese and Japanese words are spoken is not what the cell says.
  let spoken = 0
  readMarkup(xml, 'xml', {
    open(qualified) {
      const name = localName(qualified)
      if (name === 'si') words = ''
      else if (name === 'rPh') spoken++
      else if (name === 't') isText = true
    },
    text(data) {
      if (isText && spoken === 0) words += data
    },
    close(qualified) {
      const name = localName(qualified)
      if (name === 'si') strings.push(words)
      else if (name === 'rPh') spoken--
      else if (name === 't') isText = false
    },
  })
  return strings
}

// 18.8.30: the formats that every program has. Those of East Asian dates are among the second group.
const isBuiltInDate = (id: number): boolean =>
  (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58)

/** Which cell formats, by their numbers, show a date or time. */
function dateFormats(xml: string): readonly boolean[] {
  const own = new Map<string, boolean>()
  const formats: boolean[] = []
  let isCells = false
  readMarkup(xml, 'xml', {
    open(qualified, { numFmtId = '', formatCode = '' }) {
      const name = localName(qualified)
      if (name === 'numFmt') own.set(numFmtId, isDate(formatCode))
      else if (name === 'cellXfs') isCells = true
      else if (name === 'xf' && isCells) formats.push(own.get(numFmtId) ?? isBuiltInDate(Number(numFmtId)))
    },
    close(qualified) {
      if (localName(qualified) === 'cellXfs') isCells = false
    },
  })
  return formats
}

/** Whether a format has codes of a date or time outside of quoted text, colours and conditions. */
const isDate = (code: string): boolean =>
  /[dmyhs]/i.test(code.replace(/"[^"]*"|\\.|_.|\*.|\[(?!(?:h+|m+|s+)\])[^\]]*\]|general/gi, ''))

function sheetText(title: string, xml: string, book: Book): string {
  const pages = new Pages()
  pages.add(`${title}\n`)
  let cell = { type: '', format: 0 }
  let value = ''
  let isValue = false
  readMarkup(xml, 'xml', {
    open(qualified, attributes) {
      const name = localName(qualified)
      if (name === 'c') {
        cell = { type: attributes.t ?? 'n', format: Number(attributes.s ?? 0) }
        value = ''
      } else if (name === 'v' || name === 't') isValue = true
    },
    text(data) {
      if (isValue) value += data
    },
    close(qualified) {
      const name = localName(qualified)
      if (name === 'v' || name === 't') isValue = false
      else if (name === 'c' && value !== '') pages.add(`${shown(value, cell, book)}\t`)
      else if (name === 'row') pages.line()
    },
  })
  return pages.end().join('\n')
}

function shown(value: string, { type, format }: { type: string; format: number }, book: Book): string {
  switch (type) {
    case 's':
      return (book.strings[Number(value)] ?? '').replace(/\s+/g, ' ')
    case 'b':
      return value === '1' ? 'TRUE' : 'FALSE'
    case 'n': {
      const number = Number(value)
      if (!Number.isFinite(number)) return value
      if (book.dates[format] === true) return dateOf(number, book.is1904) ?? value
      // Programs compute with 15 digits, and store the 17 of binary numbers.
      return String(Number(number.toPrecision(15)))
    }
    default:
      return value.replace(/\s+/g, ' ')
  }
}

const DAY_MS = 86_400_000
// Day 60 is 29 February 1900, which was not: later days count from one day earlier.
const DAY_ZERO = Date.UTC(1899, 11, 30)
const DAY_ZERO_1904 = Date.UTC(1904, 0, 1)

/** A date, a time, or both, as ISO 8601 has them; null for what is none. */
function dateOf(days: number, is1904: boolean): string | null {
  const time = new Date((is1904 ? DAY_ZERO_1904 : DAY_ZERO) + Math.round((days * DAY_MS) / 1000) * 1000)
  if (days < 0 || Number.isNaN(time.getTime()) || time.getUTCFullYear() > 9999) return null
  const [date, clock] = [time.toISOString().slice(0, 10), time.toISOString().slice(11, 19)]
  if (days < 1) return clock
  return Number.isInteger(days) ? date : `${date} ${clock}`
}
