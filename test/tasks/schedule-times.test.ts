import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { findNextRun, parseCron } from '../../tasks/schedules/cron.ts'
import { findLatestTime, findNextTime, listNextTimes, type Timing } from '../../tasks/schedules/timing.ts'
import { findInstant, isTimeZone, toLocal } from '../../tasks/schedules/zone.ts'
import { createRunOptions } from '../runs.ts'

/** Times of schedules, in zones whose clocks skip or repeat times. */

/** Returns the next runs, without seconds. */
function listRuns(cron: string, zone: string, after: string, count: number): (string | null)[] {
  const runs: (string | null)[] = []
  let time: number | null = Date.parse(after)
  while (runs.length < count && time !== null) {
    time = findNextRun(parseCron(cron), zone, time)
    runs.push(time === null ? null : `${new Date(time).toISOString().slice(0, 16)}Z`)
  }
  return runs
}

describe('cron expressions in a time zone', () => {
  for (const [what, cron, zone, after, ...runs] of [
    [
      'a skipped time runs after the gap',
      '30 2 * * *',
      'Europe/Berlin',
      '2026-03-28T12:00Z',
      '2026-03-29T01:00Z',
      '2026-03-30T00:30Z',
    ],
    [
      'a repeated time runs once',
      '30 2 * * *',
      'Europe/Berlin',
      '2026-10-24T12:00Z',
      '2026-10-25T00:30Z',
      '2026-10-26T01:30Z',
    ],
    [
      'each repeated minute runs once',
      '*/20 * * * *',
      'Europe/Berlin',
      '2026-10-25T00:00Z',
      '2026-10-25T00:20Z',
      '2026-10-25T00:40Z',
      '2026-10-25T02:00Z',
    ],
    [
      'all skipped minutes are one run',
      '*/20 * * * *',
      'Europe/Berlin',
      '2026-03-29T00:20Z',
      '2026-03-29T00:40Z',
      '2026-03-29T01:00Z',
      '2026-03-29T01:20Z',
    ],
    [
      'the second pass of a repeated hour',
      '*/20 * * * *',
      'Europe/Berlin',
      '2026-10-25T01:30Z',
      '2026-10-25T02:00Z',
    ],
    [
      'a gap of half an hour',
      '15 2 * * *',
      'Australia/Lord_Howe',
      '2026-10-03T00:00Z',
      '2026-10-03T15:30Z',
      '2026-10-04T15:15Z',
    ],
    [
      'a repeated half hour',
      '45 1 * * *',
      'Australia/Lord_Howe',
      '2026-04-04T00:00Z',
      '2026-04-04T14:45Z',
      '2026-04-05T15:15Z',
    ],
    [
      'a gap at midnight',
      '0 0 * * *',
      'America/Sao_Paulo',
      '2018-11-03T12:00Z',
      '2018-11-04T03:00Z',
      '2018-11-05T02:00Z',
    ],
    [
      'a zone without daylight saving since 2019',
      '0 0 * * *',
      'America/Sao_Paulo',
      '2026-11-03T12:00Z',
      '2026-11-04T03:00Z',
      '2026-11-05T03:00Z',
    ],
    [
      'a clock that goes back for Ramadan',
      '30 2 * * *',
      'Africa/Casablanca',
      '2026-02-14T12:00Z',
      '2026-02-15T01:30Z',
      '2026-02-16T02:30Z',
    ],
    [
      'a clock that goes forward after Ramadan',
      '30 2 * * *',
      'Africa/Casablanca',
      '2026-03-21T12:00Z',
      '2026-03-22T02:00Z',
      '2026-03-23T01:30Z',
    ],
    [
      'a change of rule to permanent summer time',
      '0 9 * * *',
      'Asia/Amman',
      '2022-10-26T12:00Z',
      '2022-10-27T06:00Z',
      '2022-10-28T06:00Z',
    ],
    [
      'the same zone under its former rule',
      '0 9 * * *',
      'Asia/Amman',
      '2021-10-28T00:00Z',
      '2021-10-28T06:00Z',
      '2021-10-29T07:00Z',
    ],
    [
      'a skipped day',
      '0 12 * * *',
      'Pacific/Apia',
      '2011-12-29T00:00Z',
      '2011-12-29T22:00Z',
      '2011-12-30T10:00Z',
      '2011-12-30T22:00Z',
    ],
    ['a leap day', '0 0 29 2 *', 'Asia/Tokyo', '2026-01-01T00:00Z', '2028-02-28T15:00Z', '2032-02-28T15:00Z'],
    ['a leap day over 2100', '0 0 29 2 *', 'UTC', '2096-03-01T00:00Z', '2104-02-29T00:00Z'],
    ['a day that does not exist', '0 0 30 2 *', 'Europe/Berlin', '2026-01-01T00:00Z', null],
    [
      'a weekday in local time',
      '0 1 * * mon',
      'Asia/Tokyo',
      '2026-03-01T00:00Z',
      '2026-03-01T16:00Z',
      '2026-03-08T16:00Z',
    ],
  ] as const)
    test(what, () => assert.deepEqual(listRuns(cron, zone, after, runs.length), runs))

  test('names, ranges with steps and short forms', () => {
    for (const [cron, same] of [
      ['@hourly', '0 * * * *'],
      ['@daily', '0 0 * * *'],
      ['@weekly', '0 0 * * 0'],
      ['@monthly', '0 0 1 * *'],
      ['@yearly', '0 0 1 1 *'],
      [' 0  9-17/4 * JAN-MAR,dec Mon-FRI ', '0 9,13,17 * 1-3,12 1-5'],
      ['0 0 * * fri-sun', '0 0 * * 5,6,0'],
      ['0 0 * * sun', '0 0 * * 7'],
      ['10-30/10,59 * * * *', '10,20,30,59 * * * *'],
    ])
      assert.deepEqual(parseCron(cron!), parseCron(same!), cron)
    for (const wrong of [
      '@reboot',
      '0 0 * foo *',
      '5/10 * * * *',
      '0 0 mon * *',
      '0 0 * * wed-mon',
      '0 0 1-40 * *',
      '* * * * *-3',
    ])
      assert.throws(() => parseCron(wrong), RangeError, wrong)
  })

  test('every run has the local time of the expression, unless the clock skips it', () => {
    const zones = fc.constantFrom(
      'Europe/Berlin',
      'Australia/Lord_Howe',
      'America/New_York',
      'Africa/Casablanca',
      'Asia/Kathmandu',
    )
    const times = fc.integer({ min: Date.UTC(2000, 0, 1), max: Date.UTC(2037, 0, 1) })
    fc.assert(
      fc.property(
        zones,
        times,
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: 0, max: 59 }),
        (zone, after, hour, minute) => {
          const next = findNextRun(parseCron(`${minute} ${hour} * * *`), zone, after)!
          assert.ok(next > after && next - after < 50 * 3_600_000)
          const local = new Date(toLocal(zone, next))
          const wanted = Date.UTC(
            local.getUTCFullYear(),
            local.getUTCMonth(),
            local.getUTCDate(),
            hour,
            minute,
          )
          // An earlier instant with this local time would be before `after`.
          assert.equal(findInstant(zone, wanted), next)
          const isExact = local.getUTCHours() === hour && local.getUTCMinutes() === minute
          assert.ok(isExact || toLocal(zone, next - 1) < wanted)
        },
      ),
      createRunOptions(300),
    )
  })

  test('names of time zones', () => {
    for (const name of ['UTC', 'Europe/Berlin', 'Etc/GMT+5', 'America/Argentina/Buenos_Aires', 'CET'])
      assert.ok(isTimeZone(name), name)
    for (const name of ['', '+02:00', 'Europe/Atlantis', 'Z', 'x'.repeat(100), '../UTC', 'Europe Berlin'])
      assert.ok(!isTimeZone(name), name)
  })
})

