import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createTestDatabase } from '../database.ts'
import { createRunOptions } from '../runs.ts'
import { startEdge } from './harness.ts'
import { arbitraryOperation, createModel } from './orgs-model.ts'

const database = await createTestDatabase()
// Two edges with separate connections, so that only the database orders their changes.
const edges = [await startEdge(database.url), await startEdge(database.url)]
const LANE_COUNT = 8

test("concurrent changes leave each organization an owner and never exceed a caller's rank", async (t) => {
  const total = { requests: 0, successes: 0 }
  const lane = fc.array(arbitraryOperation, { minLength: 25, maxLength: 50, size: 'max' })
  const lanes = fc.array(lane, { minLength: LANE_COUNT, maxLength: LANE_COUNT })
  await fc.assert(
    fc.asyncProperty(lanes, async (all) => {
      await database.query('alter table audit_event disable trigger audit_append_only')
      await database.query('truncate account, organization, audit_event, job, job_event_row cascade')
      const world = await createModel(database, edges)
      await Promise.all(all.map(world.live))
      const { requests, successes } = await world.check()
      total.requests += requests
      total.successes += successes
    }),
    // Do not shrink: concurrent runs differ each time, so smaller examples would be unrelated.
    { ...createRunOptions(5), endOnFailure: true, includeErrorInReport: true },
  )
  t.diagnostic(`${total.requests} requests, of which ${total.successes} changed something`)
  assert.ok(total.successes > total.requests / 20, 'enough of it is allowed')
})
