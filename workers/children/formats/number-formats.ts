import { BUILT_IN_FORMATS, formatByCode } from './sheetjs.ts'
import { toShownNumber } from './texts.ts'

/** Formats the values of cells as spreadsheets show them. Dates are in ISO format, whatever the cell's own format. */

/** Kind of number that a cell displays: a plain number, a date or time of day, or an elapsed time. */
type NumberKind = 'number' | 'date' | 'duration'

/** The number format of a cell. */
export interface CellFormat {
  readonly kind: NumberKind
  readonly code: string
}

export const GENERAL_FORMAT: CellFormat = { kind: 'number', code: 'General' }

/** Returns a built-in format (ECMA-376, part 1, 18.8.30). 27 to 36 and 50 to 58 are East Asian dates. */
export function findBuiltInFormat(id: number): CellFormat {
  const code = BUILT_IN_FORMATS[id] ?? 'General'
  if (id === 46) return { kind: 'duration', code }
  const isDate =
    (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58)
  return { kind: isDate ? 'date' : 'number', code }
}

// Excel's own limit. Longer codes would make a cell as expensive as a page.
const MAX_CODE_CHARACTERS = 255

/** Describes a format by its code. */
export const parseFormat = (code: string): CellFormat =>
  code.length > MAX_CODE_CHARACTERS ? GENERAL_FORMAT : { kind: classifyCode(code), code }

// Matches codes for hours beyond 23, or for minutes or seconds beyond 59.
const ELAPSED_CODES = /\[(?:h+|m+|s+)\]/i

/** Classifies a format by its date and time codes outside of quoted text, colours and conditions. */
function classifyCode(code: string): NumberKind {
  const codes = code.replace(/"[^"]*"|\\.|_.|\*.|\[(?!(?:h+|m+|s+)\])[^\]]*\]|general|E[+-]/gi, '')
  if (ELAPSED_CODES.test(codes)) return 'duration'
  return /[dmyhs]/i.test(codes) ? 'date' : 'number'
}

/**
 * Formats a number. Spreadsheets store the 17 digits of a binary double, and show 15 without a format. `stored` stands
 * for dates out of range.
 */
export function formatNumber(
  value: number,
  { kind, code }: CellFormat,
  is1904: boolean,
  stored = String(value),
): string {
  if (kind === 'date') return formatDate(value, is1904) ?? stored
  if (kind === 'duration') return formatDuration(value)
  return /^(general|@|)$/i.test(code)
    ? toShownNumber(value)
    : (formatWith(code, value) ?? toShownNumber(value))
}

/** Formats a text: formats such as `"No. "@` add words. */
export const formatWords = (words: string, { code }: CellFormat): string =>
  code === '@' || !code.includes('@') ? words : (formatWith(code, words) ?? words)

// Formats fill cells with spaces.
function formatWith(code: string, value: number | string): string | null {
  try {
    return formatByCode(code, value).replace(/\s+/g, ' ').trim()
  } catch {
    return null
  }
}

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
