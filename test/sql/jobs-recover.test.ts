import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { cancelJobs, type Rescuer, rescueRunningJobs, SUSPECT_FROM_DEATHS } from '../../sql/jobs/jobs.ts'
import { listRunningJobs, renewLease, unlockPools } from '../../sql/jobs/leases.ts'
import { listLostAttempts } from '../../sql/jobs/lost.ts'
import { createTestDatabase, waitForLock } from '../database.ts'
import { countRounds } from '../runs.ts'
import { buildJobSpec, createLedgerHelp, IDLE_LOAD, type JobFields, withClient } from './ledger-help.ts'

const database = await createTestDatabase()
const { db, url, query } = database
const ledger = createLedgerHelp(database)
const liveLease = await ledger.lease()

const rescueRunning = async (judge: Rescuer | null = null): Promise<string[]> =>
  (await db.any(rescueRunningJobs(judge))).map((row) => row.id)
const readLeases = async (): Promise<unknown[]> =>
  (await query('select id from worker_lease')).map((row) => row.id)
const expireLease = (lease: string) =>
  query(`update worker_lease set expires_at = now() - interval '1 ms' where id = $1`, [lease])

/** Marks the deliveries of some jobs as locked by a pool of graphile-worker. */
const lockDeliveries = (pool: string, ids: readonly string[]) =>
  query(
    `update graphile_worker._private_jobs set locked_by = $1, locked_at = now() - interval '2 minutes'
     where payload ->> 'mailbox' in (select mailbox from job where id = any($2::uuid[]))`,
    [pool, ids],
  )

/** Adds a running job whose lease is gone. */
async function addOrphan(fields: JobFields = {}) {
  const lease = await ledger.lease()
  const job = await ledger.running(fields, lease)
  await query('delete from worker_lease where id = $1', [lease])
  return job
}

