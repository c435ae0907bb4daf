/**
 * Parses dates in common formats: ISO and its variants, email dates, English month names, epoch numbers, and those that
 * programs in Go and Ruby print. Assumes UTC for a time without a zone.
 */

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const MONTH_PATTERN =
  '(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\\.?'
const DAY_PATTERN = '(\\d{1,2})(?:st|nd|rd|th)?'

/** Offsets of zone abbreviations, in minutes east of Greenwich. */
const ZONE_OFFSETS: Readonly<Record<string, number>> = {
  z: 0,
  utc: 0,
  gmt: 0,
  ut: 0,
  wet: 0,
  west: 60,
  bst: 60,
  cet: 60,
  met: 60,
  cest: 120,
  mest: 120,
  eet: 120,
  eest: 180,
  msk: 180,
  ist: 330,
  hkt: 480,
  sgt: 480,
  awst: 480,
  jst: 540,
  kst: 540,
  acst: 570,
  aest: 600,
  acdt: 630,
  aedt: 660,
  nzst: 720,
  nzdt: 780,
  est: -300,
  edt: -240,
  cst: -360,
  cdt: -300,
  mst: -420,
  mdt: -360,
  pst: -480,
  pdt: -420,
  akst: -540,
  akdt: -480,
  hst: -600,
}

interface Day {
  readonly year: number
  readonly month: number
  readonly day: number
}

type MatchGroups = readonly (string | undefined)[]
const toDay = (year: unknown, month: unknown, day: unknown): Day => ({
  year: Number(year),
  month: Number(month),
  day: Number(day),
})
/** Adds the century to a year of two digits, as POSIX does. */
const expandYear = (year: string): number =>
  (year.length > 2 ? 0 : Number(year) < 69 ? 2000 : 1900) + Number(year)
const parseMonthNameDay = (year: unknown, month: unknown, day: unknown): Day =>
  toDay(expandYear(String(year)), MONTHS.indexOf(String(month).slice(0, 3).toLowerCase()) + 1, day)

const DATE_FORMATS: readonly [RegExp, (groups: MatchGroups) => Day][] = [
  [/^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})$/, ([, year, , month, day]) => toDay(year, month, day)],
  [/^(\d{4})年(\d{1,2})月(\d{1,2})日$/, ([, year, month, day]) => toDay(year, month, day)],
  [/^(\d{4})(\d{2})(\d{2})$/, ([, year, month, day]) => toDay(year, month, day)],
  [/^(\d{4})[-/](\d{1,2})$/, ([, year, month]) => toDay(year, month, 1)],
  [/^(\d{4})$/, ([, year]) => toDay(year, 1, 1)],
  [/^(\d{1,2})([-.])(\d{1,2})\2(\d{4})$/, ([, day, , month, year]) => toDay(year, month, day)],
  // With slashes, the month comes first (US order), unless the first number exceeds 12.
  [
    /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/,
    ([, one, two, year]) => (Number(one) > 12 ? toDay(year, two, one) : toDay(year, one, two)),
  ],
  [
    new RegExp(`^${MONTH_PATTERN}[ ,-]+${DAY_PATTERN}[ ,-]+(\\d{4})$`, 'i'),
    ([, month, day, year]) => parseMonthNameDay(year, month, day),
  ],
  [
    new RegExp(`^${DAY_PATTERN}(?: of)?[ ,-]*${MONTH_PATTERN}[ ,-]*(\\d{4}|\\d{2})$`, 'i'),
    ([, day, month, year]) => parseMonthNameDay(year, month, day),
  ],
  [
    new RegExp(`^(\\d{4})[ ,-]+${MONTH_PATTERN}[ ,-]+${DAY_PATTERN}$`, 'i'),
    ([, year, month, day]) => parseMonthNameDay(year, month, day),
  ],
  [
    new RegExp(`^${MONTH_PATTERN}[ ,-]+(\\d{4})$`, 'i'),
    ([, month, year]) => parseMonthNameDay(year, month, 1),
  ],
]

const TIME_PATTERN =
  /(?:^|(?<=\d)t|[ ,]+|(?<=日))(?:at )?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:[.,](\d{1,9}))?)?(?: ?([ap])\.?m\b\.?)?/i
const COMPACT_TIME_PATTERN = /(?<=^\d{8})t?(\d{2})(\d{2})(\d{2})?(?:[.,](\d{1,9}))?/i
const OFFSET_PATTERN = /^ ?(?:(?:utc|gmt) ?)?([+\u2212-])(\d{1,2})(?::?(\d{2}))?(?![\d:])/i
const ABBREVIATION_PATTERN = /^ ?([a-z]{1,4})\b(?![/_])/i
const TIME_ZONE_PATTERN = /^ ?\[?([a-z]+(?:[/_-][a-z]+)+)\]?/i

// After an offset, Java repeats the zone in brackets. Go adds its abbreviation or offset, and a monotonic clock.
const REPEATED_ZONE_PATTERN =
  /^ ?(?:\[[^\]]*\]|(?!(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))[a-z]{2,5}\b|[+-]\d{2}(?:\d{2})?\b)?(?: m=[+-][\d.]+)?/i

