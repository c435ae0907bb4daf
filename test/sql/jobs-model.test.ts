import { test } from 'node:test'
import fc from 'fast-check'
import { testDatabase } from '../database.ts'
import { runs } from '../runs.ts'
import { createWorld, operation } from './ledger-model.ts'

const base = await testDatabase()
const LANES = 5

test('no job is lost, duplicated or reordered under any concurrent operations and crashes', {
  timeout: 600_000,
}, async () => {
  const lane = fc.array(operation, { minLength: 5, maxLength: 30 })
  const lanes = fc.array(lane, { minLength: LANES, maxLength: LANES })
  await fc.assert(
    fc.asyncProperty(lanes, async (all) => {
      await base.query('truncate job, job_count, job_event_row, worker_lease, graphile_worker._private_jobs')
      const world = await createWorld(base)
      const busy = Promise.all(
        all.map(async (operations) => {
          for (const one of operations) await world.run(one)
        }),
      )
      await Promise.all([busy, world.watch(busy)])
      await world.drain()
      await world.check()
    }),
    // The interleaving differs between runs, so shrinking would find another example.
    { ...runs(8), endOnFailure: true, includeErrorInReport: true },
  )
})
