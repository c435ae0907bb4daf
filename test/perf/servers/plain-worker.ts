import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'

/**
 * The reference for jobs: plain graphile-worker with no-op jobs, eight at a time, and default settings. With TUNED it
 * also prefetches and batches like our kernel.
 */

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
pool.on('error', () => process.exit(1))
pool.on('connect', (client) => client.on('error', () => process.exit(1)))
const total = Number(process.env.JOBS)
const CHUNK_SIZE = 1000
const executedIds = new Set<string>()
let executed = 0

const utils = await makeWorkerUtils({ pgPool: pool, logger: new Logger(() => () => {}) })
await utils.migrate()
for (let from = 0; from < total; from += CHUNK_SIZE) {
  const count = Math.min(CHUNK_SIZE, total - from)
  await utils.addJobs(
    Array.from({ length: count }, (_, i) => ({ identifier: 'noop', payload: { echo: `job ${from + i}` } })),
  )
}

process.on('message', (message) => {
  if (message === 'count') process.send!({ executed, distinct: executedIds.size })
  else void startWorking()
})
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())
process.send!({})

async function startWorking(): Promise<void> {
  const tuned = { concurrentJobs: 256, localQueue: { size: 512 }, completeJobBatchDelay: 2 }
  await run({
    pgPool: pool,
    noHandleSignals: true,
    parsedCronItems: [],
    preset: { worker: process.env.TUNED === '1' ? tuned : { concurrentJobs: 8 } },
    taskList: {
      noop: (payload) => {
        executed++
        executedIds.add((payload as { echo: string }).echo)
      },
    },
  })
  process.send!({})
}
