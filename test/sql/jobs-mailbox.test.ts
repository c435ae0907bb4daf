import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { requeueDeliveries } from '../../sql/jobs/claims.ts'
import { cancelJobs, scheduleJobs } from '../../sql/jobs/jobs.ts'
import { createTestDatabase, waitForLock } from '../database.ts'
import { buildJobSpec, createLedgerHelp, type JobFields, withClient } from './ledger-help.ts'

/** Each waiting job has a delivery, or waits behind a job whose end sends one. */

const database = await createTestDatabase()
const { db, query, url } = database
const ledger = createLedgerHelp(database)

beforeEach(() =>
  query('truncate job, job_count, job_event_row, worker_lease, graphile_worker._private_jobs cascade'),
)

const addJobs = async (count: number, fields: JobFields = {}): Promise<string[]> => {
  const specs = Array.from({ length: count }, () => buildJobSpec({ mailbox: 'm', ...fields }))
  await ledger.enqueue(...specs)
  return specs.map(({ id }) => id)
}

/** Handles the queue's next due delivery as a worker does. Returns the claimed jobs; null if no delivery is due. */
const handleNext = async (lease: string, places: number): Promise<readonly string[] | null> => {
  const [delivery] = (await ledger.deliveries()).toSorted((a, b) => a.run_at.getTime() - b.run_at.getTime())
  if (delivery === undefined) return null
  await query('delete from graphile_worker._private_jobs where id = $1', [delivery.row])
  return (await ledger.claimMany(lease, { delivery, freeSlots: places })).map(({ id }) => id)
}

const drain = async (places: number): Promise<(readonly string[])[]> => {
  const lease = await ledger.lease()
  const parts: (readonly string[])[] = []
  for (let part = await handleNext(lease, places); part !== null; part = await handleNext(lease, places))
    parts.push(part)
  return parts
}

describe('a mailbox without a limit', () => {
  test('is claimed in parts and in order, with a delivery for each part', async () => {
    const ids = await addJobs(25)
    const parts = await drain(10)
    assert.deepEqual(parts, [ids.slice(0, 10), ids.slice(10, 20), ids.slice(20)])
  })

  test('has an empty delivery after a last part that is full', async () => {
    const ids = await addJobs(20)
    assert.deepEqual(await drain(10), [ids.slice(0, 10), ids.slice(10)])
  })

  test('has its next delivery begin after the claimed jobs', async () => {
    const ids = await addJobs(6)
    const lease = await ledger.lease()
    assert.deepEqual(await handleNext(lease, 4), ids.slice(0, 4))
    const [delivery] = await ledger.deliveries()
    assert.equal(delivery!.id, ids[4])
    await query(`update job set status = 'available', lease_id = null where id = any($1)`, [ids.slice(1, 4)])
    assert.deepEqual(await handleNext(lease, 9), ids.slice(4), 'from there on')
  })

  test("takes turns: the next part of one owner comes after other owners' jobs", async () => {
    const flood = await addJobs(30, { mailbox: 'flood' })
    const [other] = await addJobs(1, { mailbox: 'other' })
    const parts = await drain(10)
    assert.deepEqual(parts.slice(0, 2), [flood.slice(0, 10), [other]])
  })

  test('delivers a job whose transaction saw others wait and commits when they are claimed', async () => {
    const [first] = await addJobs(1)
    const late = buildJobSpec({ mailbox: 'm' })
    const lease = await ledger.lease()
    await withClient(url, async (client) => {
      await client.query('begin')
      await client.query('select job_enqueue($1)', [JSON.stringify([late])])
      assert.deepEqual(await handleNext(lease, 10), [first])
      assert.deepEqual(await handleNext(lease, 10), [], 'nothing is seen to wait, and it is looked again')
      assert.equal((await ledger.deliveries()).length, 1)
      await client.query('commit')
    })
    assert.deepEqual(await handleNext(lease, 10), [late.id])
    assert.equal(await handleNext(lease, 10), null)
  })

  test('delivers a job of its own that is added during a claim of earlier jobs', async () => {
    const [first] = await addJobs(1)
    const late = buildJobSpec({ mailbox: 'm' })
    const lease = await ledger.lease()
    const [delivery] = await ledger.deliveries()
    await query('delete from graphile_worker._private_jobs')
    let isAdded = false
    const { adding } = await withClient(url, async (client) => {
      await client.query('begin')
      await client.query(
        `select job_claim($1, array['test.task'], array['m'], array[null::int], array[$2::bigint],
           array[9])`,
        [lease, delivery!.first],
      )
      const adding = ledger.enqueue(late).then(() => {
        isAdded = true
      })
      await waitForLock(query)
      assert.equal(isAdded, false)
      await client.query('commit')
      return { adding }
    })
    await adding
    assert.deepEqual([await ledger.status(first!), await ledger.state(late.id)], ['running', 'delivered'])
  })

  test('claims released jobs with the next delivery, without jobs claimed meanwhile', async () => {
    const ids = await addJobs(2)
    const [delivery] = await ledger.deliveries()
    await query('delete from graphile_worker._private_jobs')
    await db.run(requeueDeliveries([delivery!]))
    assert.deepEqual(await drain(5), [ids])
    await db.run(requeueDeliveries([delivery!]))
    assert.deepEqual(await drain(5), [[]])
  })

  test('skips scheduled jobs until they are due', async () => {
    const [scheduled] = await addJobs(1, { delay_ms: 60_000 })
    const ids = await addJobs(3)
    assert.deepEqual(await drain(2), [ids.slice(0, 2), ids.slice(2)])
    await ledger.makeDue(scheduled!)
    assert.deepEqual(await drain(2), [[scheduled]])
  })
})

