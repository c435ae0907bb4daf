import type { Database } from '../../sql/db.ts'
import { scheduleJobs } from '../../sql/jobs/jobs.ts'
import type { Log } from '../../tasks/platform/log.ts'
import { runPeriodically } from '../../tasks/platform/periodic.ts'

/** Makes scheduled jobs available once they are due. Every worker has one; they share the work. */
export interface Scheduler {
  /** Looks again in `ms` at the latest, for a job that was scheduled here. */
  wakeIn(ms: number): void
  /** Resolves once no run is under way. */
  stop(): Promise<void>
}

// A job becomes available at most this late.
const MAX_WAIT_MS = 1000
// Due jobs that another worker is making available must not cause a busy loop.
const MIN_WAIT_MS = 20
const BATCH = 1000

export function startScheduler(db: Pick<Database, 'one'>, log: Log): Scheduler {
  let timer: NodeJS.Timeout | undefined
  let nextAt = Number.POSITIVE_INFINITY
  let isStopped = false

  const run = async (): Promise<void> => {
    let result = await db.one(scheduleJobs(BATCH))
    while (result.moved === BATCH && !isStopped) result = await db.one(scheduleJobs(BATCH))
    const waitMs = (result.next_seconds ?? Number.POSITIVE_INFINITY) * 1000
    if (waitMs < MAX_WAIT_MS) wakeIn(Math.max(waitMs, MIN_WAIT_MS))
  }
  const periodic = runPeriodically(MAX_WAIT_MS, run, (error) =>
    log.warn({ err: error }, 'Failed to schedule jobs'),
  )
  const wakeIn = (ms: number): void => {
    const at = performance.now() + ms
    if (isStopped || at >= nextAt) return
    nextAt = at
    clearTimeout(timer)
    timer = setTimeout(() => {
      nextAt = Number.POSITIVE_INFINITY
      periodic.request()
    }, ms).unref()
  }
  periodic.request()
  return {
    wakeIn,
    stop: () => {
      isStopped = true
      clearTimeout(timer)
      return periodic.stop()
    },
  }
}
