import type { Publisher } from '../../../sql/connections/notify.ts'
import type { Database, Transaction } from '../../../sql/db.ts'
import { type EnqueuedJob, enqueueJobs, type JobSpec } from '../../../sql/jobs/jobs.ts'
import { type Batcher, createBatcher } from './batcher.ts'

/**
 * Adds the jobs of concurrent requests in one statement. A commit that adds jobs sends a NOTIFY, and PostgreSQL runs
 * such commits one at a time in the whole cluster. Throughput therefore depends on the number of jobs per commit.
 */
export interface Enqueuer {
  /**
   * Resolves with one row per spec, in order, after the commit. With `tx` it adds the jobs in that transaction instead,
   * and notifies listeners after its commit.
   */
  add(specs: readonly JobSpec[], tx?: Transaction): Promise<readonly EnqueuedJob[]>
}

// A request with more jobs gets its own statement, so that other requests do not wait for it.
const MAX_SHARED_JOBS = 50
// Maximum number of jobs per statement. Larger batches gain nothing and delay the first request.
const MAX_BATCH_JOBS = 500
// Maximum number of jobs announced as queued. Watchers of all jobs see each other job when it starts.
const MAX_ANNOUNCED_JOBS = 1000

interface EnqueuerOptions {
  readonly db: Pick<Database, 'any'>
  readonly publisher: Pick<Publisher, 'notify'>
  /** Maximum number of waiting jobs per owner; 0 means unlimited. */
  readonly waitingQuota: number
}

export function createEnqueuer(options: EnqueuerOptions): Enqueuer {
  return new BatchedEnqueuer(options)
}

class BatchedEnqueuer implements Enqueuer {
  readonly #options: EnqueuerOptions
  readonly #batcher: Batcher<readonly JobSpec[], readonly EnqueuedJob[]>

  constructor(options: EnqueuerOptions) {
    this.#options = options
    this.#batcher = createBatcher({
      max: MAX_BATCH_JOBS,
      sizeOf: (specs) => specs.length,
      runAll: async (requests) => {
        const rows = await this.#addNow(requests.flat())
        let end = 0
        return requests.map(({ length }) => {
          end += length
          return rows.slice(end - length, end)
        })
      },
    })
  }

  async add(specs: readonly JobSpec[], tx?: Transaction): Promise<readonly EnqueuedJob[]> {
    if (tx !== undefined) {
      const rows = await this.#insert(tx, specs)
      tx.afterCommit(() => this.#notifyQueued(rows))
      return rows
    }
    return specs.length > MAX_SHARED_JOBS ? this.#addNow(specs) : this.#batcher.run(specs)
  }

  #insert(db: EnqueuerOptions['db'], specs: readonly JobSpec[]): Promise<readonly EnqueuedJob[]> {
    return db.any(enqueueJobs(specs, this.#options.waitingQuota))
  }

  async #addNow(specs: readonly JobSpec[]): Promise<readonly EnqueuedJob[]> {
    const rows = await this.#insert(this.#options.db, specs)
    this.#notifyQueued(rows)
    return rows
  }

  #notifyQueued(rows: readonly EnqueuedJob[]): void {
    for (const { job_id } of rows.slice(0, MAX_ANNOUNCED_JOBS))
      this.#options.publisher.notify(job_id, 'later')
  }
}
