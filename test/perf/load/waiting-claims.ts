import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { createJsonClient, type JsonClient } from './json-client.ts'

/** Workers in a separate process, each with its own lease and one claim that waits. They report the jobs that they get. */

export interface WaitingOrder {
  readonly port: number
  readonly token: string
  readonly queue: string
  /** Number of workers to add. */
  readonly workers: number
  /** Shortest and longest time in seconds for which a claim waits. */
  readonly wait: readonly [number, number]
}

export interface WaitingSeen {
  readonly jobs: number
}

const OPENED_PER_TICK = 20
const TICK_MS = 20

const seen = { jobs: 0 }

process.on('message', (order: WaitingOrder | 'report') => {
  void runOrder(order).then((answer) => process.send!(answer))
})
process.on('disconnect', () => process.exit())
process.send!({})

async function runOrder(order: WaitingOrder | 'report'): Promise<WaitingSeen> {
  if (order === 'report') return seen
  const client = createJsonClient(order.port, order.token)
  for (let i = 0; i < order.workers; i++) {
    void keepClaiming(client, order)
    if (i % OPENED_PER_TICK === OPENED_PER_TICK - 1) await delay(TICK_MS)
  }
  return seen
}

async function keepClaiming(client: JsonClient, { queue, wait }: WaitingOrder): Promise<void> {
  const [least, most] = wait
  const leaseId = randomUUID()
  try {
    for (;;) {
      const { jobs } = await client.call<{ jobs: { job_id: string; attempt: number }[] }>(
        'POST',
        `/api/v1/worker-queues/${queue}/claims`,
        { worker: 'bench', lease_id: leaseId, wait_seconds: least + Math.random() * (most - least) },
      )
      seen.jobs += jobs.length
      const items = jobs.map(({ job_id, attempt }) => ({ job_id, attempt, done: { result: null } }))
      if (jobs.length > 0) await client.call('POST', `/api/v1/workers/leases/${leaseId}/reports`, { items })
    }
  } catch (error) {
    process.stderr.write(`${(error as Error).stack}\n`)
    process.exit(1)
  }
}