/** Parses a date; returns ISO 8601 in UTC, or null if it is not a date. */
export function parseDate(given: string): string | null {
  const text = given.trim().replace(/\s+/g, ' ')
  if (/^-?\d{9,10}(\.\d+)?$/.test(text)) return toIso(Math.round(Number(text) * 1000))
  if (/^\d{12,13}$/.test(text)) return toIso(Number(text))
  const plain = text
    .replace(/\([^)]*\)/g, ' ')
    .replace(/^(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?\b[.,]*/i, '')
    .trim()
  const time = TIME_PATTERN.exec(plain) ?? COMPACT_TIME_PATTERN.exec(plain)
  if (time === null) return toInstant(parseDay(plain), 0, { minutes: 0 })
  const afterTime = plain.slice(time.index + time[0].length)
  const { zone, rest } = parseZone(afterTime)
  if (zone === null) return null
  return toInstant(parseDay(`${plain.slice(0, time.index)} ${rest}`.trim()), parseTime(time), zone)
}

function parseDay(text: string): Day | null {
  const clean = text.replace(/[ ,]+$/, '').replace(/^[ ,]+/, '')
  for (const [form, read] of DATE_FORMATS) {
    const groups = form.exec(clean)
    if (groups !== null) return read(groups)
  }
  return null
}

/** Converts a time of day to milliseconds since midnight; NaN if it is invalid. */
function parseTime([, hours, minutes, seconds = '0', fraction = '', meridiem]: MatchGroups): number {
  let hour = Number(hours)
  if (meridiem !== undefined) {
    if (hour < 1 || hour > 12) return Number.NaN
    hour = (hour % 12) + (meridiem.toLowerCase() === 'p' ? 12 : 0)
  }
  if (hour > 24 || Number(minutes) > 59 || Number(seconds) > 60) return Number.NaN
  return (
    ((hour * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 +
    Math.floor(Number(`0.${fraction}0`) * 1000)
  )
}

type Zone = { readonly minutes: number } | { readonly timeZone: string }

/** Parses the zone at the start of a text; `zone` is UTC if the text has none, and null if the zone is unknown. */
function parseZone(text: string): { zone: Zone | null; rest: string } {
  const offset = OFFSET_PATTERN.exec(text)
  if (offset !== null) {
    const [all, sign, hours, minutes = '0'] = offset
    const size = Number(hours) * 60 + Number(minutes)
    const zone = size > 18 * 60 ? null : { minutes: sign === '+' ? size : -size }
    return { zone, rest: text.slice(all.length).replace(REPEATED_ZONE_PATTERN, '') }
  }
  const region = TIME_ZONE_PATTERN.exec(text)
  if (region !== null)
    return {
      zone: isTimeZone(region[1]!) ? { timeZone: region[1]! } : null,
      rest: text.slice(region[0].length),
    }
  const letters = ABBREVIATION_PATTERN.exec(text)
  if (letters === null || MONTHS.includes(letters[1]!.slice(0, 3).toLowerCase()))
    return { zone: { minutes: 0 }, rest: text }
  const name = letters[1]!.toLowerCase()
  const minutes = Object.hasOwn(ZONE_OFFSETS, name) ? ZONE_OFFSETS[name] : undefined
  const rest = text.slice(letters[0].length).replace(REPEATED_ZONE_PATTERN, '')
  return { zone: minutes === undefined ? null : { minutes }, rest }
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

function toInstant(day: Day | null, milliseconds: number, zone: Zone): string | null {
  if (day === null || Number.isNaN(milliseconds)) return null
  const date = new Date(0)
  date.setUTCFullYear(day.year, day.month - 1, day.day)
  // `Date` rolls a nonexistent day over into the next month.
  if (date.getUTCMonth() !== day.month - 1 || date.getUTCDate() !== day.day) return null
  const local = date.getTime() + milliseconds
  return toIso(local - ('minutes' in zone ? zone.minutes : computeOffset(zone.timeZone, local)) * 60_000)
}

/**
 * Returns the offset of a time zone at a local time, in minutes east of Greenwich. Computes it in two steps: first as
 * if the local time were UTC, then at the resulting instant.
 */
function computeOffset(timeZone: string, local: number): number {
  const formatter = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  const offset = (instant: number): number => {
    const [, sign, hours, minutes] = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(formatter.format(instant)) ?? []
    return (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * (sign === '-' ? -1 : 1)
  }
  return offset(local - offset(local) * 60_000)
}

/** Formats a time as ISO 8601; null for invalid times and for years without four digits. */
function toIso(milliseconds: number): string | null {
  const text =
    Number.isNaN(milliseconds) || Math.abs(milliseconds) > 8.64e15 ? '' : new Date(milliseconds).toISOString()
  return /^(?!0000)\d{4}-/.test(text) ? text : null
}
