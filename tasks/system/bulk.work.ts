import { notifyJobChanges } from '../../sql/connections/notify.ts'
import { cancelJobs } from '../../sql/jobs/jobs.ts'
import {
  deleteEndedJobs,
  type JobFilter,
  type JobSelection,
  listSelectedIds,
  MAX_BULK_JOBS,
} from '../../sql/jobs/search.ts'
import type { TaskContext } from '../context.ts'

interface JobsAction {
  readonly action: 'retry' | 'cancel' | 'delete'
  readonly filter: JobFilter
  readonly ids?: readonly string[] | undefined
}

interface JobsActionResult {
  readonly done: number
  readonly refused: number
  readonly more: boolean
}

// Number of jobs per progress report.
const BATCH_SIZE = 100

const PROGRESS_LABELS = { retry: 'Retrying jobs', cancel: 'Cancelling jobs', delete: 'Deleting jobs' }

const ELIGIBLE_STATES = {
  retry: ['failed'],
  cancel: ['scheduled', 'available', 'running'],
  delete: ['done', 'failed', 'cancelled'],
} as const satisfies Record<JobsAction['action'], JobSelection['states']>

/** Runs `jobs.bulk`. */
export async function run(
  ctx: TaskContext,
  { action, filter, ids: only }: JobsAction,
): Promise<JobsActionResult> {
  const selection: JobSelection = {
    filter,
    states: ELIGIBLE_STATES[action],
    before: ctx.job.id,
    unretried: action === 'retry',
    only,
  }
  // Select the ids in a single query, so that jobs that fail during this run are not retried and the table is read only
  // once.
  const ids = (await ctx.db.any(listSelectedIds(selection, null, MAX_BULK_JOBS + 1))).map(({ id }) => id)
  const total = Math.min(ids.length, MAX_BULK_JOBS)
  let done = 0
  for (let start = 0; start < total; start += BATCH_SIZE) {
    ctx.signal.throwIfAborted()
    ctx.reportProgress(PROGRESS_LABELS[action], start, total)
    done += await ACTIONS[action](ctx, ids.slice(start, Math.min(start + BATCH_SIZE, total)))
  }
  return { done, refused: total - done, more: ids.length > MAX_BULK_JOBS }
}

/** Actions by name. Each returns the number of jobs that it changed. */
const ACTIONS: Readonly<
  Record<JobsAction['action'], (ctx: TaskContext, ids: readonly string[]) => Promise<number>>
> = {
  async retry({ db, retryJobs }, ids) {
    const retried = await retryJobs(ids)
    await db.run(notifyJobChanges(retried))
    return retried.length
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
