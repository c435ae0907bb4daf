import type { Database, Transaction } from '../../sql/db.ts'
import { Failure } from '../../sql/errors.ts'
import { type EnqueuedJob, enqueueJobs, type JobSpec } from '../../sql/jobs.ts'
import type { Publisher } from '../../sql/notify.ts'

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

interface PendingRequest {
  readonly specs: readonly JobSpec[]
  resolve(rows: readonly EnqueuedJob[]): void
  reject(error: unknown): void
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
  readonly #waiting: PendingRequest[] = []
  // Requests of a failed batch, retried one by one. A bad job, such as one of a deleted account, then fails only its
  // own request.
  readonly #isolated: PendingRequest[] = []
  #isFlushing = false

  constructor(options: EnqueuerOptions) {
    this.#options = options
  }

  async add(specs: readonly JobSpec[], tx?: Transaction): Promise<readonly EnqueuedJob[]> {
    if (tx !== undefined) {
      const rows = await this.#insert(tx, specs)
      tx.afterCommit(() => this.#notifyQueued(rows))
      return rows
    }
    return specs.length > MAX_SHARED_JOBS ? this.#addNow(specs) : this.#addTogether(specs)
  }

  #addTogether(specs: readonly JobSpec[]): Promise<readonly EnqueuedJob[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ specs, resolve, reject })
      if (this.#isFlushing) return
      this.#isFlushing = true
      // Runs after all requests of this event loop iteration.
      setImmediate(() => this.#flush())
    })
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

  async #flush(): Promise<void> {
    while (this.#isolated.length + this.#waiting.length > 0) {
      const isolated = this.#isolated.splice(0, 1)
      await this.#addBatch(
        isolated.length > 0 ? isolated : this.#waiting.splice(0, countBatchRequests(this.#waiting)),
      )
    }
    this.#isFlushing = false
  }

  async #addBatch(batch: readonly PendingRequest[]): Promise<void> {
    try {
      const rows = await this.#addNow(batch.flatMap(({ specs }) => specs))
      let from = 0
      for (const { specs, resolve } of batch) {
        resolve(rows.slice(from, from + specs.length))
        from += specs.length
      }
    } catch (error) {
      // A database failure affects every request, so do not retry any. One by one, each retry would wait for a timeout,
      // and add jobs long after its client has left. If only the reply was lost, the retry would add the jobs twice.
      if (error instanceof Failure && error.code.startsWith('database.'))
        for (const { reject } of [...batch, ...this.#isolated.splice(0), ...this.#waiting.splice(0)])
          reject(error)
      else if (batch.length > 1) this.#isolated.push(...batch)
      else batch[0]!.reject(error)
    }
  }
}

/** Returns the number of leading requests that fit into one statement. */
function countBatchRequests(waiting: readonly PendingRequest[]): number {
  let count = 0
  const next = waiting.findIndex(({ specs }) => {
    count += specs.length
    return count > MAX_BATCH_JOBS
  })
  return next < 0 ? waiting.length : next
}
