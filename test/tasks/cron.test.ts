import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type CronMatcher, parseCronItem } from 'graphile-worker'
import { StartError } from '../../sql/server/start-error.ts'
import { findNextRun, parseCron } from '../../tasks/schedules/cron.ts'
import { checkSchedule, scheduleEntries } from '../../tasks/schedules/entries.ts'
import { createRunOptions } from '../runs.ts'

/** In UTC, cron expressions run at the times at which graphile-worker would run them. */

/** Returns the next run in UTC. @throws RangeError if the expression is invalid or never runs. */
function computeNextRun(cron: string, after: Date): Date {
  const next = findNextRun(parseCron(cron), 'UTC', after.getTime())
  if (next === null) throw new RangeError(`${cron} never runs`)
  return new Date(next)
}

const MINUTE = 60_000
const DAY = 1440 * MINUTE
// Two leap days are at most 8 years apart.
const MAX_DAYS = 8 * 366

/** Returns a predicate that is true for times in whose minute the library runs the entry. */
function createRunPredicate(cron: string): (time: number) => boolean {
  const match = parseCronItem({ task: 'x', match: cron }).match as CronMatcher
  return (time) => {
    const at = new Date(time)
    return match({
      min: at.getUTCMinutes(),
      hour: at.getUTCHours(),
      date: at.getUTCDate(),
      month: at.getUTCMonth() + 1,
      dow: at.getUTCDay(),
    })
  }
}

/**
 * Asserts that the library runs the entry at the predicted time, and not before. Checks each minute of the last two
 * days, and the same time of day on all earlier days.
 */
function assertNextRun(cron: string, after: number): void {
  const isRun = createRunPredicate(cron)
  const next = computeNextRun(cron, new Date(after)).getTime()
  assert.ok(next > after && next % MINUTE === 0, new Date(next).toISOString())
  assert.ok(isRun(next), `it does not run at ${new Date(next).toISOString()}`)
  const earlier = (time: number) => `it runs at ${new Date(time).toISOString()} already`
  for (let time = next - MINUTE; time > after && time > next - 2 * DAY; time -= MINUTE)
    assert.ok(!isRun(time), earlier(time))
  for (let time = next - DAY; time > after; time -= DAY) assert.ok(!isRun(time), earlier(time))
}

test('a start checks all schedule entries, and names one that can never run', () => {
  checkSchedule()
  for (const match of ['*/10 * * * *', '0 0 29 2 *']) checkSchedule([{ identifier: 'valid', match }])
  for (const match of ['*/10 * * *', '0 0 30 2 *', '60 * * * *', '* * * * moon', '']) {
    const entries = [
      { identifier: 'first', match: '* * * * *' },
      { identifier: 'wrong', match },
    ]
    assert.throws(
      () => checkSchedule(entries),
      (error) => error instanceof StartError && error.message.includes(`"wrong" can't run at "${match}"`),
    )
  }
})

const NOON = Date.UTC(2026, 1, 28, 12, 0)

/** Generates a cron field from numbers, ranges and steps between `min` and `max`. */
function arbitraryField(min: number, max: number): fc.Arbitrary<string> {
  const number = fc.integer({ min, max })
  const range = fc
    .tuple(number, number)
    .filter(([a, b]) => a !== b)
    .map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`)
  const step = fc.integer({ min: 1, max }).map((n) => `*/${n}`)
  const part = fc.oneof(number.map(String), range, step)
  return fc.oneof(
    fc.constant('*'),
    fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(',')),
  )
}

const crons = fc
  .tuple(
    arbitraryField(0, 59),
    arbitraryField(0, 23),
    arbitraryField(1, 31),
    arbitraryField(1, 12),
    arbitraryField(0, 7),
  )
  .map((fields) => fields.join(' '))
const times = fc.integer({ min: Date.UTC(1970, 0, 1), max: Date.UTC(2200, 0, 1) })

describe('the next run', () => {
  for (const { identifier, match } of scheduleEntries)
    test(`of ${identifier}`, () => {
      fc.assert(
        fc.property(times, (after) => assertNextRun(match, after)),
        createRunOptions(20),
      )
    })

  test('of any expression, after any time', () => {
    fc.assert(
      fc.property(crons, times, (cron, after) => {
        try {
          assertNextRun(cron, after)
        } catch (error) {
          if (!(error instanceof RangeError)) throw error
          // No run was predicted, so the entry must not run on any day.
          const isRun = createRunPredicate(cron)
          const [minute, hour] = cron.split(' ')
          const first = computeNextRun(`${minute} ${hour} * * *`, new Date(after)).getTime()
          for (let day = 0; day < MAX_DAYS; day++) assert.ok(!isRun(first + day * DAY), cron)
        }
      }),
      createRunOptions(300),
    )
  })

  test('is after the given time, and at the start of a minute', () => {
    for (const [cron, after, next] of [
      ['* * * * *', '2026-02-28T12:00:00.000Z', '2026-02-28T12:01:00.000Z'],
      ['* * * * *', '2026-02-28T11:59:59.999Z', '2026-02-28T12:00:00.000Z'],
      ['17 * * * *', '2026-12-31T23:17:30.000Z', '2027-01-01T00:17:00.000Z'],
      ['*/15 * * * *', '2026-02-28T23:45:00.000Z', '2026-03-01T00:00:00.000Z'],
      ['0 9-17 * * 1-5', '2026-02-27T17:00:00.000Z', '2026-03-02T09:00:00.000Z'],
      ['0 0 29 2 *', '2096-03-01T00:00:00.000Z', '2104-02-29T00:00:00.000Z'],
      ['0 0 * * 7', '2026-02-28T12:00:00.000Z', '2026-03-01T00:00:00.000Z'],
    ])
      assert.equal(computeNextRun(cron!, new Date(after!)).toISOString(), next, `${cron} after ${after}`)
  })

  test('matches the day of the month or of the week if both are restricted', () => {
    for (const [cron, next] of [
      ['0 0 13 * 5', '2026-03-06T00:00:00.000Z'],
      ['0 0 2 * 5', '2026-03-02T00:00:00.000Z'],
      ['0 0 13 * *', '2026-03-13T00:00:00.000Z'],
    ])
      assert.equal(computeNextRun(cron!, new Date(NOON)).toISOString(), next, cron)
  })

  test('does not exist for an entry that never runs, or an invalid expression', () => {
    for (const cron of [
      ...['0 0 30 2 *', '0 0 31 4,6,9,11 *', '', '* * * *', '* * * * * *', '60 * * * *', '* 24 * * *'],
      ...['* * 0 * *', '* * * 13 *', '* * * * 8', '5-1 * * * *', '*/0 * * * *', 'a * * * *', '*x * * * *'],
      ...['-1 * * * *', '1, * * * *', '1-2-3 * * * *'],
    ])
      assert.throws(() => computeNextRun(cron, new Date(NOON)), RangeError, cron)
  })
})
