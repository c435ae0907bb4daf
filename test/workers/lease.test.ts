import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import type { Database, Query } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import { cancelJobs } from '../../sql/jobs/jobs.ts'
import type { RunningJobs } from '../../sql/jobs/leases.ts'
import { holdLease, type Lease } from '../../workers/attempts/lease.ts'
import { createTestDatabase } from '../database.ts'
import { createLedgerHelp } from '../sql/ledger-help.ts'
import { until } from '../until.ts'
import { createFaultyDatabase, log } from './parts.ts'

const database = await createTestDatabase()
const { query } = database
const help = createLedgerHelp(database)
const openLeases = new Set<Lease>()
// Tests of expiry use a quarter of production's lease time. The others use a time after which nothing expires.
const [SHORT_LEASE_MS, LONG_LEASE_MS] = [500, 60_000]

async function holdTestLease(ttlMs = SHORT_LEASE_MS, onRecovered = () => {}) {
  const db = createFaultyDatabase(database.db, () => fail('database.down'))
  const heartbeats: { jobs: RunningJobs['running']; isFull: boolean }[] = []
  const recovered: string[] = []
  const running: string[] = []
  const pools = ['pool-1']
  let lost = 0
  const lease = await holdLease({
    db,
    log,
    queues: ['a', 'b'],
    poolIds: () => pools,
    threads: () => 3,
    busy: () => 0,
    memoryBytes: () => 2 ** 20,
    running: () => running,
    onHeartbeat: ({ running: jobs }, isFull) => void heartbeats.push({ jobs, isFull }),
    onLost: () => void lost++,
    onRescued: (ids) => {
      recovered.push(...ids)
      onRecovered()
    },
    ttlMs,
  })
  openLeases.add(lease)
  const countCalls = (name: string): number => db.calls.filter((call) => call.name === name).length
  return { lease, db, calls: countCalls, heartbeats, recovered, running, pools, lost: () => lost }
}

const readRow = async (id: string) =>
  (await query('select *, expires_at > now() as live from worker_lease where id = $1', [id]))[0]

const readExpiry = async (id: string) => ((await readRow(id))?.expires_at as Date | undefined)?.getTime() ?? 0

const findOwnLeases = () => query(`select id from worker_lease where name like '%/' || $1`, [process.pid])

/** Routes every call of `method` through `run`. */
function intercept(
  db: Database,
  method: 'any' | 'maybeOne',
  run: (call: () => Promise<unknown>) => Promise<unknown>,
): void {
  const original = db[method].bind(db) as (statement: Query<unknown>) => Promise<unknown>
  Object.assign(db, { [method]: (statement: Query<unknown>) => run(() => original(statement)) })
}