describe('job_rescue_running', () => {
  test('changes nothing if all leases are live', async () => {
    await ledger.running({}, liveLease)
    assert.deepEqual(await rescueRunning(), [])
  })

  test('redelivers jobs of an expired lease immediately, and leaves those of live leases', async () => {
    const dead = await ledger.lease()
    const [one, two, kept] = [
      await ledger.running({}, dead),
      await ledger.running({ actor: 'a1' }, dead),
      await ledger.running({}, liveLease),
    ]
    const waiting = buildJobSpec({ actor: 'a1' })
    await ledger.enqueue(waiting)
    await expireLease(dead)
    assert.deepEqual((await rescueRunning()).sort(), [one.id, two.id].sort())
    for (const { id } of [one, two]) {
      const row = await ledger.row(id)
      assert.deepEqual([row.status, row.interruptions, row.tries, row.lease_id], ['available', 1, 0, null])
      assert.equal((await ledger.deliveries(id)).length, 2)
      await ledger.assertSound(id)
    }
    assert.deepEqual(
      [await ledger.status(kept.id), await ledger.status(waiting.id)],
      ['running', 'available'],
    )
    assert.equal((await readLeases()).includes(dead), false)
    assert.equal((await readLeases()).includes(liveLease), true)
    assert.deepEqual(await rescueRunning(), [])
  })

  test('rescues a running job whose lease row is missing', async () => {
    const job = await addOrphan()
    assert.deepEqual(await rescueRunning(), [job.id])
    assert.equal(await ledger.state(job.id), 'delivered')
  })

  test('are announced: by a renewal after a lease has expired, by a check if the lease is already deleted', async () => {
    const lease = await ledger.lease(60_000)
    const readAnnounced = async () => [
      (await db.one(renewLease(lease, IDLE_LOAD, 60_000))).must_rescue,
      (await db.one(listRunningJobs(lease))).must_rescue,
    ]
    assert.deepEqual(await readAnnounced(), [false, false])
    await addOrphan()
    assert.deepEqual(await readAnnounced(), [false, true])
    await rescueRunning()
    await expireLease(await ledger.lease())
    assert.deepEqual(await readAnnounced(), [true, false])
    await rescueRunning()
  })

  test('rescues many jobs in batches, which continue after the expired lease is deleted', async () => {
    const dead = await ledger.lease()
    const jobs = await Promise.all(
      Array.from({ length: 5 }, (_, i) => ledger.running({ actor: `m${i}` }, dead)),
    )
    await expireLease(dead)
    const rescueSome = async () => (await db.any(rescueRunningJobs(null, 2))).map((row) => row.id)
    const found = [await rescueSome(), await rescueSome(), await rescueSome(), await rescueSome()]
    assert.deepEqual(
      found.map((ids) => ids.length),
      [2, 2, 1, 0],
    )
    assert.deepEqual(found.flat().sort(), jobs.map((job) => job.id).sort())
    for (const { id } of jobs) assert.equal(await ledger.state(id), 'delivered')
  })

  test('lets a worker declare others dead only after timely renewals of its own', async () => {
    const lease = await ledger.lease(60_000)
    const use = { poolIds: [], threads: 0, busy: 0, memoryBytes: 0 }
    const job = await addOrphan()
    const judge = (steadyMs: number): Promise<string[]> => rescueRunning({ lease, steadyMs })
    assert.deepEqual(await judge(60_000), [], 'the lease is new')
    await query(`update worker_lease set steady_since = now() - interval '2 minutes' where id = $1`, [lease])
    await db.one(renewLease(lease, use, 3_600_000))
    // The last renewal came with less than a quarter of the lease left, so the database or the worker may have been
    // unreachable.
    assert.deepEqual(await judge(60_000), [], 'the renewal was late')
    await query(`update worker_lease set steady_since = now() - interval '2 minutes' where id = $1`, [lease])
    await db.one(renewLease(lease, use, 60_000))
    await query(`update worker_lease set expires_at = now() - interval '1 ms' where id = $1`, [lease])
    assert.deepEqual(await judge(60_000), [], 'its own lease has expired')
    await db.one(renewLease(lease, use, 60_000))
    assert.deepEqual(await judge(60_000), [], 'the period starts again')
    assert.deepEqual(await judge(0), [job.id])
    await query('delete from worker_lease where id = $1', [lease])
  })

  test('leaves the jobs of a worker that renewed in time, even after its lease had expired', async () => {
    const lease = await ledger.lease()
    const job = await ledger.running({}, lease)
    await expireLease(lease)
    assert.notEqual(await db.maybeOne(renewLease(lease, IDLE_LOAD, 60_000)), null)
    assert.deepEqual(await rescueRunning(), [])
    assert.equal(await ledger.status(job.id), 'running')
  })

  test('respects a renewal that commits while the rescue waits for the lease', async () => {
    const lease = await ledger.lease()
    const job = await ledger.running({}, lease)
    await expireLease(lease)
    const recovering = await withClient(url, async (client) => {
      await client.query('begin')
      await client.query(`update worker_lease set expires_at = now() + interval '1 minute' where id = $1`, [
        lease,
      ])
      const recovering = rescueRunning()
      await waitForLock(query)
      await client.query('commit')
      return { recovering }
    })
    assert.deepEqual(await recovering.recovering, [])
    assert.deepEqual([await ledger.status(job.id), (await readLeases()).includes(lease)], ['running', true])
  })

  test('a lost lease cannot be renewed', async () => {
    const lease = await ledger.lease(-1)
    await rescueRunning()
    assert.equal(await db.maybeOne(renewLease(lease, IDLE_LOAD, 60_000)), null)
  })

  test('rescues each job once in concurrent calls', async () => {
    const dead = await ledger.lease()
    const jobs = await Promise.all(
      Array.from({ length: 20 }, (_, i) => ledger.running({ actor: i % 2 ? `r${i}` : null }, dead)),
    )
    await expireLease(dead)
    const recovered = (await Promise.all(Array.from({ length: 6 }, () => rescueRunning()))).flat()
    assert.deepEqual(recovered.sort(), jobs.map((job) => job.id).sort())
    for (const { id } of jobs) {
      assert.equal((await ledger.row(id)).interruptions, 1)
      assert.equal((await ledger.deliveries(id)).length, 2)
    }
  })

  test('marks a job as suspect if its workers keep dying, and does not give it up', async () => {
    const { id } = await addOrphan()
    for (let i = 0; i < 7; i++) {
      await rescueRunning()
      const lease = await ledger.lease()
      await ledger.claim(id, lease)
      await query('delete from worker_lease where id = $1', [lease])
    }
    await rescueRunning()
    assert.deepEqual(
      [await ledger.state(id), (await ledger.row(id)).interruptions],
      ['delivered', SUSPECT_FROM_DEATHS],
    )
    await ledger.assertSound(id)
  })

  test('cancels jobs with a cancel request, and continues their mailbox', async () => {
    const job = await addOrphan({ actor: 'c1' })
    const next = buildJobSpec({ actor: 'c1' })
    await ledger.enqueue(next)
    await db.any(cancelJobs([job.id]))
    await rescueRunning()
    assert.deepEqual([await ledger.state(job.id), await ledger.state(next.id)], ['cancelled', 'delivered'])
  })

  test('records number, worker and times of a lost attempt, also when the job ended with it', async () => {
    const dead = await ledger.lease(60_000, [], 'host/dead')
    const fields = { request_id: 'r-1', trace_parent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` }
    const [first, again, cancelled] = [
      await ledger.running(fields, dead),
      await ledger.running({}, liveLease),
      await ledger.running({}, dead),
    ]
    await ledger.finish({ ...again, outcome: 'interrupted' })
    await query(
      `update job set created_at = now() - interval '1 hour', run_at = now() - interval '5 s' where id = $1`,
      [again.id],
    )
    await ledger.claim(again.id, dead)
    await db.any(cancelJobs([cancelled.id]))
    await expireLease(dead)
    const ids = await rescueRunning()
    assert.equal(ids.length, 3)
    await ledger.claim(first.id, liveLease)
    const readAttempts = async (id: string) => (await ledger.details(id)).attempts
    const seen = await db.any(listLostAttempts(ids))
    for (const [{ id }, attempt, about] of [
      [first, 1, fields],
      [again, 2, { request_id: null, trace_parent: null }],
      [cancelled, 1, { request_id: null, trace_parent: null }],
    ] as const) {
      const { claimed_ms, ended_ms, waited, ...lost } = seen.find((one) => one.id === id)!
      assert.deepEqual(lost, {
        id,
        name: 'test.task',
        queue: 'test',
        ...about,
        attempt,
        worker: 'host/dead',
      })
      const shown = (await readAttempts(id))[attempt - 1]!
      assert.deepEqual(
        [claimed_ms, ended_ms].map(Math.floor),
        [shown.claimed_at, shown.ended_at!].map(Date.parse),
      )
      const difference = waited === null ? null : Math.abs(waited - shown.waited_seconds)
      assert.ok(id === cancelled.id ? difference === null : difference! < 0.001, `${attempt}: ${waited}`)
    }
    assert.equal((await readAttempts(first.id)).length, 2)
    await ledger.finish({ id: first.id, attempt: 2, outcome: 'done' })
  })

  test('unlocks the queue pools of a dead worker only', async () => {
    const dead = await ledger.lease(60_000, ['pool-dead-1', 'pool-dead-2'])
    const mine = await ledger.lease(3_600_000, ['pool-alive'])
    const jobs = Array.from({ length: 3 }, () => buildJobSpec())
    await ledger.enqueue(...jobs)
    const [a, b, c] = jobs.map((job) => job.id)
    await lockDeliveries('pool-dead-1', [a!])
    await lockDeliveries('pool-dead-2', [b!])
    await lockDeliveries('pool-alive', [c!])
    await expireLease(dead)
    assert.deepEqual(await rescueRunning(), [])
    const readLocks = async () => (await ledger.deliveries(a!, b!, c!)).map((d) => d.locked_by)
    assert.deepEqual(await readLocks(), [null, null, 'pool-alive'])
    await db.run(unlockPools(['pool-alive']))
    assert.deepEqual(await readLocks(), [null, null, null])
    await query('delete from worker_lease where id = $1', [mine])
  })
})

describe('job_cancel', () => {
  const cancel = async (id: string): Promise<boolean> => (await db.any(cancelJobs([id]))).length > 0

  test('returns nothing for a missing job', async () => assert.equal(await cancel(randomUUID()), false))

  test('ends a waiting job immediately, and keeps the order of the others', async () => {
    const jobs = [1, 2, 3].map(() => buildJobSpec({ actor: 'd1' }))
    await ledger.enqueue(...jobs)
    const [first, second, third] = jobs.map((job) => job.id)
    assert.equal(await cancel(second!), true)
    assert.deepEqual(await Promise.all([first!, second!, third!].map(ledger.state)), [
      'delivered',
      'cancelled',
      'available',
    ])
    assert.deepEqual(await ledger.deliveries(second!, third!), [])
    await ledger.assertSound(second!)
    const claimed = (await ledger.claim(first!, liveLease))!
    await ledger.finish({ id: first!, attempt: claimed.attempt, outcome: 'done' })
    assert.equal(await ledger.state(third!), 'delivered')
  })

  test('ends a delivered job immediately, and delivers the next message', async () => {
    const jobs = [1, 2, 3].map(() => buildJobSpec({ actor: 'd2' }))
    await ledger.enqueue(...jobs)
    const [first, second, third] = jobs.map((job) => job.id)
    assert.equal(await cancel(first!), true)
    assert.deepEqual(await Promise.all([first!, second!, third!].map(ledger.state)), [
      'cancelled',
      'delivered',
      'available',
    ])
    assert.notEqual(await ledger.claim(second!, liveLease), null)
    await ledger.assertSound(first!)
  })

  test('marks a running job, whose worker learns of it with the next heartbeat', async () => {
    const lease = await ledger.lease()
    const job = await ledger.running({ actor: 'd3' }, lease)
    assert.equal(await cancel(job.id), true)
    const row = await ledger.row(job.id)
    assert.deepEqual([row.status, row.seq], ['running', 1])
    assert.ok(row.cancel_requested_at !== null)
    const renew = async (ids: string[]) => (await db.one(renewLease(lease, IDLE_LOAD, 60_000, ids))).running
    assert.deepEqual((await db.one(listRunningJobs(lease))).running, [
      { id: job.id, attempt: 1, cancel: true },
    ])
    // A renewal that lists the worker's known jobs gets the same answer.
    assert.deepEqual(await renew([randomUUID(), job.id]), [{ id: job.id, attempt: 1, cancel: true }])
    assert.deepEqual(await renew([]), [])
    assert.equal(await cancel(job.id), true)
    assert.deepEqual((await ledger.row(job.id)).cancel_requested_at, row.cancel_requested_at)
  })

  test('leaves an ended job unchanged', async () => {
    for (const outcome of ['done', 'failed', 'cancelled'] as const) {
      const job = await ledger.running({}, liveLease)
      await ledger.finish({ ...job, outcome, code: 'internal' })
      const before = await ledger.row(job.id)
      assert.equal(await cancel(job.id), true)
      assert.deepEqual(await ledger.row(job.id), before)
      await ledger.assertSound(job.id)
    }
  })

  test('either ends the job or notifies its worker when a claim runs concurrently', async () => {
    const ended = new Set<string>()
    for (let round = 0; round < countRounds(30); round++) {
      const job = buildJobSpec({ actor: round % 2 ? `race-${round}` : null })
      await ledger.enqueue(job)
      const [claimed] = await Promise.all([ledger.claim(job.id, liveLease), cancel(job.id)])
      const row = await ledger.row(job.id)
      assert.equal(row.status, claimed === null ? 'cancelled' : 'running')
      assert.ok(row.cancel_requested_at !== null)
      await ledger.assertSound(job.id)
      ended.add(row.status)
    }
  })
})
