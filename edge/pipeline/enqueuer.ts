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

export function createEnqueuer({ db, publisher, waitingQuota }: EnqueuerOptions): Enqueuer {
  const waiting: PendingRequest[] = []
  // Requests of a failed batch, retried one by one. A bad job, such as one of a deleted account, then fails only its
  // own request.
  const isolated: PendingRequest[] = []
  let flushing = false

  const notifyQueued = (rows: readonly EnqueuedJob[]): void => {
    for (const { job_id } of rows.slice(0, MAX_ANNOUNCED_JOBS)) publisher.notify(job_id, 'later')
  }

  const addNow = async (specs: readonly JobSpec[]): Promise<readonly EnqueuedJob[]> => {
    const rows = await db.any(enqueueJobs(specs, waitingQuota))
    notifyQueued(rows)
    return rows
  }

  const addBatch = async (batch: readonly PendingRequest[]): Promise<void> => {
    try {
      const rows = await addNow(batch.flatMap(({ specs }) => specs))
      let from = 0
      for (const { specs, resolve } of batch) {
        resolve(rows.slice(from, from + specs.length))
        from += specs.length
      }
    } catch (error) {
      // A database failure affects every request, so do not retry any. One by one, each retry would wait for a timeout,
      // and add jobs long after its client has left. If only the reply was lost, the retry would add the jobs twice.
      if (error instanceof Failure && error.code.startsWith('database.'))
        for (const { reject } of [...batch, ...isolated.splice(0), ...waiting.splice(0)]) reject(error)
      else if (batch.length > 1) isolated.push(...batch)
      else batch[0]!.reject(error)
    }
  }

  const flush = async (): Promise<void> => {
    while (isolated.length + waiting.length > 0) {
      const batch = isolated.length > 0 ? isolated : waiting
      await addBatch(batch.splice(0, batch === isolated ? 1 : countBatchRequests(waiting)))
    }
    flushing = false
  }

  return {
    add: (specs, tx) => {
      if (tx !== undefined) return addInTx(tx, specs, waitingQuota, notifyQueued)
      if (specs.length > MAX_SHARED_JOBS) return addNow(specs)
      return new Promise((resolve, reject) => {
        waiting.push({ specs, resolve, reject })
        if (flushing) return
        flushing = true
        // Runs after all requests of this event loop iteration.
        setImmediate(flush)
      })
    },
  }
}

async function addInTx(
  tx: Transaction,
  specs: readonly JobSpec[],
  waitingQuota: number,
  onCommit: (rows: readonly EnqueuedJob[]) => void,
): Promise<readonly EnqueuedJob[]> {
  const rows = await tx.any(enqueueJobs(specs, waitingQuota))
  tx.afterCommit(() => onCommit(rows))
  return rows
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