describe('the times of a schedule', () => {
  const EVERY_HOUR: Timing = {
    ...{ cron: null, every_seconds: 3600, time_zone: 'UTC', start_at: null, end_at: null },
    created_at: '2026-03-01T10:20:30.400Z',
  }
  const DAILY: Timing = { ...EVERY_HOUR, cron: '0 3 * * *', every_seconds: null }
  const list = (timing: Timing, after: string, count = 2) =>
    listNextTimes(timing, findNextTime(timing, Date.parse(after)), count).map((time) =>
      new Date(time).toISOString(),
    )

  test('an interval begins at the creation', () => {
    assert.deepEqual(list(EVERY_HOUR, EVERY_HOUR.created_at), [
      '2026-03-01T11:20:30.400Z',
      '2026-03-01T12:20:30.400Z',
    ])
    assert.deepEqual(list(EVERY_HOUR, '2026-03-09T00:00:00.000Z'), [
      '2026-03-09T00:20:30.400Z',
      '2026-03-09T01:20:30.400Z',
    ])
  })

  test('an interval begins at start_at, which is its first time', () => {
    const timing = { ...EVERY_HOUR, start_at: '2026-03-05T00:00:00.000Z' }
    assert.deepEqual(list(timing, EVERY_HOUR.created_at), [
      '2026-03-05T00:00:00.000Z',
      '2026-03-05T01:00:00.000Z',
    ])
    assert.deepEqual(list(timing, '2026-03-05T00:00:00.000Z', 1), ['2026-03-05T01:00:00.000Z'])
  })

  test('start_at may be a time, and end_at may not', () => {
    const timing = { ...DAILY, start_at: '2026-03-05T03:00:00.000Z', end_at: '2026-03-07T03:00:00.000Z' }
    assert.deepEqual(list(timing, '2026-03-01T00:00:00.000Z', 5), [
      '2026-03-05T03:00:00.000Z',
      '2026-03-06T03:00:00.000Z',
    ])
    assert.deepEqual(list(timing, '2026-03-06T03:00:00.000Z'), [])
  })

  test('no time is after the year 9998', () => {
    assert.deepEqual(
      list({ ...DAILY, start_at: '9998-12-30T12:00:00.000Z' }, '2026-03-01T00:00:00.000Z', 5),
      ['9998-12-31T03:00:00.000Z'],
    )
    assert.deepEqual(
      list({ ...DAILY, cron: '@yearly', start_at: '9998-12-30T12:00:00.000Z' }, DAILY.created_at),
      [],
    )
  })

  test('the latest time, however long ago the due one was', () => {
    const due = Date.parse('2026-03-05T03:00:00.000Z')
    for (const [now, latest] of [
      ['2026-03-05T03:00:00.000Z', '2026-03-05T03:00:00.000Z'],
      ['2026-03-06T02:59:59.999Z', '2026-03-05T03:00:00.000Z'],
      ['2026-03-06T03:00:00.000Z', '2026-03-06T03:00:00.000Z'],
      ['2029-03-06T12:00:00.000Z', '2029-03-06T03:00:00.000Z'],
    ])
      assert.equal(new Date(findLatestTime(DAILY, due, Date.parse(now!))).toISOString(), latest, now)
    const minutes = { ...DAILY, cron: '* 4 * * *' }
    const first = findNextTime(minutes, due)!
    assert.equal(
      new Date(findLatestTime(minutes, first, Date.parse('2027-01-01T03:00:00Z'))).toISOString(),
      '2026-12-31T04:59:00.000Z',
    )
    const ended = { ...DAILY, end_at: '2026-03-08T00:00:00.000Z' }
    assert.equal(
      new Date(findLatestTime(ended, due, Date.parse('2027-01-01T03:00:00Z'))).toISOString(),
      '2026-03-07T03:00:00.000Z',
    )
  })
})
