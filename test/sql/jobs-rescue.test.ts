import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { cancelJobs, rescueQueuedJobs, rescueRunningJobs } from '../../sql/jobs/jobs.ts'
import { deliverAvailableJobs } from '../../sql/server/backup/load.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp, type JobFields, withClient } from './ledger-help.ts'

/** The rescuer finds every waiting job, even if its delivery is missing or outdated. */

const database = await createTestDatabase()
const { db, query, url } = database
const ledger = createLedgerHelp(database)

beforeEach(() =>
  query('truncate job, job_count, job_event_row, worker_lease, graphile_worker._private_jobs cascade'),
)

const rescue = async (patienceMs = 0): Promise<string[]> =>
  (await db.any(rescueQueuedJobs(patienceMs))).map(({ id }) => id)
const deleteDeliveries = () => query('delete from graphile_worker._private_jobs')
const addJobs = async (...fields: readonly JobFields[]): Promise<string[]> => {
  const specs = fields.map((some) => buildJobSpec(some))
  await ledger.enqueue(...specs)
  return specs.map(({ id }) => id)
}

describe('a job that waits', () => {
  test('is redelivered if it has no delivery', async () => {
    const [id] = await addJobs({})
    await deleteDeliveries()
    assert.deepEqual(await rescue(), [id])
    assert.equal(await ledger.state(id!), 'delivered')
    assert.deepEqual(await rescue(), [], 'once')
    assert.ok(await ledger.claim(id!, await ledger.lease()))
  })

  test("is found before the range of its mailbox's delivery", async () => {
    const [first, second] = await addJobs({ mailbox: 'm' }, { mailbox: 'm' })
    await deleteDeliveries()
    await query('select job_deliver(array[$1::uuid])', [second])
    assert.deepEqual(await rescue(), [first])
    assert.deepEqual(await rescue(), [])
  })

  test('is found without a delivery next to other jobs in the queue', async () => {
    const [id] = await addJobs({})
    await deleteDeliveries()
    await query(`select graphile_worker.add_job('of-others', '{"id": 5, "mailbox": {"a": 1}}')`)
    await query(`select graphile_worker.add_job('of-others', '[]')`)
    assert.deepEqual(await rescue(), [id])
  })

  test('is left alone with a delivery, after a short wait, or before it is due', async () => {
    const [waiting] = await addJobs({ actor: 'a' })
    assert.deepEqual(await rescue(), [])
    await deleteDeliveries()
    assert.deepEqual(await rescue(60_000), [])
    assert.equal(await ledger.state(waiting!), 'available')
    await query(`update job set run_at = now() + interval '1 hour'`)
    assert.deepEqual(await rescue(), [])
    await query(`update job set run_at = now() - interval '1 s'`)
    assert.deepEqual(await rescue(), [waiting])
  })

  test('needs no delivery while it is scheduled', async () => {
    const [scheduled] = await addJobs({ actor: 'g', delay_ms: 60_000 })
    assert.deepEqual([await rescue(), await ledger.deliveries(scheduled!)], [[], []])
    await ledger.makeDue(scheduled!)
    await query('delete from graphile_worker._private_jobs')
    assert.deepEqual(await rescue(), [scheduled])
    assert.deepEqual(await rescue(), [], 'once')
  })

  test('runs if the row of the job before it is gone', async () => {
    const [first, second, third] = await addJobs({ actor: 'b' }, { actor: 'b' }, { actor: 'b' })
    await addJobs({ actor: 'c' })
    await query('delete from job where id = $1', [first])
    await query(`delete from graphile_worker._private_jobs where payload ->> 'mailbox' = 'b'`)
    assert.deepEqual(await rescue(), [second])
    assert.deepEqual([await ledger.state(second!), await ledger.state(third!)], ['delivered', 'available'])
  })

  test('waits behind a full limited mailbox, and is delivered when there is room', async () => {
    await addJobs({ actor: 'd' }, { actor: 'd' })
    await ledger.running({ actor: 'e' })
    const [behind] = await addJobs({ actor: 'e' })
    const limited = { mailbox: 'f', mailbox_limit: 2 }
    await ledger.running(limited)
    await addJobs(limited)
    await query(`delete from graphile_worker._private_jobs where payload ->> 'mailbox' in ('e', 'f')`)
    const found = await rescue()
    assert.equal(found.length, 1)
    assert.equal((await ledger.row(found[0]!)).mailbox, 'f')
    assert.equal(await ledger.state(behind!), 'available')
  })
})

test('available jobs get deliveries after a restore from a backup', async () => {
  const [first] = await addJobs({ actor: 'h' }, { actor: 'h' }, { actor: 'h', delay_ms: 60_000 })
  await deleteDeliveries()
  await withClient(url, deliverAvailableJobs)
  assert.deepEqual(
    (await ledger.deliveries()).map(({ id }) => id),
    [first],
  )
})

describe('a running job', () => {
  test('is rescued without a lease, or ends if it was to be cancelled', async () => {
    const [one, two] = [await ledger.running(), await ledger.running()]
    await db.any(cancelJobs([two.id]))
    await query('delete from worker_lease')
    const recovered = (await db.any(rescueRunningJobs(null))).map(({ id }) => id)
    assert.deepEqual(recovered.sort(), [one.id, two.id].sort())
    assert.deepEqual([await ledger.state(one.id), await ledger.state(two.id)], ['delivered', 'cancelled'])
  })
})

test('has its delivery unlocked after a long time, even if the locking worker is alive', async () => {
  const [fresh, mine, orphan] = await addJobs({}, {}, {})
  await ledger.lease(3_600_000, ['pool-alive'])
  for (const [id, pool, seconds] of [
    [fresh, 'pool-busy', 5],
    [mine, 'pool-alive', 60],
    [orphan, 'pool-gone', 60],
  ])
    await query(
      `update graphile_worker._private_jobs set locked_by = $2, locked_at = now() - make_interval(secs => $3)
       where payload ->> 'mailbox' = (select mailbox from job where id = $1)`,
      [id, pool, seconds],
    )
  const readLocks = async () => (await ledger.deliveries(fresh!, mine!, orphan!)).map((d) => d.locked_by)
  await rescue(120_000)
  assert.deepEqual(await readLocks(), ['pool-busy', 'pool-alive', 'pool-gone'])
  await rescue(20_000)
  assert.deepEqual(await readLocks(), ['pool-busy', null, null])
})

test('ended jobs are left unchanged', async () => {
  for (const outcome of ['done', 'failed', 'cancelled'] as const) {
    const { id, attempt } = await ledger.running()
    await ledger.finish({ id, attempt, outcome })
  }
  await deleteDeliveries()
  assert.deepEqual(await rescue(), [])
})

test('one of several concurrent rescuers acts', async () => {
  const [id] = await addJobs({})
  await deleteDeliveries()
  const found = await Promise.all(Array.from({ length: 4 }, () => rescue()))
  assert.deepEqual(found.flat(), [id])
})
