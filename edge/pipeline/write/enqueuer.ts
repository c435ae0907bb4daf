import type { Database, Transaction } from '../../../sql/db.ts'
import { Failure } from '../../../sql/errors.ts'
import { type EnqueuedJob, enqueueJobs, type JobSpec } from '../../../sql/jobs/jobs.ts'

/**
 * Adds the jobs of concurrent requests in one statement. A commit that adds jobs sends a NOTIFY, and PostgreSQL runs
 * such commits one at a time in the whole cluster. Throughput therefore depends on the number of jobs per commit.
 */
export interface Enqueuer {
  /** Resolves with one row per spec, in order, after the commit. With `tx` it adds the jobs in that transaction instead. */
  add(specs: readonly JobSpec[], tx?: Transaction): Promise<readonly EnqueuedJob[]>
}

// A request with more jobs gets its own statement, so that other requests do not wait for it.
const MAX_SHARED_JOBS = 50
// Maximum number of jobs per statement. Larger batches gain nothing and delay the first request.
const MAX_BATCH_JOBS = 500

interface EnqueuerOptions {
  readonly db: Pick<Database, 'any'>
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
        const rows = await this.#insert(this.#options.db, requests.flat())
        let end = 0
        return requests.map(({ length }) => {
          end += length
          return rows.slice(end - length, end)
        })
      },
    })
  }

  async add(specs: readonly JobSpec[], tx?: Transaction): Promise<readonly EnqueuedJob[]> {
    if (tx !== undefined) return this.#insert(tx, specs)
    return specs.length > MAX_SHARED_JOBS ? this.#insert(this.#options.db, specs) : this.#batcher.run(specs)
  }

  #insert(db: EnqueuerOptions['db'], specs: readonly JobSpec[]): Promise<readonly EnqueuedJob[]> {
    return db.any(enqueueJobs(specs, this.#options.waitingQuota))
  }
}

/** Runs the work of concurrent requests together, so that they share a statement and a commit. */
export interface Batcher<T, R> {
  /** Resolves with the result of the item; rejects with the error of its batch. */
  run(item: T): Promise<R>
}

export interface BatcherOptions<T, R> {
  /** Runs the items of a batch; resolves with their results, in order. */
  readonly runAll: (items: readonly T[]) => Promise<readonly R[]>
  /** Maximum size of a batch. */
  readonly max: number
  /** Returns the size of an item; 1 by default. */
  readonly sizeOf?: (item: T) => number
}

interface Pending<T, R> {
  readonly item: T
  resolve(result: R): void
  reject(error: unknown): void
}

export function createBatcher<T, R>(options: BatcherOptions<T, R>): Batcher<T, R> {
  return new TurnBatcher(options)
}

class TurnBatcher<T, R> implements Batcher<T, R> {
  readonly #options: BatcherOptions<T, R>
  readonly #waiting: Pending<T, R>[] = []
  // Items of a failed batch, retried one by one. A bad item, such as a job of a deleted account, then fails only its own
  // request.
  readonly #isolated: Pending<T, R>[] = []
  #isFlushing = false

  constructor(options: BatcherOptions<T, R>) {
    this.#options = options
  }

  run(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (this.#isFlushing) return
      this.#isFlushing = true
      // Runs after all requests of this event loop iteration.
      setImmediate(() => this.#flush())
    })
  }

  async #flush(): Promise<void> {
    while (this.#isolated.length + this.#waiting.length > 0) {
      const isolated = this.#isolated.splice(0, 1)
      await this.#runBatch(isolated.length > 0 ? isolated : this.#waiting.splice(0, this.#countFitting()))
    }
    this.#isFlushing = false
  }

  /** Returns the number of leading items that fit into one batch. */
  #countFitting(): number {
    const { max, sizeOf = () => 1 } = this.#options
    let size = 0
    const next = this.#waiting.findIndex(({ item }) => {
      size += sizeOf(item)
      return size > max
    })
    return next < 0 ? this.#waiting.length : Math.max(next, 1)
  }

  async #runBatch(batch: readonly Pending<T, R>[]): Promise<void> {
    try {
      const results = await this.#options.runAll(batch.map(({ item }) => item))
      for (const [n, { resolve }] of batch.entries()) resolve(results[n]!)
    } catch (error) {
      // A database failure affects every request, so do not retry any. One by one, each retry would wait for a timeout,
      // and run long after its client has left. If only the reply was lost, the retry would repeat the work.
      if (error instanceof Failure && error.code.startsWith('database.'))
        for (const { reject } of [...batch, ...this.#isolated.splice(0), ...this.#waiting.splice(0)])
          reject(error)
      else if (batch.length > 1) this.#isolated.push(...batch)
      else batch[0]!.reject(error)
    }
  }
}
