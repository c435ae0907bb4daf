import { Failure } from '../../sql/errors.ts'
import { countBatchJobs } from '../../sql/jobs/batches.ts'
import { getLoadTestTimes } from '../../sql/jobs/tasks.ts'
import type { TaskContext } from '../context.ts'
import { enqueueMany, WaitForBatch } from '../task.ts'
import { findLoadTask } from './loads.ts'

interface LoadPayload {
  readonly task_name: string
  readonly queue_type: string
  readonly count: number
  readonly args: Record<string, unknown>
}

interface Percentiles {
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

interface LoadResult {
  readonly task_name: string
  readonly queue_type: string
  readonly count: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  readonly seconds: number
  readonly per_second: number
  readonly latency_ms: Percentiles | null
  readonly start_ms: Percentiles | null
}

/** Runs `load_test_orchestrator`: adds the load as its own batch, and runs again once that has ended. */
export async function run(ctx: TaskContext, payload: LoadPayload): Promise<LoadResult> {
  const { task_name, queue_type, count } = payload
  const load = await addOnce(ctx, payload).catch((error) => {
    // The job was cancelled before it could add its load. Its attempt ends as one that waits, which cancels it.
    throw error instanceof Failure && error.code === 'batch.closed' ? new WaitForBatch() : error
  })
  if (load.done + load.failed + load.cancelled < load.total) throw new WaitForBatch()
  const { seconds, latency, start } = await ctx.db.one(getLoadTestTimes(ctx.job.id))
  return {
    task_name,
    queue_type,
    count,
    completed: load.done,
    failed: load.failed,
    cancelled: load.cancelled,
    seconds,
    per_second: seconds > 0 ? Math.round(((load.done + load.failed) / seconds) * 10) / 10 : 0,
    latency_ms: latency,
    start_ms: start,
  }
}

/** Adds the jobs of the load, unless an earlier attempt has. Returns their numbers. */
function addOnce(ctx: TaskContext, { task_name, queue_type, count, args }: LoadPayload) {
  return ctx.runFenced(async (tx) => {
    const load = await tx.one(countBatchJobs(ctx.job.id))
    if (load.total > 0) return load
    await enqueueMany(tx, findLoadTask(task_name, queue_type), Array<typeof args>(count).fill(args), {
      ownerId: ctx.job.ownerId,
      requestId: ctx.job.requestId,
      settings: ctx.settings,
      terms: { batchId: ctx.job.id },
    })
    return { ...load, total: count }
  })
}
