import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { claimJobs, parseClaims } from '../../sql/jobs/claims.ts'
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

/** Each lets an older message of the actor become available after the delivery of a later one. Returns both. */
const WAYS: Record<string, () => Promise<[older: string, later: string]>> = {
  'is scheduled': async () => {
    const older = await add({ actor: 'actor', delay_ms: 1 })
    const later = await add({ actor: 'actor' })
    await ledger.makeDue(older)
    return [older, later]
  },
  'waits for another job': async () => {
    const before = await ledger.running({}, lease)
    const older = await add({ actor: 'actor', after: [before.id], after_outcome: 'any' })
    const later = await add({ actor: 'actor' })
    await ledger.finish({ ...before, outcome: 'done' })
    await ledger.makeDue(older)
    return [older, later]
  },
}

describe('a worker with one slot', () => {
  beforeEach(() => query('truncate job, job_count, job_event_row, worker_delivery cascade'))

  for (const [way, prepare] of Object.entries(WAYS))
    test(`claims the oldest message of an actor, also one that ${way}, before later ones and other jobs`, async () => {
      const [older, later] = await prepare()
      const other = await add()
      const claimed: string[] = []
      for (let tries = 0; tries < 10 && claimed.length < 3; tries++)
        for (const { id, attempt } of (await claimOne()).jobs) {
          claimed.push(id)
          await ledger.finish({ id, attempt, outcome: 'done' })
        }
      assert.deepEqual(new Set(claimed), new Set([older, later, other]))
      assert.ok(
        claimed.indexOf(older) < claimed.indexOf(later),
        'an actor handles its messages in their order',
      )
      assert.deepEqual(await claimOne(), { jobs: [], must_repeat: false })
      assert.deepEqual(await query('select * from worker_delivery'), [])
    })

  test('claims a job that a worker gave back', async () => {
    const first = await add({ actor: 'actor' })
    await add({ actor: 'actor' })
    await claimOne()
    await ledger.finish({ id: first, attempt: 1, outcome: 'release' })
    const { jobs } = await claimOne()
    assert.deepEqual(
      jobs.map(({ id, attempt }) => [id, attempt]),
      [[first, 2]],
    )
  })
})

test('a delivery behind an older message of its actor is done, since that message has one', async () => {
  const older = buildJobSpec({ actor: 'own', delay_ms: 1 })
  const later = buildJobSpec({ actor: 'own' })
  await ledger.enqueue(older)
  await ledger.enqueue(later)
  const [delivery] = await ledger.deliveries(later.id)
  await ledger.makeDue(older.id)
  const { claims, again } = await db.one(claimJobs(lease, [{ delivery: delivery!, freeSlots: 1 }]))
  assert.deepEqual({ claims, again }, { claims: null, again: [] })
  assert.equal((await ledger.deliveries(older.id)).length, 1)
})
