import { type Cron, findNextRun, parseCron } from './cron.ts'

/** The times at which a schedule runs. All times are ISO 8601 in UTC. */
export interface Timing {
  /** Null if `every_seconds` is not. */
  readonly cron: string | null
  /** Interval from `start_at` on, or from `created_at`. */
  readonly every_seconds: number | null
  /** IANA time zone of `cron`. */
  readonly time_zone: string
  /** First possible time; null if there is none. */
  readonly start_at: string | null
  /** No run is at this time or later; null if there is none. */
  readonly end_at: string | null
  readonly created_at: string
}

const MINUTE_MS = 60_000
// ISO 8601 writes later years in another form.
const END_OF_TIME = Date.UTC(9999, 0)
const parsedExpressions = new Map<string, Cron>()
const MAX_EXPRESSIONS = 1000

function parseOnce(expression: string): Cron {
  const found = parsedExpressions.get(expression)
  if (found !== undefined) return found
  if (parsedExpressions.size >= MAX_EXPRESSIONS) parsedExpressions.clear()
  const parsed = parseCron(expression)
  parsedExpressions.set(expression, parsed)
  return parsed
}

/** Returns the first time after `after`, in ms since the epoch; null if there is none. */
export function findNextTime(timing: Timing, after: number): number | null {
  const { cron, every_seconds, time_zone, start_at, end_at, created_at } = timing
  const earliest = start_at === null ? after : Math.max(after, Date.parse(start_at) - 1)
  let next: number | null
  if (cron === null) {
    const origin = Date.parse(start_at ?? created_at)
    const interval = every_seconds! * 1000
    next = origin + (Math.floor((earliest - origin) / interval) + 1) * interval
  } else next = findNextRun(parseOnce(cron), time_zone, earliest)
  const end = end_at === null ? END_OF_TIME : Date.parse(end_at)
  return next === null || next >= end ? null : next
}

/** Returns the next times, of which `next` is the first. */
export function listNextTimes(timing: Timing, next: number | null, count: number): readonly number[] {
  const times: number[] = []
  for (let time = next; time !== null && times.length < count; time = findNextTime(timing, time))
    times.push(time)
  return times
}

/**
 * Returns the latest time until `now`, at least `due`, which is a time of the schedule. Doubles the span before `now` in
 * which it looks, so that it does not compute all times of a long outage.
 */
export function findLatestTime(timing: Timing, due: number, now: number): number {
  for (let span = MINUTE_MS; ; span *= 2) {
    const from = Math.max(due, now - span)
    let latest = findNextTime(timing, from)
    if (latest !== null && latest <= now) {
      for (let next = findNextTime(timing, latest); next !== null && next <= now; ) {
        latest = next
        next = findNextTime(timing, latest)
      }
      return latest
    }
    if (from === due) return due
  }
}
