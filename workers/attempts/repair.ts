import type { Database } from '../../sql/db.ts'
import { repairJobs } from '../../sql/jobs.ts'
import type { Log } from '../../tasks/log.ts'
import { createCostThrottle } from './throttle.ts'

/** Looks from time to time for jobs that nothing would ever start, whatever has brought them there, and has them go on. */
export interface Repair {
  /** Resolves when no look is under way. */
  stop(): Promise<void>
}

/** How often is looked, and for how long a job has to have been left alone, in ms: within a minute all of them go on. */
export const REPAIR_MS = 20_000

export function startRepair(db: Database, log: Log, everyMs = REPAIR_MS): Repair {
  // It reads all that waits in the queue: of a flood that is worth a fiftieth of the time.
  const throttle = createCostThrottle(0.02)
  let looking: Promise<void> | null = null

  const look = async (): Promise<void> => {
    const sent = await throttle.run(() => db.any(repairJobs(everyMs)))
    if (sent.length === 0) return
    log.warn({ jobs: sent.map(({ id }) => id) }, 'Jobs that nothing would have started were sent again')
  }

  const timer = setInterval(() => {
    if (looking !== null || !throttle.ready) return
    looking = look()
      .catch((error) => log.warn({ err: error }, 'Jobs that nothing starts could not be looked for'))
      .finally(() => {
        looking = null
      })
  }, everyMs)
  return {
    stop: async () => {
      clearInterval(timer)
      await looking
    },
  }
}
