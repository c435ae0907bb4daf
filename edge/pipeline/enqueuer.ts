import type { Database, Transaction } from '../../sql/db.ts'
import { Failure } from '../../sql/errors.ts'
import { type Enqueued, enqueueJobs, type JobSpec } from '../../sql/jobs.ts'
import type { Publisher } from '../../sql/notify.ts'

/**
 * Adds the jobs of concurrent requests in one statement. A commit that adds jobs notifies, and such commits run one at a
 * time in the whole cluster: throughput depends on how many jobs each of them adds.
 */
export interface Enqueuer {
  /**
   * Resolves when the jobs are committed and their notification is due: one row per spec, in order. With a transaction of
   * the caller, they are added in it, and listeners are notified after its commit.
   */
  add(specs: readonly JobSpec[], tx?: Transaction): Promise<readonly Enqueued[]>
}

interface Request {
  readonly specs: readonly JobSpec[]
  resolve(rows: readonly Enqueued[]): void
  reject(error: unknown): void
}

// A request that adds more than this gets a statement of its own, so that no other request waits for it.
const FEW = 50
// The most that one statement adds: more gains nothing, and the first request would wait for the last.
const MAX_TOGETHER = 500
// How many are announced; watchers of all jobs see any others when they start.
const MAX_ANNOUNCED = 1000

interface Parts {
  readonly db: Pick<Database, 'any'>
  readonly publisher: Pick<Publisher, 'notify'>
  /** The setting; 0: none. */
  readonly waitingQuota: number
}

export function createEnqueuer({ db, publisher, waitingQuota }: Parts): Enqueuer {
  const waiting: Request[] = []
  // Those of a refused statement: one may be the reason, such as a job of a deleted account, and the others must not fail with it.
  const alone: Request[] = []
  let sending = false

  const announce = (rows: readonly Enqueued[]): void => {
    for (const { job_id } of rows.slice(0, MAX_ANNOUNCED)) publisher.notify(job_id, 'later')
  }

  const addNow = async (specs: readonly JobSpec[]): Promise<readonly Enqueued[]> => {
    const rows = await db.any(enqueueJobs(specs, waitingQuota))
    announce(rows)
    return rows
  }

  const addWithin = async (tx: Transaction, specs: readonly JobSpec[]): Promise<readonly Enqueued[]> => {
    const rows = await tx.any(enqueueJobs(specs, waitingQuota))
    tx.afterCommit(() => announce(rows))
    return rows
  }

  const addTogether = async (together: readonly Request[]): Promise<void> => {
    try {
      const rows = await addNow(together.flatMap(({ specs }) => specs))
      let from = 0
      for (const { specs, resolve } of together) {
        resolve(rows.slice(from, from + specs.length))
        from += specs.length
      }
    } catch (error) {
      // The database is the reason. Tried alone, each would wait for its limit behind all before it, its job would be added long
      // after its client had left, and one that had been added, though no answer came, would be taken for another.
      if (error instanceof Failure && error.code.startsWith('database.'))
        for (const { reject } of [...together, ...alone.splice(0), ...waiting.splice(0)]) reject(error)
      else if (together.length > 1) alone.push(...together)
      else together[0]!.reject(error)
    }
  }

  const send = async (): Promise<void> => {
    while (alone.length + waiting.length > 0)
      await addTogether(alone.length > 0 ? alone.splice(0, 1) : waiting.splice(0, fitting(waiting)))
    sending = false
  }

  return {
    add: (specs, tx) => {
      if (tx !== undefined) return addWithin(tx, specs)
      if (specs.length > FEW) return addNow(specs)
      return new Promise((resolve, reject) => {
        waiting.push({ specs, resolve, reject })
        if (sending) return
        sending = true
        // After all requests that arrived in this turn of the event loop.
        setImmediate(send)
      })
    },
  }
}

/** How many of the first requests one statement adds. */
function fitting(waiting: readonly Request[]): number {
  let count = 0
  const next = waiting.findIndex(({ specs }) => {
    count += specs.length
    return count > MAX_TOGETHER
  })
  return next < 0 ? waiting.length : next
}
