/**
 * Local times of IANA time zones, by the data of the JavaScript engine. A local time is a number of ms, as if its clock
 * showed UTC.
 */

const DAY_MS = 86_400_000
// A formatter takes some 20 KB, and there are hundreds of zones.
const MAX_FORMATTERS = 100
const formatters = new Map<string, Intl.DateTimeFormat>()

/** True for the name of a time zone, such as `Europe/Berlin` or `UTC`. Offsets such as `+02:00` are not names. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][\w+/-]{1,63}$/.test(name)) return false
  try {
    findFormatter(name)
    return true
  } catch {
    return false
  }
}

function findFormatter(timeZone: string): Intl.DateTimeFormat {
  const found = formatters.get(timeZone)
  if (found !== undefined) return found
  if (formatters.size >= MAX_FORMATTERS) formatters.clear()
  const number = 'numeric'
  const formatter = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone, calendar: 'gregory', hourCycle: 'h23' },
    ...{ year: number, month: number, day: number, hour: number, minute: number, second: number },
  })
  formatters.set(timeZone, formatter)
  return formatter
}

/** Returns the local time at an instant. */
export function toLocal(timeZone: string, instant: number): number {
  if (timeZone === 'UTC') return instant
  const parts = new Map(
    findFormatter(timeZone)
      .formatToParts(instant)
      .map(({ type, value }) => [type, Number(value)]),
  )
  const read = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type)!
  const seconds = Date.UTC(
    read('year'),
    read('month') - 1,
    read('day'),
    read('hour'),
    read('minute'),
    read('second'),
  )
  return seconds + (((instant % 1000) + 1000) % 1000)
}

/**
 * Returns the first instant with a local time. If the clock skips that time, returns the first instant after the gap.
 */
export function findInstant(timeZone: string, local: number): number {
  if (timeZone === 'UTC') return local
  const offsetAt = (instant: number): number => toLocal(timeZone, instant) - instant
  // No zone has two changes in two days.
  const before = offsetAt(local - DAY_MS)
  const after = offsetAt(local + DAY_MS)
  // With two instants, the one with the larger offset is first. It is also the start of the search in a gap.
  const early = local - Math.max(before, after)
  const late = local - Math.min(before, after)
  if (offsetAt(early) === local - early) return early
  if (offsetAt(late) === local - late) return late
  let [start, end] = [early, late]
  while (end - start > 1) {
    const middle = Math.floor((start + end) / 2)
    if (offsetAt(middle) === before) start = middle
    else end = middle
  }
  return end
}
