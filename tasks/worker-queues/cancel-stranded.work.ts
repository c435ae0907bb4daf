import { notifyJobChanges } from '../../sql/connections/notify.ts'
import { cancelJobs, endAttempts } from '../../sql/jobs/jobs.ts'
import { listStrandedJobs } from '../../sql/worker-queues/queues.ts'
import type { TaskContext } from '../context.ts'
import { runInBatches } from '../system/batches.ts'

// Small enough that no transaction holds its locks for long.
const BATCH_SIZE = 500

/** Runs `system.cancel_stranded`. */
export async function run(
  ctx: Pick<TaskContext, 'db' | 'signal'>,
  { queue }: { readonly queue: string | null },
): Promise<{ cancelled: number }> {
  const cancelled = await runInBatches(ctx.signal, BATCH_SIZE, async () => {
    const jobs = await ctx.db.any(listStrandedJobs(queue, BATCH_SIZE))
    if (jobs.length > 0) await ctx.db.run(notifyJobChanges(await cancelBatch(ctx, jobs)))
    return { count: jobs.length }
  })
  return { cancelled }
}

/** Cancels jobs that wait, and ends those that run. Returns the ids of all jobs that have changed. */
async function cancelBatch(
  { db }: Pick<TaskContext, 'db'>,
  jobs: readonly { readonly id: string; readonly attempt: number; readonly is_running: boolean }[],
): Promise<readonly string[]> {
  const changed = await db.any(cancelJobs(jobs.map(({ id }) => id)))
  const running = jobs.filter((job) => job.is_running)
  const ended = await endAttempts(
    db,
    running.map(({ id, attempt }) => ({ id, attempt, outcome: 'cancelled' })),
  )
  return [...new Set([...changed.map(({ id }) => id), ...ended])]
}
