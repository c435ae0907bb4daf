import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Claim,
  claimKey,
  deleteExpiredIdempotencyKeys,
  releaseKey,
  storeAnswer,
  tieKeyToJob,
} from '../../sql/idempotency.ts'
import { testDatabase } from '../database.ts'
import { withClient } from './ledger-help.ts'

const { db, query, url } = await testDatabase()

const print = (text: string): Buffer => Buffer.from(text)
const claim = (key: string, fingerprint = 'same', seconds = 60, scope = 'scope'): Promise<Claim> =>
  db.one(claimKey(scope, key, print(fingerprint), seconds))
const nothing = { status: null, headers: null, body: null, job_id: null }
const answer = { status: 201, headers: [['content-type', 'application/json']] as const, body: '{"a": 1}' }
const age = (key: string, column: string, interval: string) =>
  query(`update idempotency_key set ${column} = now() - $2::interval where key = $1`, [key, interval])

describe('idempotency keys', () => {
  test('the first request takes the key, a second one finds it running', async () => {
    assert.deepEqual(await claim('k1'), { fresh: true, same: true, ...nothing })
    assert.deepEqual(await claim('k1'), { fresh: false, same: true, ...nothing })
  })

  test('another request under the same key is found out; under another scope it is another key', async () => {
    await claim('k2')
    assert.deepEqual([(await claim('k2', 'other')).fresh, (await claim('k2', 'other')).same], [false, false])
    assert.equal((await claim('k2', 'other', 60, 'elsewhere')).fresh, true)
  })

  test('the kept answer is given as it was', async () => {
    await claim('k3')
    await db.run(storeAnswer('scope', 'k3', answer))
    assert.deepEqual(await claim('k3'), { fresh: false, same: true, job_id: null, ...answer })
    assert.equal((await claim('k3', 'other')).same, false)
  })

  test('a key that is tied to a job leads to the job', async () => {
    await claim('k4', 'same', 0)
    const job = randomUUID()
    await db.run(tieKeyToJob('scope', 'k4', job))
    assert.deepEqual(await claim('k4'), { fresh: false, same: true, ...nothing, job_id: job })
  })

  test('a request that died without an answer holds its key for so long; what was answered or has a job is held on', async () => {
    await claim('k5', 'same', 0.05)
    assert.equal((await claim('k5')).fresh, false)
    await delay(100)
    assert.deepEqual(await claim('k5', 'whatever'), { fresh: true, same: true, ...nothing })
    for (const key of ['k6', 'k7']) await claim(key, 'same', 0)
    await db.run(storeAnswer('scope', 'k6', answer))
    await db.run(tieKeyToJob('scope', 'k7', randomUUID()))
    await delay(20)
    assert.deepEqual([(await claim('k6')).fresh, (await claim('k7')).fresh], [false, false])
  })

  test('a key is given back after a failure that may pass, but not one that is answered', async () => {
    await claim('k8')
    await db.run(releaseKey('scope', 'k8'))
    assert.equal((await claim('k8')).fresh, true)
    await db.run(storeAnswer('scope', 'k8', answer))
    await db.run(releaseKey('scope', 'k8'))
    assert.equal((await claim('k8')).status, 201)
  })

  test('after a day a key is free, and what it held forgotten', async () => {
    await claim('k9')
    await db.run(storeAnswer('scope', 'k9', answer))
    await age('k9', 'created_at', '25 hours')
    assert.deepEqual(await claim('k9', 'new'), { fresh: true, same: true, ...nothing })
    assert.deepEqual(await claim('k9', 'new'), { fresh: false, same: true, ...nothing })
  })

  test('of many at once one is fresh', async () => {
    for (let round = 0; round < 10; round++) {
      const claims = await Promise.all(Array.from({ length: 8 }, () => claim(`race-${round}`)))
      assert.equal(claims.filter(({ fresh }) => fresh).length, 1)
    }
  })

  test('of many at once that want a key whose lock has run out one is fresh', async () => {
    for (let round = 0; round < 10; round++) {
      await claim(`late-${round}`, 'same', -1)
      const claims = await Promise.all(Array.from({ length: 8 }, () => claim(`late-${round}`)))
      assert.equal(claims.filter(({ fresh }) => fresh).length, 1)
    }
  })

  /** Claims while the first request's transaction is open, and once more after it. */
  async function claimDuring(
    key: string,
    end: 'commit' | 'rollback',
    job: string,
    fingerprint: string,
  ): Promise<Claim> {
    const waiting = await withClient(url, async (client) => {
      const first = claimKey('scope', key, print('same'), 60)
      await client.query('begin')
      await client.query(first.sql.replaceAll('$slonik_', '$'), first.values as unknown[])
      await client.query('update idempotency_key set job_id = $1 where key = $2', [job, key])
      const second = claim(key, fingerprint)
      await delay(150)
      await client.query(end)
      return { second }
    })
    return waiting.second
  }

  test('who waited for the transaction of the first request sees what it left', async () => {
    const job = randomUUID()
    assert.deepEqual(await claimDuring('w1', 'commit', job, 'same'), {
      fresh: false,
      same: true,
      ...nothing,
      job_id: job,
    })
    assert.equal((await claimDuring('w2', 'commit', job, 'other')).same, false)
    assert.deepEqual(await claimDuring('w3', 'rollback', job, 'same'), {
      fresh: true,
      same: true,
      ...nothing,
    })
  })

  test('old keys are removed in batches', async () => {
    await query('delete from idempotency_key')
    await query(`insert into idempotency_key (scope, key, fingerprint, locked_until, created_at)
      select 's', n::text, '', now(), now() - case when n <= 25 then interval '25 h' else interval '23 h' end from generate_series(1, 30) n`)
    const counts: number[] = []
    for (let i = 0; i < 4; i++) counts.push((await db.one(deleteExpiredIdempotencyKeys(10))).count)
    assert.deepEqual(counts, [10, 10, 5, 0])
    assert.deepEqual(await query('select count(*)::int as n from idempotency_key'), [{ n: 5 }])
  })
})
