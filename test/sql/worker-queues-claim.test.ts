import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { claimJobs, parseClaims } from '../../sql/jobs/claims.ts'
import { endAttempts, scheduleJobs } from '../../sql/jobs/jobs.ts'
import { claimQueueJobs } from '../../sql/worker-queues/claims.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp, type JobFields } from './ledger-help.ts'

const database = await createTestDatabase()
const { db, query } = database
const ledger = createLedgerHelp(database)
const lease = await ledger.lease()
await query(`insert into worker_queue (name) values ('http')`)

/** Adds a job of the worker queue and returns its id. */
async function add(fields: JobFields = {}): Promise<string> {
  const job = buildJobSpec({ name: 'http/task', queue: 'http', ...fields })
  await ledger.enqueue(job)
  return job.id
}

/** Claims at most one job, as a worker with one slot does. */
async function claimOne() {
  const { claims, must_repeat } = await db.one(claimQueueJobs('http', lease, 1))
  return { jobs: parseClaims({ claims }), must_repeat }
}

const end = (id: string, outcome: 'done' | 'release', attempt = 1): Promise<unknown> =>
  endAttempts(db, [{ id, attempt, outcome, ...(outcome === 'done' && { result: 'null' }) }])

/** Each lets an older message of an actor become available after the delivery of a later one. */
const WAYS: Record<string, (actor: string, addLater: () => Promise<string>) => Promise<string[]>> = {
  'is scheduled': async (actor, addLater) => {
    const first = await add({ actor, delay_ms: 3_600_000 })
    const later = await addLater()
    await query('update job set run_at = now() where id = $1', [first])
    await db.one(scheduleJobs(10))
    return [first, later]
  },
  'waits for another job': async (actor, addLater) => {
    const before = await add()
    const first = await add({ actor, after: [before], after_outcome: 'any' })
    const { jobs } = await claimOne()
    assert.deepEqual(
      jobs.map(({ id }) => id),
      [before],
    )
    const later = await addLater()
    await end(before, 'done')
    await db.one(scheduleJobs(10))
    return [first, later]
  },
}

describe('a worker with one slot', () => {
  beforeEach(() => query('truncate job, job_count, job_event_row, worker_delivery cascade'))

  for (const [way, prepare] of Object.entries(WAYS))
    test(`claims the oldest message of an actor, also one that ${way}, before later ones and other jobs`, async () => {
      const [first, later] = await prepare('actor', () => add({ actor: 'actor' }))
      const other = await add()
      const claimed: string[] = []
      for (let tries = 0; tries < 10 && claimed.length < 3; tries++)
        for (const { id, attempt } of (await claimOne()).jobs) {
          claimed.push(id)
          await end(id, 'done', attempt)
        }
      assert.deepEqual(new Set(claimed), new Set([first, later, other]))
      assert.ok(
        claimed.indexOf(first!) < claimed.indexOf(later!),
        'an actor handles its messages in their order',
      )
      assert.deepEqual(await claimOne(), { jobs: [], must_repeat: false })
      assert.deepEqual(await query('select * from worker_delivery'), [])
    })

  test('claims a job that a worker gave back', async () => {
    const first = await add({ actor: 'actor' })
    await add({ actor: 'actor' })
    await claimOne()
    await end(first, 'release')
    const { jobs } = await claimOne()
    assert.deepEqual(
      jobs.map(({ id, attempt }) => [id, attempt]),
      [[first, 2]],
    )
  })
})

test('a delivery behind an older message of its actor is done, since that message has one', async () => {
  const older = buildJobSpec({ actor: 'own', delay_ms: 3_600_000 })
  const later = buildJobSpec({ actor: 'own' })
  await ledger.enqueue(older)
  await ledger.enqueue(later)
  const [delivery] = await ledger.deliveries(later.id)
  await query('update job set run_at = now() where id = $1', [older.id])
  await db.one(scheduleJobs(10))
  const { claims, again } = await db.one(claimJobs(lease, [{ delivery: delivery!, freeSlots: 1 }]))
  assert.deepEqual({ claims, again }, { claims: null, again: [] })
  assert.equal((await ledger.deliveries(older.id)).length, 1)
})
