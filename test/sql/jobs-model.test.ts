import { test } from 'node:test'
import fc from 'fast-check'
import { createTestDatabase } from '../database.ts'
import { createRunOptions, scaleTimeout } from '../runs.ts'
import { createLedgerModel, operation } from './ledger-model.ts'

const database = await createTestDatabase()
const PARALLEL_CLIENTS = 5

for (const isHttp of [false, true])
  test(`no job${isHttp ? ' of a worker queue' : ''} is lost, duplicated or reordered under any concurrent operations and crashes`, {
    timeout: scaleTimeout(600_000),
  }, async () => {
    const lane = fc.array(operation, { minLength: 5, maxLength: 30 })
    const lanes = fc.array(lane, { minLength: PARALLEL_CLIENTS, maxLength: PARALLEL_CLIENTS })
    await fc.assert(
      fc.asyncProperty(lanes, async (all) => {
        await database.query(
          'truncate job, job_count, job_event_row, worker_lease, worker_delivery, graphile_worker._private_jobs cascade',
        )
        const world = await createLedgerModel(database, isHttp)
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
      { ...createRunOptions(8), endOnFailure: true, includeErrorInReport: true },
    )
  })