describe('jobs that are scheduled', () => {
  test('have no delivery until the scheduler makes them available, in batches', async () => {
    const ids = await addJobs(5, { delay_ms: 60_000 })
    assert.deepEqual(await ledger.deliveries(), [])
    const none = await db.one(scheduleJobs(3))
    assert.equal(none.moved, 0)
    assert.ok(none.next_seconds! > 50 && none.next_seconds! <= 60)
    await query(`update job set run_at = now()`)
    assert.deepEqual([(await db.one(scheduleJobs(3))).moved, (await db.one(scheduleJobs(3))).moved], [3, 2])
    assert.equal((await db.one(scheduleJobs(3))).next_seconds, null)
    assert.deepEqual((await drain(2)).flat(), ids)
    assert.deepEqual(await ledger.deliveries(), [])
  })

  test('wait again after an attempt that is to be retried later', async () => {
    const { id } = await ledger.running({ mailbox: 'm' })
    await query('delete from graphile_worker._private_jobs')
    await ledger.finish({ id, attempt: 1, outcome: 'retry', delay_ms: 60_000 })
    assert.deepEqual([await ledger.status(id), await ledger.deliveries()], ['scheduled', []])
    await ledger.makeDue(id)
    assert.equal(await ledger.state(id), 'delivered')
  })

  test('of an actor hold back later messages only if they are retried', async () => {
    const retried = await ledger.running({ actor: 'a' })
    const [scheduled, next] = [buildJobSpec({ actor: 'a', delay_ms: 60_000 }), buildJobSpec({ actor: 'a' })]
    await ledger.enqueue(scheduled, next)
    await query('delete from graphile_worker._private_jobs')
    await ledger.finish({ id: retried.id, attempt: 1, outcome: 'retry', delay_ms: 60_000 })
    assert.deepEqual(await ledger.deliveries(), [])
    assert.equal(await ledger.claim(next.id, retried.lease), null)
    await db.any(cancelJobs([retried.id]))
    assert.equal(await ledger.state(next.id), 'delivered')
    assert.notEqual(await ledger.claim(next.id, retried.lease), null)
  })

  test('do not prevent deliveries of other jobs', async () => {
    const { id } = await ledger.running({ mailbox: 'm' })
    await ledger.finish({ id, attempt: 1, outcome: 'release' })
    const [next] = await addJobs(1)
    assert.equal(await ledger.state(id), 'delivered')
    assert.equal(await ledger.status(next!), 'available')
  })
})

