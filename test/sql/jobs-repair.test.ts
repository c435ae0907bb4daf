import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { cancelJob, type JobSpec, recoverJobs, repairJobs } from '../../sql/jobs.ts'
import { stagedLanes } from '../../sql/staged.ts'
import { testDatabase } from '../database.ts'
import { ledgerOf, spec } from './ledger-help.ts'

/** Whatever state a job is in, somebody looks for it: also where a row is gone, or is what it was some time ago. */

const base = await testDatabase()
const { db, query } = base
const ledger = ledgerOf(base)

beforeEach(() =>
  query('truncate job, job_event_row, job_hold, worker_lease, graphile_worker._private_jobs cascade'),
)

const repair = async (patienceMs = 0): Promise<string[]> =>
  (await db.any(repairJobs(patienceMs))).map(({ id }) => id)
const forget = () => query('delete from graphile_worker._private_jobs')
const added = async (...fields: readonly Partial<JobSpec>[]): Promise<string[]> => {
  const specs = fields.map((some) => spec(some))
  await ledger.enqueue(...specs)
  return specs.map(({ id }) => id)
}
const deliveryOf = async (id: string) => (await ledger.deliveries(id)).map(({ delivery }) => delivery)

describe('a job that is sent', () => {
  test('and has no delivery is sent again', async () => {
    const [id] = await added({})
    await forget()
    assert.deepEqual(await repair(), [id])
    assert.deepEqual([await ledger.status(id!), await deliveryOf(id!)], ['sent', [2]])
    assert.deepEqual(await repair(), [], 'once')
    assert.ok(await ledger.claim(id!, await ledger.lease()))
  })

  test('and has the delivery of another time is sent again; what is stale starts nothing', async () => {
    const [id] = await added({})
    await query('update job set delivery = 7 where id = $1', [id])
    assert.deepEqual(await repair(), [id])
    assert.deepEqual(await deliveryOf(id!), [1, 8])
  })

  test('with others in one delivery is found among them', async () => {
    const ids = await added({ together: 10 }, { together: 10 }, { together: 10 })
    assert.deepEqual(await repair(), [])
    await query('update job set delivery = 5 where id = $1', [ids[1]])
    assert.deepEqual(await repair(), [ids[1]])
  })

  test('and has no delivery is found beside the work of others in the queue', async () => {
    await query(`select graphile_worker.add_job('of-others', '{"id": 5, "jobs": "many"}')`)
    const [id] = await added({})
    await query(`delete from graphile_worker._private_jobs where payload ->> 'id' = $1`, [id])
    assert.deepEqual(await repair(), [id])
  })

  test('and is delivered, or was sent a moment ago, or is to wait, is left alone', async () => {
    const [delivered] = await added({ actor: 'a' })
    assert.deepEqual(await repair(), [])
    await forget()
    assert.deepEqual(await repair(60_000), [])
    assert.deepEqual(await deliveryOf(delivered!), [])
    await query(`update job set run_at = now() + interval '1 hour'`)
    assert.deepEqual(await repair(), [])
    await query(`update job set run_at = now() - interval '1 s'`)
    assert.deepEqual(await repair(), [delivered])
  })
})

describe('a message that waits', () => {
  test('for an actor that does nothing has its turn, and those behind it theirs', async () => {
    const [first, second, third] = await added({ actor: 'b' }, { actor: 'b' }, { actor: 'b' })
    await added({ actor: 'c' })
    await query('delete from job where id = $1', [first])
    assert.deepEqual(await repair(), [second])
    assert.deepEqual(
      [await ledger.status(second!), await ledger.status(third!), await deliveryOf(second!)],
      ['sent', 'queued', [1]],
    )
  })

  test('for one that works, or is about to, waits on', async () => {
    const [, waiting] = await added({ actor: 'd' }, { actor: 'd' })
    await ledger.running({ actor: 'e' })
    const [behind] = await added({ actor: 'e' })
    assert.deepEqual(await repair(), [])
    assert.deepEqual([await ledger.status(waiting!), await ledger.status(behind!)], ['queued', 'queued'])
  })

  test('without an actor is named to whoever takes what is staged, also when what held it is gone', async () => {
    const [id] = await added({ queue: 'q', front: 0 })
    assert.equal(await ledger.status(id!), 'queued')
    assert.deepEqual(await db.any(stagedLanes(['q'], ['io'])), [{ key: 'q/io' }])
    await query(
      `insert into job_hold (lease_id, queue, lane, owner, ordinals)
       select $1, 'q', 'io', 0, int8multirange(int8range(ordinal, ordinal + 1)) from job where id = $2`,
      [randomUUID(), id],
    )
    assert.deepEqual(await db.any(recoverJobs(0)), [{ id }], 'its holder is gone: it may have begun')
    assert.deepEqual([await ledger.status(id!), await deliveryOf(id!)], ['sent', [1]])
  })
})

describe('what runs', () => {
  test('without a lease is taken over, or ends when it was to be cancelled', async () => {
    const [one, two] = [await ledger.running(), await ledger.running()]
    await db.one(cancelJob(two.id))
    await query('delete from worker_lease')
    const recovered = (await db.any(recoverJobs(0))).map(({ id }) => id)
    assert.deepEqual(recovered.sort(), [one.id, two.id].sort())
    assert.deepEqual([await ledger.status(one.id), await ledger.status(two.id)], ['sent', 'cancelled'])
  })
})

test('a delivery that is locked by the pool of no worker is freed, and one of a worker is not', async () => {
  const [mine, orphan] = await added({}, {})
  await ledger.lease(60_000, ['pool-alive'])
  for (const [id, pool] of [
    [mine, 'pool-alive'],
    [orphan, 'pool-gone'],
  ])
    await query(
      `update graphile_worker._private_jobs set locked_by = $2, locked_at = now() - interval '1 minute' where payload ->> 'id' = $1`,
      [id, pool],
    )
  const locks = async () => (await ledger.deliveries(mine!, orphan!)).map((d) => d.locked_by)
  await repair(120_000)
  assert.deepEqual(
    await locks(),
    ['pool-alive', 'pool-gone'],
    'a pool may be younger than the renewal that names it',
  )
  await repair(20_000)
  assert.deepEqual(await locks(), ['pool-alive', null])
})

test('what has ended is left as it is', async () => {
  for (const outcome of ['done', 'failed', 'cancelled'] as const) {
    const { id, attempt } = await ledger.running()
    await ledger.finish({ id, attempt, outcome })
  }
  await forget()
  assert.deepEqual(await repair(), [])
})

test('of several that look at once one does', async () => {
  const [id] = await added({})
  await forget()
  const found = await Promise.all(Array.from({ length: 4 }, () => repair()))
  assert.deepEqual(found.flat(), [id])
})
