import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { z } from 'zod'
import { connect } from '../../sql/connections/driver.ts'
import { createDatabase, type Query, sql } from '../../sql/db.ts'
import { countRequest, deleteExpiredRequestCounts } from '../../sql/limits/limits.ts'
import { waitForLock } from '../database.ts'
import { countRounds } from '../runs.ts'
import { sharedDatabase } from './shared-database.ts'

const { db, query, url } = await sharedDatabase()
// Connections of other edge processes.
const others = [1, 2].map((n) =>
  createDatabase({ url, applicationName: `other-${n}`, size: 8, validateRows: true }),
)
after(() => Promise.all(others.map((other) => other.close())))
const MAX_REQUESTS = 5
const WINDOW_SECONDS = 600

/** Returns functions that use the limit `name` as one client. */
function createClient(name = 'login') {
  const subject = randomUUID()
  return {
    subject,
    take: async (on = db, max = MAX_REQUESTS, span = WINDOW_SECONDS): Promise<number> =>
      (await on.one(countRequest(name, subject, max, span))).wait_ms,
    hits: async (): Promise<number> =>
      ((await query('select cardinality(hits) as n from request_limit where subject = $1', [subject]))[0]
        ?.n as number) ?? 0,
    age: (seconds: number) =>
      query(
        `update request_limit set expires_at = expires_at - make_interval(secs => $2),
          hits = (select array_agg(hit - make_interval(secs => $2) order by hit) from unnest(hits) hit) where subject = $1`,
        [subject, seconds],
      ),
  }
}

/** Reads the time in ms of the last request that was admitted. */
const readLastHit = (subject: string): Query<{ at: number }> =>
  sql.type(z.object({ at: z.number() }))`
    select extract(epoch from hits[cardinality(hits)])::float8 * 1000 as at from request_limit where subject = ${subject}`

describe('request limits', () => {
  test('admit requests up to the limit, and then return the waiting time', async () => {
    const one = createClient()
    for (let i = 0; i < MAX_REQUESTS; i++) assert.equal(await one.take(), 0)
    const wait = await one.take()
    assert.ok(wait > (WINDOW_SECONDS - 60) * 1000 && wait <= WINDOW_SECONDS * 1000, `${wait} ms`)
    assert.equal(await one.hits(), MAX_REQUESTS, 'a refusal is not counted')
  })

  test('return an exact wait: requests fail a millisecond before its end and pass at its end', async () => {
    const one = createClient()
    for (let i = 0; i < MAX_REQUESTS; i++) await one.take()
    await one.age(WINDOW_SECONDS - 60)
    const wait = await one.take()
    assert.ok(wait > 0 && wait <= 60_000, `${wait} ms`)
    await one.age(wait / 1000)
    assert.equal(await one.take(), 0)
  })

  test('slide: each request makes room when its own time is over', async () => {
    const one = createClient()
    for (let i = 0; i < MAX_REQUESTS; i++) {
      assert.equal(await one.take(), 0)
      await one.age(100)
    }
    // Five requests count, made 100 to 500 s ago. The oldest one expires in 100 s.
    const wait = await one.take()
    assert.ok(wait > 50_000 && wait <= 100_000, `${wait} ms`)
    await one.age(100)
    assert.deepEqual([await one.take(), (await one.take()) > 0], [0, true])
    assert.equal(await one.hits(), MAX_REQUESTS, 'expired requests are forgotten')
  })

  test('count existing requests after they were lowered, and return when enough have expired', async () => {
    const one = createClient()
    for (let i = 0; i < MAX_REQUESTS; i++) {
      await one.take()
      await one.age(100)
    }
    // Five requests count, made 100 to 500 s ago. A limit of 4 admits the next one once two of them have expired, in
    // 200 s.
    const wait = await one.take(db, 4)
    assert.ok(wait > 150_000 && wait <= 200_000, `${wait} ms`)
  })

  test('count names and subjects separately', async () => {
    const [one, other] = [createClient(), createClient()]
    for (let i = 0; i <= MAX_REQUESTS; i++) await one.take()
    assert.equal(await other.take(), 0)
    const { wait_ms } = await db.one(countRequest('register', one.subject, MAX_REQUESTS, WINDOW_SECONDS))
    assert.equal(wait_ms, 0)
  })

  test('admit exactly the limit among 50 concurrent requests of several processes', async () => {
    for (let round = 0; round < countRounds(10); round++) {
      const one = createClient()
      const pools = [db, ...others]
      const waits = await Promise.all(Array.from({ length: 50 }, (_, i) => one.take(pools[i % pools.length])))
      assert.equal(waits.filter((wait) => wait === 0).length, MAX_REQUESTS)
      assert.equal(await one.hits(), MAX_REQUESTS)
    }
  })

  test('never admit more requests in any window than allowed', async () => {
    const one = createClient()
    const admitted: number[] = []
    const spanMs = 40
    await Promise.all(
      Array.from({ length: 6 }, async (_, i) => {
        const on = [db, ...others][i % 3]!
        for (let n = 0; n < 60; n++) {
          await on.transaction(async (tx) => {
            const { wait_ms } = await tx.one(countRequest('span', one.subject, MAX_REQUESTS, spanMs / 1000))
            if (wait_ms > 0) return
            admitted.push((await tx.one(readLastHit(one.subject))).at)
          })
        }
      }),
    )
    admitted.sort((a, b) => a - b)
    assert.ok(admitted.length > MAX_REQUESTS)
    // A double holds the milliseconds since 1970 to a quarter of a microsecond.
    const rounding = 0.001
    for (let i = MAX_REQUESTS; i < admitted.length; i++) {
      const span = admitted[i]! - admitted[i - MAX_REQUESTS]!
      assert.ok(span >= spanMs - rounding, `${MAX_REQUESTS + 1} within ${span} ms`)
    }
  })

  test('are pruned only after they limit nothing any more', async () => {
    await query('truncate request_limit')
    const [over, live] = [createClient(), createClient()]
    await over.take()
    await live.take()
    await over.age(WINDOW_SECONDS + 1)
    assert.equal((await db.one(deleteExpiredRequestCounts(10))).count, 1)
    assert.deepEqual([await over.hits(), await live.hits()], [0, 1])
  })

  test('lose no count when pruned during requests', async () => {
    for (let round = 0; round < countRounds(15); round++) {
      const one = createClient()
      await one.take()
      await one.age(WINDOW_SECONDS + 1)
      const [waits] = await Promise.all([
        Promise.all(Array.from({ length: 30 }, (_, i) => one.take([db, ...others][i % 3]))),
        ...Array.from({ length: 4 }, () => query('delete from request_limit where expires_at < now()')),
      ])
      assert.equal(waits.filter((wait) => wait === 0).length, MAX_REQUESTS)
      assert.equal(await one.hits(), MAX_REQUESTS)
    }
  })

  test('recreate a row that vanishes between the read and the lock', async () => {
    const one = createClient()
    await one.take()
    await one.age(WINDOW_SECONDS + 1)
    const pruner = await connect({ url, applicationName: 'pruner' })
    await pruner.query('begin')
    await pruner.query('delete from request_limit where subject = $1', [one.subject])
    const waiting = one.take()
    await waitForLock(query)
    await pruner.query('commit')
    await pruner.end()
    assert.equal(await waiting, 0)
    assert.equal(await one.hits(), 1, 'and the request is counted')
  })
})
