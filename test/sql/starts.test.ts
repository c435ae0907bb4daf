import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { reserveStart, type SharedRate } from '../../sql/jobs/starts.ts'
import { createTestDatabase } from '../database.ts'

/** `start_rate_reserve` spaces the starts of a rate, and the returns of callers that got none. */

const database = await createTestDatabase()
const { db, query } = database

let rates = 0
// Gaps of 10 s, against which the duration of a statement is small.
const createRate = (): SharedRate => ({ name: `test:${++rates}`, starts: 6, seconds: 60 })
const GAP_MS = 10_000
const SLACK_MS = 5000

const reserve = async (rate: SharedRate, maxWaitMs: number, comesBack = false): Promise<number> =>
  (await db.one(reserveStart(rate, { maxWaitMs, comesBack }))).wait_ms

/** Asserts that a wait does not exceed the expected one, and is shorter only by the time that the test took. */
function assertWaits(actual: number, expected: number): void {
  const [amount, least] = [Math.abs(actual), Math.max(0, Math.abs(expected) - SLACK_MS)]
  assert.ok(Math.sign(actual) === Math.sign(expected), `${actual} instead of ${expected} ms`)
  assert.ok(amount >= least && amount <= Math.abs(expected), `${actual} instead of ${expected} ms`)
}

/** Moves the times of a rate into the past. */
const age = (rate: SharedRate, seconds: number) =>
  query(
    'update start_rate set next_at = next_at - make_interval(secs => $2), line_at = line_at - make_interval(secs => $2) where name = $1',
    [rate.name, seconds],
  )

describe('start_rate_reserve', () => {
  test('reserves evenly spaced starts', async () => {
    const rate = createRate()
    assert.equal(await reserve(rate, 0), 0)
    for (const n of [1, 2, 3]) assertWaits(await reserve(rate, 60_000), n * GAP_MS)
  })

  test('reserves nothing beyond the longest wait', async () => {
    const rate = createRate()
    assert.equal(await reserve(rate, 0), 0)
    for (const _ of [1, 2, 3]) assertWaits(await reserve(rate, 2000), -GAP_MS)
    await age(rate, 10)
    assert.equal(await reserve(rate, 0), 0)
  })

  test('allows a start per gap, however long there was none', async () => {
    const rate = createRate()
    await reserve(rate, 0)
    await age(rate, 3600)
    assert.equal(await reserve(rate, 0), 0)
    assertWaits(await reserve(rate, 0), -GAP_MS)
  })

  test('allows a burst of the given size', async () => {
    const burst = `select start_rate_reserve('test:burst', '{"starts": 6, "seconds": 60, "burst": 3}', $1, false) as ms`
    for (const _ of [1, 2, 3]) assert.deepEqual(await query(burst, [0]), [{ ms: 0 }])
    const [refused] = await query(burst, [0])
    assertWaits(refused!.ms as number, -GAP_MS)
  })

  test('puts callers that come back into a line, behind which no other start waits', async () => {
    const rate = createRate()
    await reserve(rate, 0)
    for (const n of [1, 2, 3]) assertWaits(await reserve(rate, 0, true), -n * GAP_MS)
    assertWaits(await reserve(rate, 60_000), GAP_MS)
    // The start of the first one is taken, so it goes to the end of the line.
    await age(rate, 10)
    assertWaits(await reserve(rate, 0, true), -3 * GAP_MS)
  })

  test('ends the line once starts remain unused', async () => {
    const rate = createRate()
    await reserve(rate, 0)
    for (const n of [1, 2, 3, 4, 5, 6, 7, 8]) assertWaits(await reserve(rate, 0, true), -n * GAP_MS)
    await age(rate, 50)
    assert.equal(await reserve(rate, 0, true), 0)
    assertWaits(await reserve(rate, 0, true), -GAP_MS)
  })

  test('lets callers beyond an hour return within it', async () => {
    const rate = createRate()
    await reserve(rate, 0)
    await query(`update start_rate set line_at = now() + interval '1 hour' where name = $1`, [rate.name])
    const wait = await reserve(rate, 0, true)
    assert.ok(wait <= -1_800_000 && wait >= -3_600_000, `${wait} ms`)
  })

  test('follows a change of the rate', async () => {
    const rate = createRate()
    await reserve(rate, 0)
    const faster = { ...rate, starts: 60 }
    assertWaits(await reserve(faster, 60_000), 1000)
    assertWaits(await reserve(faster, 60_000), 2000)
  })

  test('reserves each start once for concurrent connections', async () => {
    const rate = createRate()
    const waits = await Promise.all(Array.from({ length: 20 }, () => reserve(rate, 3_600_000)))
    for (const [n, wait] of waits.sort((a, b) => a - b).entries())
      if (n === 0) assert.equal(wait, 0)
      else assertWaits(wait, n * GAP_MS)
  })
})
