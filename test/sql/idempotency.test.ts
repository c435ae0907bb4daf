import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Queries } from '../../sql/db.ts'
import {
  type Claim,
  claimKey,
  deleteExpiredIdempotencyKeys,
  storeKey,
  storeResponse,
} from '../../sql/idempotency/idempotency.ts'
import { createTestDatabase } from '../database.ts'
import { createLedgerHelp } from './ledger-help.ts'

const database = await createTestDatabase()
const { db, query } = database
const ledger = createLedgerHelp(database)

const toFingerprint = (text: string): Buffer => Buffer.from(text)
const claimIdempotencyKey = (
  key: string,
  fingerprint = 'same',
  scope = 'scope',
  on: Queries = db,
): Promise<Claim> => on.one(claimKey(scope, key, toFingerprint(fingerprint)))
const storeAnswer = (
  key: string,
  what: Parameters<typeof storeKey>[1],
  fingerprint = 'same',
  on: Queries = db,
): Promise<number> => on.run(storeKey({ scope: 'scope', key, fingerprint: toFingerprint(fingerprint) }, what))
const nothing = { status: null, headers: null, body: null, job_id: null }
const answer = { status: 201, headers: [['content-type', 'application/json']] as const, body: '{"a": 1}' }
const ageKey = (key: string, interval: string) =>
  query('update idempotency_key set created_at = now() - $2::interval where key = $1', [key, interval])

/** Claims a key over another connection, so that it works while a transaction is open here. */
const claimElsewhere = async (key: string, fingerprint: string, scope: string): Promise<Claim> => {
  const [row] = await query('select * from idempotency_claim($1, $2, $3)', [
    scope,
    key,
    toFingerprint(fingerprint),
  ])
  return row as unknown as Claim
}

describe('idempotency keys', () => {
  test('the first claim of a key wins, and a claim alone stores nothing', async () => {
    for (let i = 0; i < 2; i++)
      assert.deepEqual(await claimIdempotencyKey('k1'), { state: 'first', ...nothing })
  })

  test('a key is taken while the first transaction is open, but only in its scope', async () => {
    await db.transaction(async (tx) => {
      await claimIdempotencyKey('k2', 'same', 'scope', tx)
      assert.deepEqual(await claimElsewhere('k2', 'same', 'scope'), { state: 'running', ...nothing })
      assert.equal((await claimElsewhere('k2', 'other', 'scope')).state, 'running')
      assert.equal((await claimElsewhere('k2', 'same', 'another')).state, 'first')
      assert.equal((await claimElsewhere('k2x', 'same', 'scope')).state, 'first')
    })
    assert.equal((await claimIdempotencyKey('k2')).state, 'first')
  })

  test('returns the stored answer unchanged, and only to the same request', async () => {
    await storeAnswer('k3', { answer })
    assert.deepEqual(await claimIdempotencyKey('k3'), { state: 'repeated', job_id: null, ...answer })
    assert.equal((await claimIdempotencyKey('k3', 'other')).state, 'other')
    assert.equal((await claimIdempotencyKey('k3', 'same', 'elsewhere')).state, 'first')
  })

  test('a key stored with a job leads to the job, and later to its answer', async () => {
    const { id: jobId } = await ledger.running()
    await storeAnswer('k4', { jobId })
    assert.deepEqual(await claimIdempotencyKey('k4'), { state: 'repeated', ...nothing, job_id: jobId })
    await db.run(storeResponse('scope', 'k4', answer))
    assert.deepEqual(await claimIdempotencyKey('k4'), { state: 'repeated', job_id: jobId, ...answer })
    await storeAnswer('k5', { jobId, answer })
    assert.deepEqual(await claimIdempotencyKey('k5'), { state: 'repeated', job_id: jobId, ...answer })
    await storeAnswer('k5a', { jobId })
    await query('delete from job where id = $1', [jobId])
    assert.deepEqual(await claimIdempotencyKey('k5a'), { state: 'gone', ...nothing, job_id: jobId })
    assert.equal((await claimIdempotencyKey('k5')).state, 'repeated', 'its answer is known')
  })

  test('a key is released when its transaction rolls back', async () => {
    const failing = db.transaction(async (tx) => {
      await claimIdempotencyKey('k6', 'same', 'scope', tx)
      await storeAnswer('k6', { answer }, 'same', tx)
      throw new Error('undone')
    })
    await assert.rejects(failing, /undone/)
    assert.equal((await claimIdempotencyKey('k6')).state, 'first')
  })

  test('a key expires after a day, with its answer', async () => {
    await storeAnswer('k7', { answer })
    await ageKey('k7', '23 hours 59 minutes')
    assert.equal((await claimIdempotencyKey('k7')).state, 'repeated')
    await ageKey('k7', '24 hours 1 second')
    assert.deepEqual(await claimIdempotencyKey('k7', 'new'), { state: 'first', ...nothing })
    const { id: jobId } = await ledger.running()
    await storeAnswer('k7', { jobId }, 'new')
    assert.deepEqual(await claimIdempotencyKey('k7', 'new'), { state: 'repeated', ...nothing, job_id: jobId })
  })

  test('one of many concurrent claims wins', async () => {
    for (let round = 0; round < 10; round++) {
      const key = `race-${round}`
      const states = await Promise.all(
        Array.from({ length: 8 }, () =>
          db.transaction(async (tx) => {
            const { state } = await claimIdempotencyKey(key, 'same', 'scope', tx)
            if (state === 'first') await storeAnswer(key, { answer }, 'same', tx)
            return state
          }),
        ),
      )
      assert.equal(states.filter((state) => state === 'first').length, 1, states.join())
      assert.ok(!states.includes('other'))
    }
  })

  test('prunes old keys in batches', async () => {
    await query('delete from idempotency_key')
    await query(`insert into idempotency_key (scope, key, fingerprint, status, body, created_at)
      select 's', n::text, '', 204, '', now() - case when n <= 25 then interval '25 h' else interval '23 h' end from generate_series(1, 30) n`)
    const counts: number[] = []
    for (let i = 0; i < 4; i++) counts.push((await db.one(deleteExpiredIdempotencyKeys(10))).count)
    assert.deepEqual(counts, [10, 10, 5, 0])
    assert.deepEqual(await query('select count(*)::int as n from idempotency_key'), [{ n: 5 }])
  })

  test('does not wait for or prune an old key that is being stored again', async () => {
    await query('delete from idempotency_key')
    await storeAnswer('k8', { answer })
    await ageKey('k8', '25 hours')
    const kept = Promise.withResolvers<void>()
    const removed = Promise.withResolvers<void>()
    const keeping = db.transaction(async (tx) => {
      await storeAnswer('k8', { answer }, 'new', tx)
      kept.resolve()
      await removed.promise
    })
    await kept.promise
    const { count } = await db.one(deleteExpiredIdempotencyKeys(10)).finally(() => removed.resolve())
    assert.equal(count, 0)
    await keeping
    assert.equal((await claimIdempotencyKey('k8', 'new')).state, 'repeated')
  })
})