describe('a mailbox with a limit', () => {
  const limited = { mailbox_limit: 3 }
  const running = async () =>
    (await query(`select id from job where status = 'running' order by ordinal`)).map(
      ({ id }) => id as string,
    )
  const end = async (id: string, outcome: 'done' | 'retry' = 'done') =>
    ledger.finish({ id, attempt: 1, outcome, delay_ms: 60_000 })

  test('runs up to its limit in parallel, and each end delivers the next job', async () => {
    const ids = await addJobs(5, limited)
    await drain(9)
    assert.deepEqual(await running(), ids.slice(0, 3))
    await end(ids[1]!)
    assert.equal(await ledger.state(ids[3]!), 'delivered')
    await drain(9)
    assert.deepEqual(await running(), [ids[0], ids[2], ids[3]])
  })

  test('never exceeds its limit, however many deliveries and workers exist', async () => {
    const ids = await addJobs(12, limited)
    const deliveries = await ledger.deliveries()
    const leases = await Promise.all(Array.from({ length: 8 }, () => ledger.lease()))
    await Promise.all(
      leases.map((lease) => ledger.claimMany(lease, { delivery: deliveries[0]!, freeSlots: 5 })),
    )
    await drain(5)
    assert.deepEqual(await running(), ids.slice(0, 3))
  })

  test("continues if there is room for more than one worker's slots", async () => {
    const ids = await addJobs(5, limited)
    await drain(1)
    assert.deepEqual(await running(), ids.slice(0, 3))
  })

  test('lets others run during a backoff, and keeps scheduled jobs apart', async () => {
    const later = await addJobs(4, { ...limited, delay_ms: 60_000 })
    const ids = await addJobs(4, limited)
    await drain(9)
    assert.deepEqual(await running(), ids.slice(0, 3))
    await end(ids[0]!, 'retry')
    await drain(9)
    assert.deepEqual(await running(), ids.slice(1))
    assert.deepEqual(
      await Promise.all([ids[0]!, ...later].map(ledger.status)),
      Array.from({ length: 5 }, () => 'scheduled'),
    )
  })

  test('gains no slot from a cancelled job, and does not wait for it', async () => {
    const ids = await addJobs(5, limited)
    await db.any(cancelJobs([ids[0]!]))
    await drain(9)
    assert.deepEqual(await running(), ids.slice(1, 4))
  })

  test("keeps the order of an actor's messages, also while the first is not due", async () => {
    const [first, second] = await addJobs(2, { mailbox_limit: 1 })
    await drain(9)
    await end(first!, 'retry')
    assert.deepEqual(await ledger.deliveries(), [])
    const delivery = await ledger.deliveryOf(second!)
    assert.deepEqual(await ledger.claimMany(await ledger.lease(), { delivery, freeSlots: 1 }), [])
    assert.deepEqual(await ledger.deliveries(), [], 'the claim repeats no delivery')
    await ledger.makeDue(first!)
    await drain(9)
    assert.deepEqual(await running(), [first])
    await end(first!)
    assert.deepEqual(await running(), [first], 'the end of an attempt before says nothing')
    await ledger.finish({ id: first!, attempt: 2, outcome: 'done' })
    await drain(9)
    assert.deepEqual(await running(), [second])
  })

  test('is not blocked by a scheduled message, which runs at its time', async () => {
    const later = await addJobs(2, { mailbox_limit: 1, delay_ms: 60_000 })
    const [first, second] = await addJobs(2, { mailbox_limit: 1 })
    const lease = await ledger.lease()
    assert.deepEqual(await handleNext(lease, 1), [first])
    await ledger.finish({ id: first!, attempt: 1, outcome: 'done' })
    assert.deepEqual(await handleNext(lease, 1), [second], 'the end of a job delivers the due one')
    assert.deepEqual(await ledger.deliveries(), [])
    await ledger.makeDue(...later)
    assert.deepEqual(await ledger.deliveries(), [], 'it is busy')
    await ledger.finish({ id: second!, attempt: 1, outcome: 'done' })
    assert.deepEqual(await handleNext(lease, 1), [later[0]], 'the end of what was running sends it')
    await ledger.finish({ id: later[0]!, attempt: 1, outcome: 'retry', delay_ms: 60_000 })
    assert.deepEqual(await ledger.deliveries(), [], 'a retried job keeps its position')
    assert.equal(await ledger.claim(later[1]!, lease), null)
    await ledger.makeDue(later[0]!)
    assert.deepEqual(await handleNext(lease, 1), [later[0]])
  })

  test('runs the due one of two scheduled messages first', async () => {
    const [late] = await addJobs(1, { mailbox_limit: 1, delay_ms: 60_000 })
    const [soon] = await addJobs(1, { mailbox_limit: 1, delay_ms: 30_000 })
    await ledger.makeDue(soon!)
    assert.deepEqual(await handleNext(await ledger.lease(), 1), [soon])
    await ledger.finish({ id: soon!, attempt: 1, outcome: 'done' })
    assert.deepEqual(await ledger.deliveries(), [], 'none for what is not due')
    await ledger.makeDue(late!)
    assert.equal(await ledger.state(late!), 'delivered')
  })

  test('delivers messages of each task to a worker that knows the task', async () => {
    const [first] = await addJobs(1, { mailbox_limit: 1, name: 'test.one' })
    const [second] = await addJobs(1, { mailbox_limit: 1, name: 'test.two' })
    const [delivery] = await ledger.deliveries()
    await db.any(cancelJobs([first!]))
    await query('delete from graphile_worker._private_jobs')
    const lease = await ledger.lease()
    assert.deepEqual(await ledger.claimMany(lease, { delivery: delivery!, freeSlots: 1 }), [])
    assert.equal((await ledger.deliveries())[0]!.task, 'test.two')
    await drain(1)
    assert.deepEqual(await running(), [second])
  })
})
