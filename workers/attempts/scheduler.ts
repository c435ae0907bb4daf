import type { Database } from '../../sql/db.ts'
import { scheduleJobs } from '../../sql/jobs.ts'
import type { Log } from '../../tasks/log.ts'

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

export function startScheduler(db: Database, log: Log): Scheduler {
  return new JobScheduler(db, log)
}

class JobScheduler implements Scheduler {
  readonly #db: Database
  readonly #log: Log
  #timer: NodeJS.Timeout | undefined
  #nextAt = Number.POSITIVE_INFINITY
  #running: Promise<void> | null = null
  #isStopped = false

  constructor(db: Database, log: Log) {
    this.#db = db
    this.#log = log
    this.wakeIn(0)
  }

  wakeIn(ms: number): void {
    const at = performance.now() + Math.max(ms, 0)
    if (this.#isStopped || at >= this.#nextAt) return
    this.#nextAt = at
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#running ??= this.#run().finally(() => {
        this.#running = null
      })
    }, ms).unref()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#running
  }

  async #run(): Promise<void> {
    this.#nextAt = Number.POSITIVE_INFINITY
    try {
      const { moved, next_seconds: seconds } = await this.#db.one(scheduleJobs(BATCH))
      const waitMs = moved === BATCH ? 0 : Math.max((seconds ?? Number.POSITIVE_INFINITY) * 1000, MIN_WAIT_MS)
      this.wakeIn(Math.min(waitMs, MAX_WAIT_MS))
    } catch (error) {
      this.#log.warn({ err: error }, 'Failed to schedule jobs')
      this.wakeIn(MAX_WAIT_MS)
    }
  }
}
