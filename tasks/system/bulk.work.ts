import { notifyJobChanges } from '../../sql/connections/notify.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { cancelJobs } from '../../sql/jobs/jobs.ts'
import {
  deleteEndedJobs,
  type JobFilter,
  type JobSelection,
  listSelectedIds,
  MAX_BULK_JOBS,
} from '../../sql/jobs/search.ts'
import type { TaskContext } from '../context.ts'

interface JobsActionPayload {
  readonly action: 'retry' | 'cancel' | 'delete'
  readonly filter: JobFilter
  readonly ids?: readonly string[] | undefined
  readonly owners: 'any' | 'own'
}

interface JobsActionResult {
  readonly done: number
  readonly refused: number
  readonly more: boolean
}

type Action = JobsActionPayload['action']

// Number of jobs per transaction and progress report. A transaction locks a mailbox for each job that has a limit.
const BATCH_SIZE = 1000

const PROGRESS_LABELS = { retry: 'Retrying jobs', cancel: 'Cancelling jobs', delete: 'Deleting jobs' }

const ELIGIBLE_STATES = {
  retry: ['failed'],
  cancel: ['waiting', 'scheduled', 'available', 'running'],
  delete: ['done', 'failed', 'cancelled'],
} as const satisfies Record<Action, JobSelection['states']>

/** Restricts the filter to the jobs of this job's owner, unless it may change those of any owner. */
function restrictFilter(
  filter: JobFilter,
  owners: JobsActionPayload['owners'],
  ownerId: number | null,
): JobFilter {
  if (owners === 'any') return filter
  if (ownerId === null || (filter.owner_id ?? ownerId) !== ownerId)
    throw fail('auth.forbidden', { roles: 'admin' })
  return { ...filter, owner_id: ownerId }
}

/** Runs `jobs.bulk`. */
export async function run(
  ctx: TaskContext,
  { action, filter, ids: only, owners }: JobsActionPayload,
): Promise<JobsActionResult> {
  const selection: JobSelection = {
    filter: restrictFilter(filter, owners, ctx.job.ownerId),
    states: ELIGIBLE_STATES[action],
    before: ctx.job.id,
    unretried: action === 'retry',
    only,
  }
  // Select the ids in a single query, so that jobs that fail during this run are not retried and the table is read only
  // once.
  const found = (await ctx.db.any(listSelectedIds(selection, null, MAX_BULK_JOBS + 1))).map(({ id }) => id)
  const total = Math.min(found.length, MAX_BULK_JOBS)
  const oldest = found.slice(0, total)
  // The newest first, because cancelling a batch or a dependency also cancels newer jobs, however many.
  const ids = action === 'cancel' ? oldest.toReversed() : oldest
  let done = 0
  for (let start = 0; start < total; start += BATCH_SIZE) {
    ctx.signal.throwIfAborted()
    ctx.reportProgress(PROGRESS_LABELS[action], start, total)
    done += await ACTIONS[action](ctx, ids.slice(start, start + BATCH_SIZE), owners)
  }
  return { done, refused: total - done, more: found.length > MAX_BULK_JOBS }
}

/** Retries jobs, in smaller sets if the quota of waiting jobs has no room for all. @throws if there is none for one. */
async function retryFitting(
  ctx: TaskContext,
  ids: readonly string[],
  owners: JobsActionPayload['owners'],
): Promise<readonly string[]> {
  try {
    const retried = await ctx.retryJobs(ids, owners)
    await ctx.db.run(notifyJobChanges(retried))
    return retried
  } catch (error) {
    if (!(error instanceof Failure && error.code === 'quota.waiting_jobs') || ids.length === 1) throw error
    const middle = Math.ceil(ids.length / 2)
    const first = await retryFitting(ctx, ids.slice(0, middle), owners)
    return [...first, ...(await retryFitting(ctx, ids.slice(middle), owners))]
  }
}

/** Actions by name. Each returns the number of jobs that it changed. */
const ACTIONS: Readonly<
  Record<
    Action,
    (ctx: TaskContext, ids: readonly string[], owners: JobsActionPayload['owners']) => Promise<number>
  >
> = {
  async retry(ctx, ids, owners) {
    return (await retryFitting(ctx, ids, owners)).length
  },

  async cancel({ db }, ids) {
    const changed = new Set((await db.any(cancelJobs(ids))).map(({ id }) => id))
    await db.run(notifyJobChanges([...changed]))
    return ids.filter((id) => changed.has(id)).length
  },

  async delete({ db }, ids) {
    return (await db.any(deleteEndedJobs(ids))).length
  },
}
