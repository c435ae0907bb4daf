import { findInstant, toLocal } from './zone.ts'

/**
 * Cron expressions: five fields, each a list of numbers, names, ranges and `*`, the latter two with an optional step, or
 * a name such as `@daily`. They are evaluated in a time zone. A local time that daylight saving skips runs at the first
 * instant after the gap. A local time that occurs twice runs the first time.
 */

interface CronFields {
  /** All lists are ascending. */
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  readonly dates: readonly number[]
  readonly months: readonly number[]
  readonly weekdays: readonly number[]
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
// Longest gap between two leap days: eight years, if the turn of the century between them is not a leap year.
const MAX_DAYS = 8 * 366

const ALL_DATES = 31
const ALL_WEEKDAYS = 7

const NAMED_EXPRESSIONS: Readonly<Record<string, string>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
}
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

/** A cron expression that has been parsed. */
export type Cron = CronFields

/** Parses a cron expression. @throws RangeError if it is invalid. */
export function parseCron(text: string): Cron {
  const expression = NAMED_EXPRESSIONS[text.trim().toLowerCase()] ?? text
  const [minutes, hours, dates, months, weekdays, ...more] = expression.trim().toLowerCase().split(/\s+/)
  if (weekdays === undefined || more.length > 0) throw new RangeError(`Invalid cron expression: ${text}`)
  return {
    minutes: parseField(minutes!, 0, 59),
    hours: parseField(hours!, 0, 23),
    dates: parseField(dates!, 1, 31),
    months: parseField(months!, 1, 12, MONTHS),
    // Sunday is 0 or 7.
    weekdays: sortUnique(parseField(weekdays, 0, 7, WEEKDAYS).map((day) => day % 7)),
  }
}

/**
 * Returns the first time after `after` at which an expression runs, in ms since the epoch. Null if it never matches, such
 * as `0 0 30 2 *`.
 */
export function findNextRun(cron: Cron, timeZone: string, after: number): number | null {
  const from = toLocal(timeZone, after)
  const firstDay = Math.floor(from / DAY_MS) * DAY_MS
  for (let day = firstDay; day <= firstDay + MAX_DAYS * DAY_MS; day += DAY_MS) {
    if (!matchesDay(cron, new Date(day))) continue
    for (const hour of cron.hours)
      for (const minute of cron.minutes) {
        const local = day + hour * HOUR_MS + minute * MINUTE_MS
        if (local <= from) continue
        // In the second pass of a repeated hour, local times that lie ahead have run in the first.
        const time = findInstant(timeZone, local)
        if (time > after) return time
      }
  }
  return null
}

/**
 * True if a day matches. If both the day of month and the day of week are restricted, one match suffices, as in cron.
 */
function matchesDay({ dates, months, weekdays }: CronFields, day: Date): boolean {
  if (!months.includes(day.getUTCMonth() + 1)) return false
  const isDate = dates.includes(day.getUTCDate())
  const isWeekday = weekdays.includes(day.getUTCDay())
  const matchesEither = dates.length < ALL_DATES && weekdays.length < ALL_WEEKDAYS
  return matchesEither ? isDate || isWeekday : isDate && isWeekday
}

const FIELD_PART = /^(?:\*|([a-z]+|\d+)(?:-([a-z]+|\d+))?)(?:\/(\d+))?$/

/** Parses a field: a list of numbers, names, ranges and `*`. The names are those of `min` and the following numbers. */
function parseField(
  field: string,
  min: number,
  max: number,
  names: readonly string[] = [],
): readonly number[] {
  const parse = (text: string): number => {
    const index = names.indexOf(text)
    return index >= 0 ? min + index : Number(text)
  }
  const numbers = field.split(',').flatMap((part) => {
    const found = FIELD_PART.exec(part)
    if (found === null) throw new RangeError(`Invalid cron field: ${part}`)
    const [, first, last, step] = found
    // Crons disagree on a number with a step.
    if (first !== undefined && last === undefined && step !== undefined)
      throw new RangeError(`Only a range or * can have a step: ${part}`)
    const from = first === undefined ? min : parse(first)
    const end = first === undefined ? max : parse(last ?? first)
    // A range such as `sat-sun` ends on a Sunday.
    const to = last === 'sun' && names === WEEKDAYS ? max : end
    const interval = Number(step ?? 1)
    // Rejects unknown names, which are not numbers.
    if (!(interval >= 1 && from >= min && to <= max && to >= from))
      throw new RangeError(`Cron value out of range: ${part}`)
    return Array.from({ length: Math.floor((to - from) / interval) + 1 }, (_, n) => from + n * interval)
  })
  return sortUnique(numbers)
}

const sortUnique = (numbers: readonly number[]): readonly number[] =>
  [...new Set(numbers)].sort((a, b) => a - b)
