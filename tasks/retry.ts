import type { Database, Queries } from '../sql/db.ts'
import { Failure, fail } from '../sql/errors.ts'
import { jobToRetry, linkRetry, retryOf } from '../sql/jobs/retry.ts'
import { enqueue, type JobSettings, type TaskFinder } from './task.ts'

/** Who retries a job: admins may retry any, others only their own. */
export interface Retrier {
  readonly ownerId: number | null
  readonly isAdmin: boolean
}

/** How it is retried: `taskNamed` finds the tasks of this version. */
export interface RetryOptions {
  readonly taskNamed: TaskFinder
  readonly requestId: string | null
  readonly settings: JobSettings
}

/**
 * Retries a failed job as a new job with the same work and owner: the failed one stays as it ended, so its watchers see
 * one end only. A second call returns the same new job. Returns the id of the job that does the work.
 *
 * @throws fail('job.missing'), fail('auth.forbidden'), fail('job.not_failed'); fail('job.not_runnable') when its task
 *   or the form of its payload is gone.
 */
export async function retryJob(
  tx: Queries,
  id: string,
  who: Retrier,
  { taskNamed, ...options }: RetryOptions,
): Promise<string> {
  const failed = await tx.maybeOne(jobToRetry(id))
  if (failed === null) throw fail('job.missing')
  if (!who.isAdmin && (failed.owner_id === null || failed.owner_id !== who.ownerId))
    throw fail('auth.forbidden', { roles: 'admin' })
  if (failed.status !== 'failed') throw fail('job.not_failed', { status: failed.status })
  const known = await tx.maybeOne(retryOf(id))
  if (known !== null) return known.id
  const task = taskOf(taskNamed, failed.name)
  const payload = task?.payload.safeParse(failed.payload)
  if (task === null || !payload?.success) throw fail('job.not_runnable')
  const { jobId, joined } = await enqueue(tx, task, payload.data, { ownerId: failed.owner_id, ...options })
  // A job that it joined was already under way and is not a retry of this one.
  if (!joined) await tx.run(linkRetry(jobId, id))
  return jobId
}

/**
 * Retries failed jobs for an admin, each in a transaction of its own. The ids of the jobs that do the work: none for one that
 * this version cannot run, or that has changed or been removed meanwhile.
 */
export async function retryJobs(
  db: Database,
  ids: readonly string[],
  options: RetryOptions,
): Promise<readonly string[]> {
  const who = { ownerId: null, isAdmin: true }
  const one = (id: string): Promise<string | null> =>
    db
      .transaction((tx) => retryJob(tx, id, who, options))
      .catch((error) => {
        if (error instanceof Failure && error.code.startsWith('job.')) return null
        throw error
      })
  return (await Promise.all(ids.map(one))).filter((id) => id !== null)
}

function taskOf(taskNamed: TaskFinder, name: string) {
  try {
    return taskNamed(name)
  } catch {
    return null
  }
}