describe('a lease', { concurrency: false }, () => {
  afterEach(async () => {
    for (const lease of openLeases) await lease.close()
    openLeases.clear()
  })

  test("exists from the worker's start to its stop", async () => {
    const { lease } = await holdTestLease(LONG_LEASE_MS)
    const found = (await readRow(lease.id))!
    assert.deepEqual(
      [found.queues, found.pool_ids, found.threads, found.live],
      [['a', 'b'], ['pool-1'], 3, true],
    )
    assert.match(String(found.name), new RegExp(`/${process.pid}$`))
    await lease.close()
    assert.equal(await readRow(lease.id), undefined)
  })

  test('is renewed long before it expires, with the current queue pools', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { lease, pools, calls } = await holdTestLease(LONG_LEASE_MS)
    pools.push('pool-2')
    for (let n = 1; n <= 3; n++) {
      const before = await readExpiry(lease.id)
      t.mock.timers.tick(LONG_LEASE_MS / 4)
      assert.equal(calls('lease_renew'), n)
      await until('the lease is renewed', async () => (await readExpiry(lease.id)) > before)
    }
    assert.deepEqual((await readRow(lease.id))!.pool_ids, ['pool-1', 'pool-2'])
  })

  test('gets a new queue pool immediately', async () => {
    const { lease, calls, pools } = await holdTestLease(LONG_LEASE_MS)
    pools.push('pool-2')
    lease.renew()
    // Checked in the same turn, in which no timer can have renewed the lease.
    assert.equal(calls('lease_renew'), 1)
    await until(
      'the lease names the pool',
      async () => (await readRow(lease.id))!.pool_ids?.toString() === 'pool-1,pool-2',
    )
  })

  test('reports the jobs that run here by the database: known ones with each renewal, all with each check', async () => {
    const { lease, heartbeats, running } = await holdTestLease()
    const job = await help.running({}, lease.id)
    await help.running({}, await help.lease())
    const listed = { id: job.id, attempt: 1, cancel: false }
    const checked = await until('a check lists the job', () =>
      heartbeats.find(({ isFull, jobs }) => isFull && jobs.length > 0),
    )
    assert.deepEqual(checked.jobs, [listed])
    assert.ok(heartbeats.every(({ isFull, jobs }) => isFull || jobs.length === 0))
    running.push(job.id)
    await database.db.any(cancelJobs([job.id]))
    const renewed = await until('a renewal has the cancel request', () =>
      heartbeats.find(({ isFull, jobs }) => !isFull && jobs[0]?.cancel),
    )
    assert.deepEqual(renewed.jobs, [{ ...listed, cancel: true }])
    await help.finish({ ...job, outcome: 'cancelled' })
  })

  test('is lost once when it is deleted, and replaced by another', async () => {
    const { lease, lost } = await holdTestLease()
    const before = lease.id
    await query('delete from worker_lease where id = $1', [before])
    await until('the new lease exists', async () => lease.id !== before && (await readRow(lease.id)))
    assert.equal(lost(), 1)
    const expires = await readExpiry(lease.id)
    await until('the new lease is renewed', async () => (await readExpiry(lease.id)) > expires)
    assert.equal(lost(), 1)
  })

  test('is replaced by one lease if two concurrent renewals find it lost', async () => {
    const { lease, lost } = await holdTestLease()
    const before = lease.id
    await query('delete from worker_lease where id = $1', [before])
    lease.renew()
    lease.renew()
    await until('the new lease exists', async () => lease.id !== before && (await readRow(lease.id)))
    await lease.close()
    assert.equal(lost(), 1)
    assert.deepEqual(await findOwnLeases(), [])
  })

  test('leaves no row if it ends during a renewal', async () => {
    const { lease, db, lost } = await holdTestLease()
    const gate = Promise.withResolvers<void>()
    intercept(db, 'maybeOne', async (call) => {
      await gate.promise
      return call()
    })
    lease.renew()
    const closed = lease.close()
    // If the delete did not wait for the renewal, it would run during these queries.
    for (let n = 0; n < 50; n++) await query('select 1')
    gate.resolve()
    await closed
    assert.equal(lost(), 0)
    assert.deepEqual(await findOwnLeases(), [])
  })

  test('of another worker expires: its jobs are rescued soon, and reported', async () => {
    const { recovered } = await holdTestLease()
    const dead = await help.lease(60_000, ['pool-dead'])
    const job = await help.running({}, dead)
    await help.running({}, await help.lease())
    // In the first seconds of a server, no worker is declared dead.
    await until('the server has run long enough', async () => {
      const [up] = await query(
        `select now() - pg_postmaster_start_time() > $1::float * interval '1 ms' as long`,
        [2.25 * SHORT_LEASE_MS],
      )
      return up!.long
    })
    await query(`update worker_lease set expires_at = now() where id = $1`, [dead])
    await until('the job is rescued', () => recovered.length > 0)
    assert.deepEqual(recovered, [job.id])
    assert.equal(await help.status(job.id), 'available')
    assert.equal(await readRow(dead), undefined)
  })

  test('with more jobs than one transaction rescues: all are rescued without a pause', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const looks: number[] = []
    const { lease, recovered, calls } = await holdTestLease(
      LONG_LEASE_MS,
      () => void looks.push(calls('job_rescue_running')),
    )
    const dead = await help.lease()
    await query(
      `insert into job (id, name, queue, mailbox, mailbox_limit, payload, status, max_tries, lease_id, attempt, tries, started_at)
       select gen_random_uuid(), 'test.task', 'test', 'r' || n, 1, '{}', 'running', 3, $1, 1, 1, now() from generate_series(1, 2500) n`,
      [dead],
    )
    await query(`update worker_lease set expires_at = now() where id = $1`, [dead])
    // A worker may declare others dead only after renewing its own lease in time for a while.
    await query(`update worker_lease set steady_since = '-infinity' where id = $1`, [lease.id])
    t.mock.timers.tick(LONG_LEASE_MS / 4)
    await until('the last jobs are rescued', () => new Set(recovered).size === 2500)
    // One heartbeat started the search. Each further statement started when the previous one ended.
    assert.deepEqual(looks, [1, 2, 3])
  })

  test('survives an outage of the database, and is renewed afterwards', async () => {
    const { lease, db, lost } = await holdTestLease()
    const job = await help.running({}, lease.id)
    db.fault = () => 'before'
    await until('the lease has expired', async () => (await readRow(lease.id))?.live === false)
    db.fault = null
    await until('the lease is renewed', async () => (await readRow(lease.id))?.live)
    assert.equal(lost(), 0)
    assert.equal(await help.status(job.id), 'running')
    await help.finish({ ...job, outcome: 'done' })
  })

  test('does not declare others dead after an outage until it has been live for a while', async () => {
    // Makes only renewals fail.
    const cutOff = (name: string) => (name === 'lease_renew' ? 'before' : null)
    const { lease, db, calls, recovered } = await holdTestLease()
    db.fault = cutOff
    const own = await help.running({}, lease.id)
    await until('the lease has expired', async () => (await readRow(lease.id))?.live === false)
    const dead = await help.lease()
    const job = await help.running({}, dead)
    await query(`update worker_lease set expires_at = now() where id = $1`, [dead])
    const renewals = calls('lease_renew')
    await until('more renewals fail', () => calls('lease_renew') > renewals + 2)
    assert.deepEqual(recovered, [], 'no job is rescued while renewals fail')
    db.fault = null
    // Read before this worker may declare others dead. A late renewal would change the value.
    const since = await until('the lease is renewed', async () => {
      const [renewed] = await query(
        'select steady_since::text as since from worker_lease where id = $1 and expires_at > now()',
        [lease.id],
      )
      return renewed?.since
    })
    await until('the worker rescues jobs again', () => recovered.length > 0)
    const [{ steady }] = (await query(
      `select extract(epoch from created_at - $2::timestamptz) * 1000 as steady from job_event
       where job_id = $1 order by seq desc limit 1`,
      [job.id, since],
    )) as [{ steady: string }]
    assert.ok(Number(steady) >= SHORT_LEASE_MS, 'not immediately')
    assert.deepEqual(recovered, [job.id], 'nor its own jobs')
    await help.finish({ ...own, outcome: 'done' })
  })
})
