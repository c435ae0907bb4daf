import type { Database, Queries } from '../sql/db.ts'
import { Failure, fail } from '../sql/errors.ts'
import { enqueueJobs, type JobSpec } from '../sql/jobs/jobs.ts'
import { linkRetries, listRetries, lockJobsToRetry, type RetriedJob } from '../sql/jobs/retry.ts'
import { type DeclaredTask, listDeclaredTasks } from '../sql/worker-queues/tasks.ts'
import {
  buildJobSpecs,
  type JobSettings,
  type JobTerms,
  MAX_LIMIT,
  type TaskDefinition,
  type TaskFinder,
} from './task.ts'
import { defineDeclared } from './worker-queues/declared.ts'
import { formatJobName, isWorkerJob, parseJobName } from './worker-queues/names.ts'

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
 * @throws fail('job.not_retryable') if the task refuses retries.
 */
export async function retryJob(
  tx: Queries,
  id: string,
  retrier: RetryCaller,
  options: RetryOptions,
): Promise<string> {
  const retried = (await retrySet(tx, [id], retrier, options)).get(id) ?? fail('job.missing')
  if (typeof retried !== 'string') throw retried
  return retried
}

/**
 * Retries failed jobs, all in one transaction. Returns the ids of the new jobs, or of the jobs that they joined. Skips
 * jobs that this version cannot run, those of others, and jobs that were changed or removed in the meantime.
 *
 * @throws fail('quota.waiting_jobs') if the new jobs would exceed their owner's quota. Then none is retried.
 */
export async function retryJobs(
  db: Database,
  ids: readonly string[],
  retrier: RetryCaller,
  options: RetryOptions,
): Promise<readonly string[]> {
  const retried = await db.transaction((tx) => retrySet(tx, ids, retrier, options))
  return [...retried.values()].filter((result) => typeof result === 'string')
}

/** Retries those of the jobs that it can. Returns the id of the retry, or the reason for none, of each that exists. */
async function retrySet(
  tx: Queries,
  ids: readonly string[],
  retrier: RetryCaller,
  options: RetryOptions,
): Promise<ReadonlyMap<string, string | Failure>> {
  const jobs = new Map((await tx.any(lockJobsToRetry(ids))).map((job) => [job.id, job]))
  const existing = new Map((await tx.any(listRetries(ids))).map(({ id, retry_of }) => [retry_of, id]))
  const declared = await findDeclared(tx, [...jobs.values()])
  const results = new Map<string, string | Failure>()
  const specs: JobSpec[] = []
  const failedIds: string[] = []
  for (const id of ids) {
    const job = jobs.get(id)
    if (job === undefined) continue
    const result = existing.get(id) ?? findRefusal(job, retrier) ?? buildRetry(job, declared, options)
    if (typeof result === 'string' || result instanceof Failure) {
      results.set(id, result)
    } else {
      specs.push(result)
      failedIds.push(id)
    }
  }
  if (specs.length === 0) return results
  const added = await tx.any(enqueueJobs(specs, options.settings.quotas.waiting_jobs))
  for (const [i, { job_id }] of added.entries()) results.set(failedIds[i]!, job_id)
  // A joined job existed before, so it is not a retry.
  const isNew = (_: unknown, i: number): boolean => !added[i]!.joined
  await tx.run(
    linkRetries(
      specs.filter(isNew).map(({ id }) => id),
      failedIds.filter(isNew),
    ),
  )
  return results
}

function findRefusal({ owner_id, status }: RetriedJob, retrier: RetryCaller): Failure | null {
  if (!retrier.isAdmin && (owner_id === null || owner_id !== retrier.ownerId))
    return fail('auth.forbidden', { roles: 'admin' })
  return status === 'failed' ? null : fail('job.not_failed', { status })
}

/** Tasks of worker queues by the name and the owner of a job. */
export type DeclaredByJob = ReadonlyMap<string, DeclaredTask>

/** Finds the tasks of those jobs that belong to worker queues, if their owners may use these. */
export async function findDeclared(tx: Queries, jobs: readonly RetriedJob[]): Promise<DeclaredByJob> {
  const wanted = jobs.filter(({ name }) => isWorkerJob(name))
  if (wanted.length === 0) return new Map()
  const rows = await tx.any(
    listDeclaredTasks(wanted.map(({ name, owner_id }) => ({ ...parseJobName(name), owner: owner_id }))),
  )
  return new Map(
    rows
      .filter(({ is_declared, is_open }) => is_declared || is_open)
      .map((row) => [keyOf(formatJobName(row.queue, row.name), row.owner), row]),
  )
}

const keyOf = (name: string, owner: number | null): string => `${name} ${owner}`

/** Returns the job to add, with the key and the priority of the failed one, or a failure if this version cannot run it. */
export function buildRetry(
  { name, payload, owner_id: ownerId, key, mailbox_limit: limit, priority }: RetriedJob,
  declared: DeclaredByJob,
  { findTask, requestId, settings }: RetryOptions,
): JobSpec | Failure {
  const row = declared.get(keyOf(name, ownerId))
  const task = isWorkerJob(name)
    ? row === undefined
      ? null
      : defineDeclared(row, key !== null)
    : (findTaskOrNull(findTask, name) as TaskDefinition<unknown, unknown> | null)
  const parsed = task?.payload.safeParse(payload)
  if (task === null || !parsed?.success) return fail('job.not_runnable')
  if (task.refusesRetry === true) return fail('job.not_retryable')
  const terms: JobTerms = {
    ...(key === null ? {} : { key, limit: limit ?? MAX_LIMIT }),
    ...(priority === null ? {} : { priority: priority === 1 ? 'low' : 'high' }),
  }
  return buildJobSpecs(task, [parsed.data], { ownerId, requestId, settings, terms })[0]!
}

function findTaskOrNull(findTask: TaskFinder, name: string) {
  try {
    return findTask(name)
  } catch {
    return null
  }
}
