/**
 * Computes when a cron expression matches, by graphile-worker's rules: five fields in UTC, each a list of numbers,
 * ranges and `*`. Only `*` may have a step. Separate from that library so that the edge need not load it.
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

/**
 * Returns the first minute after `after` that a cron expression matches.
 *
 * @throws RangeError if it is invalid or never matches, such as `0 0 30 2 *`.
 */
export function computeNextRun(cron: string, after: Date): Date {
  const fields = parseExpression(cron)
  const earliest = (Math.floor(after.getTime() / MINUTE_MS) + 1) * MINUTE_MS
  const firstDay = Math.floor(earliest / DAY_MS) * DAY_MS
  for (let day = firstDay; day <= firstDay + MAX_DAYS * DAY_MS; day += DAY_MS) {
    if (!matchesDay(fields, new Date(day))) continue
    for (const hour of fields.hours)
      for (const minute of fields.minutes) {
        const time = day + hour * HOUR_MS + minute * MINUTE_MS
        if (time >= earliest) return new Date(time)
      }
  }
  throw new RangeError(`The cron expression ${cron} never matches`)
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

function parseExpression(cron: string): CronFields {
  const [minutes, hours, dates, months, weekdays, ...more] = cron.trim().split(/\s+/)
  if (weekdays === undefined || more.length > 0) throw new RangeError(`Invalid cron expression: ${cron}`)
  return {
    minutes: parseField(minutes!, 0, 59),
    hours: parseField(hours!, 0, 23),
    dates: parseField(dates!, 1, 31),
    months: parseField(months!, 1, 12),
    // Sunday is 0 or 7.
    weekdays: sortUnique(parseField(weekdays, 0, 7).map((day) => day % 7)),
  }
}

/** Parses a field: a list of numbers, ranges, and `*` with an optional step. */
function parseField(field: string, min: number, max: number): readonly number[] {
  const numbers = field.split(',').flatMap((part) => {
    const found = /^(?:\*(?:\/(\d+))?|(\d+)(?:-(\d+))?)$/.exec(part)
    if (found === null) throw new RangeError(`Invalid cron field: ${part}`)
    const [, step, first, last] = found
    const [from, to] = first === undefined ? [min, max] : [Number(first), Number(last ?? first)]
    const interval = Number(step ?? 1)
    if (interval < 1 || from < min || to > max || to < from)
      throw new RangeError(`Cron value out of range: ${part}`)
    return Array.from({ length: Math.floor((to - from) / interval) + 1 }, (_, n) => from + n * interval)
  })
  return sortUnique(numbers)
}

const sortUnique = (numbers: readonly number[]): readonly number[] =>
  [...new Set(numbers)].sort((a, b) => a - b)
