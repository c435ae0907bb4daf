import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp } from './ledger-help.ts'

const database = await createTestDatabase()
const { query } = database
const ledger = createLedgerHelp(database)

/** Deliveries in the order in which graphile-worker fetches them. */
const fetched = async () =>
  (
    await query(
      `select payload ->> 'id' as id, priority from graphile_worker._private_jobs order by priority, run_at, id`,
    )
  ).map(({ id, priority }) => [id, priority])

test('deliveries have the priority of their job, and a low one of the queue can be brought forward', async () => {
  const [low, normal, high] = [buildJobSpec({ priority: 1 }), buildJobSpec(), buildJobSpec({ priority: -1 })]
  const elsewhere = buildJobSpec({ priority: 1, queue: 'other' })
  await ledger.enqueue(elsewhere, low, normal, high)
  const byId = [
    [high.id, -1],
    [normal.id, 0],
  ]
  assert.deepEqual((await fetched()).slice(0, 2), byId)
  assert.ok((await fetched()).slice(2).every(([, priority]) => priority === 1))
  await query(`select job_promote('{test}', 0::smallint)`)
  assert.deepEqual((await fetched()).slice(0, 3), [[low.id, -2], ...byId])
})
