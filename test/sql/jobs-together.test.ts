import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimJobs, enqueueJobs } from '../../sql/jobs.ts'
import { testDatabase } from '../database.ts'
import { spec } from './ledger-help.ts'

const { db, query } = await testDatabase()

/** What the deliveries carry, in any order. */
async function payloads(): Promise<string[]> {
  const rows = await query('select payload from graphile_worker._private_jobs')
  return rows.map(({ payload }) => JSON.stringify(payload)).sort()
}

test('jobs that may share a delivery do, in order; a remainder of one and jobs of actors go alone', async () => {
  const specs = Array.from({ length: 7 }, () => spec({ together: 3 }))
  const actor = spec({ together: 3, actor: 'alone' })
  await db.any(enqueueJobs([...specs, actor]))
  const pair = (n: number): unknown => [specs[n]!.id, 1]
  const expected = [
    { jobs: [pair(0), pair(1), pair(2)] },
    { jobs: [pair(3), pair(4), pair(5)] },
    { id: specs[6]!.id, delivery: 1 },
    { id: actor.id, delivery: 1 },
  ]
  assert.deepEqual(await payloads(), expected.map((payload) => JSON.stringify(payload)).sort())
})

test('each job of a shared delivery is claimed by its own number', async () => {
  await query('truncate job')
  const specs = Array.from({ length: 3 }, () => spec({ together: 3 }))
  await db.any(enqueueJobs(specs))
  await query('update job set delivery = 2 where id = $1', [specs[1]!.id])
  const lease = '00000000-0000-4000-8000-000000000001'
  const claimed = await db.any(
    claimJobs(
      lease,
      specs.map(({ id }) => id),
      [1, 1, 1],
    ),
  )
  assert.deepEqual(claimed.map(({ id }) => id).sort(), [specs[0]!.id, specs[2]!.id].sort())
})
