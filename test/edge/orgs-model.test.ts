import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { testDatabase } from '../database.ts'
import { runs } from '../runs.ts'
import { startEdge } from './harness.ts'
import { createWorld, operation } from './orgs-model.ts'

const base = await testDatabase()
// Two edges with separate connections, so that only the database orders their changes.
const apis = [await startEdge(base.url), await startEdge(base.url)]
const LANES = 8

test("concurrent changes leave each organization an owner and never exceed a caller's rank", async (t) => {
  const total = { requests: 0, successes: 0 }
  const lane = fc.array(operation, { minLength: 25, maxLength: 50, size: 'max' })
  const lanes = fc.array(lane, { minLength: LANES, maxLength: LANES })
  await fc.assert(
    fc.asyncProperty(lanes, async (all) => {
      await base.query('alter table audit_event disable trigger audit_append_only')
      await base.query('truncate account, organization, audit_event, job, job_event_row cascade')
      const world = await createWorld(base, apis)
      await Promise.all(all.map(world.live))
      const { requests, successes } = await world.check()
      total.requests += requests
      total.successes += successes
    }),
    // Do not shrink: concurrent runs differ each time, so smaller examples would be unrelated.
    { ...runs(5), endOnFailure: true, includeErrorInReport: true },
  )
  t.diagnostic(`${total.requests} requests, of which ${total.successes} changed something`)
  assert.ok(total.successes > total.requests / 20, 'enough of it is allowed')
})
