import type { Database, Queries } from '../sql/db.ts'
import { Failure, fail } from '../sql/errors.ts'
import { findRetry, linkRetry, lockJobToRetry } from '../sql/jobs/retry.ts'
import { enqueue, type JobSettings, type TaskFinder } from './task.ts'

/** Caller of a retry. Admins may retry any job, others only their own. */
export interface RetryCaller {
  readonly ownerId: number | null
  readonly isAdmin: boolean
}

/** Options of a retry; `findTask` finds the tasks of this version. */
export interface RetryOptions {
  readonly findTask: TaskFinder
  readonly requestId: string | null
  readonly settings: JobSettings
}

/**
 * Retries a failed job as a new job with the same payload and owner. The failed job stays failed, so its subscribers
 * see only one outcome. Returns the id of the new job, or of the job that it joined. If a new job exists already,
 * returns its id.
 *
 * @throws fail('job.missing'), fail('auth.forbidden'), fail('job.not_failed').
 * @throws fail('job.not_runnable') if this version lacks the task or rejects the payload.
 */
export async function retryJob(
  tx: Queries,
  id: string,
  retrier: RetryCaller,
  { findTask, ...options }: RetryOptions,
): Promise<string> {
  const failed = await tx.maybeOne(lockJobToRetry(id))
  if (failed === null) throw fail('job.missing')
  if (!retrier.isAdmin && (failed.owner_id === null || failed.owner_id !== retrier.ownerId))
    throw fail('auth.forbidden', { roles: 'admin' })
  if (failed.status !== 'failed') throw fail('job.not_failed', { status: failed.status })
  const existing = await tx.maybeOne(findRetry(id))
  if (existing !== null) return existing.id
  const task = findTaskOrNull(findTask, failed.name)
  const payload = task?.payload.safeParse(failed.payload)
  if (task === null || !payload?.success) throw fail('job.not_runnable')
  const { jobId, joined } = await enqueue(tx, task, payload.data, { ownerId: failed.owner_id, ...options })
  // A joined job existed before, so it is not a retry of this one.
  if (!joined) await tx.run(linkRetry(jobId, id))
  return jobId
}

/**
 * Retries failed jobs for an admin, in one transaction each. Returns the ids of the new jobs, or of the jobs that they
 * joined. Skips jobs that this version cannot run, and jobs that were changed or removed in the meantime.
 */
export async function retryJobs(
  db: Database,
  ids: readonly string[],
  options: RetryOptions,
): Promise<readonly string[]> {
  const retrier = { ownerId: null, isAdmin: true }
  const retryOne = (id: string): Promise<string | null> =>
    db
      .transaction((tx) => retryJob(tx, id, retrier, options))
      .catch((error) => {
        if (error instanceof Failure && error.code.startsWith('job.')) return null
        throw error
      })
  return (await Promise.all(ids.map(retryOne))).filter((id) => id !== null)
}

function findTaskOrNull(findTask: TaskFinder, name: string) {
  try {
    return findTask(name)
  } catch {
    return null
  }
}
