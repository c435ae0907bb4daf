import type { Database } from '../../sql/db.ts'
import { rescueQueuedJobs } from '../../sql/jobs/jobs.ts'
import type { Log } from '../../tasks/platform/log.ts'
import { type Periodic, runPeriodically } from '../../tasks/platform/periodic.ts'
import { rescueSchedules } from '../../tasks/schedules/built-in.ts'
import type { JobSettings } from '../../tasks/task.ts'
import { createCostThrottle } from './throttle.ts'

/**
 * Looks at intervals for queued jobs that have lost their delivery, for whatever reason, and sends new deliveries. Also
 * sends new messages of schedules that have lost theirs.
 */
export type Rescuer = Pick<Periodic, 'stop'>

/**
 * Interval of the search, and the time without a delivery after which a job is rescued, in ms. Together they take less
 * than a minute.
 */
const RESCUE_MS = 20_000

export function startRescuer(db: Database, settings: JobSettings, log: Log, everyMs = RESCUE_MS): Rescuer {
  // The statement reads all deliveries in the queue: during a flood it may use at most 2 % of the time.
  const throttle = createCostThrottle(0.02)

  const rescue = async (): Promise<void> => {
    const sent = await throttle.run(() => db.any(rescueQueuedJobs(everyMs)))
    if (sent.length > 0) log.warn({ jobs: sent.map(({ id }) => id) }, 'Rescued jobs that had no delivery')
    const schedules = await rescueSchedules(db, settings, everyMs)
    if (schedules.length > 0) log.warn({ schedules }, 'Rescued schedules that had no message')
  }

  return runPeriodically(
    everyMs,
    () => (throttle.isReady ? rescue() : null),
    (error) => log.warn({ err: error }, 'Job rescue failed'),
  )
}
