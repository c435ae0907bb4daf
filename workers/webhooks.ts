import type { Database } from '../sql/db.ts'
import { listDueEndpoints } from '../sql/webhooks/webhooks.ts'
import type { Log } from '../tasks/platform/log.ts'
import { type Periodic, runPeriodically } from '../tasks/platform/periodic.ts'
import { enqueueMany, type JobSettings } from '../tasks/task.ts'
import { deliver } from '../tasks/webhooks/deliver.task.ts'

/** Looks every second for due webhook deliveries, and enqueues a job for each endpoint and host with due deliveries. */
export type WebhookWatch = Pick<Periodic, 'stop'>

// The due time is stored with each delivery: a process that dies between an event and its job loses nothing.
const INTERVAL_MS = 1000
// Limits the locks of a transaction: each job's actor takes an entry of the lock table that all connections share.
const BATCH_SIZE = 1000

export function watchWebhooks(db: Database, log: Log, settings: JobSettings): WebhookWatch {
  const enqueueDue = async (): Promise<void> => {
    const due = await db.any(listDueEndpoints())
    const payloads = due.map(({ id, host }) => ({ endpoint_id: id, host }))
    for (let start = 0; start < payloads.length; start += BATCH_SIZE) {
      const batch = payloads.slice(start, start + BATCH_SIZE)
      await db.transaction((tx) => enqueueMany(tx, deliver, batch, { ownerId: null, settings }))
    }
  }

  return runPeriodically(INTERVAL_MS, enqueueDue, (error) =>
    log.warn({ err: error }, 'Failed to enqueue due webhook deliveries'),
  )
}
