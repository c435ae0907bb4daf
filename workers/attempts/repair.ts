import type { Database } from '../../sql/db.ts'
import { repairJobs } from '../../sql/jobs.ts'
import type { Log } from '../../tasks/log.ts'
import { type Periodic, periodically } from './periodic.ts'
import { createCostThrottle } from './throttle.ts'

/** Looks from time to time for jobs that nothing would ever start, whatever the cause, and sends their deliveries. */
export type Repair = Pick<Periodic, 'stop'>

/** How often to look, and how long a job must have been left alone, in ms: within a minute all of them go on. */
const REPAIR_MS = 20_000

export function startRepair(db: Database, log: Log, everyMs = REPAIR_MS): Repair {
  // It reads everything that waits in the queue: during a flood it may take at most a fiftieth of the time.
  const throttle = createCostThrottle(0.02)

  const look = async (): Promise<void> => {
    const sent = await throttle.run(() => db.any(repairJobs(everyMs)))
    if (sent.length === 0) return
    log.warn({ jobs: sent.map(({ id }) => id) }, 'Sent deliveries for jobs that nothing would have started')
  }

  return periodically(
    everyMs,
    () => (throttle.ready ? look() : null),
    (error) => log.warn({ err: error }, 'The search for jobs that nothing would start failed'),
  )
}
