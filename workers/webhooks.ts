import type { Database } from '../sql/db.ts'
import { dueEndpoints, endExpiredEndpoints } from '../sql/webhooks.ts'
import type { Log } from '../tasks/log.ts'
import { enqueueMany, type JobSettings } from '../tasks/task.ts'
import { deliver } from '../tasks/webhooks/deliver.ts'
import { type Periodic, periodically } from './attempts/periodic.ts'

/** Looks for webhook deliveries that are due, and adds a job for each endpoint and host that has some. */
export type WebhookWatch = Pick<Periodic, 'stop'>

// What is due is due at a time of its row: a process that dies between an event and this loses nothing.
const EVERY_MS = 1000
// Each is an actor, whose lock takes an entry of the lock table that all connections share.
const AT_ONCE = 1000

export function watchWebhooks(db: Database, log: Log, settings: JobSettings): WebhookWatch {
  const look = async (): Promise<void> => {
    await db.run(endExpiredEndpoints())
    const due = await db.any(dueEndpoints())
    const payloads = due.map(({ id, host }) => ({ endpoint_id: id, host }))
    for (let start = 0; start < payloads.length; start += AT_ONCE) {
      const some = payloads.slice(start, start + AT_ONCE)
      await db.transaction((tx) => enqueueMany(tx, deliver, some, { ownerId: null, settings }))
    }
  }

  return periodically(EVERY_MS, look, (error) =>
    log.warn({ err: error }, 'Webhooks that are due could not be looked for'),
  )
}
