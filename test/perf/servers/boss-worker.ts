import { PgBoss } from 'pg-boss'

/**
 * A reference for jobs: plain pg-boss with no-op jobs in batches. It fetches without a pause while batches are full.
 */

const CHUNK_SIZE = 1000
const batchSize = Number(process.env.BATCH)
const total = Number(process.env.JOBS)
const executedIds = new Set<string>()
let executed = 0

const boss = new PgBoss({
  connectionString: process.env.DATABASE_URL!,
  max: 10,
  // Avoids maintenance and statistics during the measurement.
  supervise: false,
  schedule: false,
})
boss.on('error', () => process.exit(1))
await boss.start()
await boss.createQueue('noop')
for (let from = 0; from < total; from += CHUNK_SIZE) {
  const count = Math.min(CHUNK_SIZE, total - from)
  await boss.insert(
    'noop',
    Array.from({ length: count }, (_, i) => ({ data: { echo: `job ${from + i}` } })),
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
  const options = { batchSize, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }
  await boss.work<{ echo: string }>('noop', options, async (jobs) => {
    for (const { data } of jobs) {
      executed++
      executedIds.add(data.echo)
    }
    // pg-boss stores this as the output of each job.
    return { echo: 'done' }
  })
  process.send!({})
}
