import { setTimeout as delay } from 'node:timers/promises'
import { deriveChildId } from '../../sql/ids.ts'
import { getLoadTestProgress, getLoadTestTimes } from '../../sql/jobs/tasks.ts'
import type { TaskContext } from '../context.ts'
import { enqueueMany } from '../task.ts'
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

// The interval grows with the load, because each poll reads one row per task.
const MIN_POLL_INTERVAL_MS = 100
const POLL_INTERVAL_MS_PER_TASK = 0.05

/** Runs `load_test_orchestrator`. */
export async function run(ctx: TaskContext, payload: LoadPayload): Promise<LoadResult> {
  const { task_name, queue_type, count } = payload
  const ids = Array.from({ length: count }, (_, n) => deriveChildId(ctx.job.id, n))
  await enqueueOnce(ctx, payload, ids)
  const { completed, failed, cancelled } = await waitUntilFinished(ctx, ids)
  const { seconds, latency, start } = await ctx.db.one(getLoadTestTimes(ids))
  return {
    task_name,
    queue_type,
    count,
    completed,
    failed,
    cancelled,
    seconds,
    per_second: seconds > 0 ? Math.round(((completed + failed) / seconds) * 10) / 10 : 0,
    latency_ms: latency,
    start_ms: start,
  }
}

/** Adds the jobs of a load. All attempts use the same ids, so a retry adds no job twice. */
async function enqueueOnce(
  ctx: TaskContext,
  { task_name, queue_type, args }: LoadPayload,
  ids: readonly string[],
): Promise<void> {
  ctx.reportProgress('Adding the tasks', 0, ids.length)
  await ctx.runFenced(async (tx) => {
    if ((await tx.one(getLoadTestProgress(ids))).known > 0) return
    await enqueueMany(
      tx,
      findLoadTask(task_name, queue_type),
      ids.map(() => args),
      {
        ownerId: ctx.job.ownerId,
        requestId: ctx.job.requestId,
        settings: ctx.settings,
        idOf: (n) => ids[n]!,
      },
    )
  })
}

async function waitUntilFinished(ctx: TaskContext, ids: readonly string[]) {
  for (let before = -1; ; ) {
    const state = await ctx.db.one(getLoadTestProgress(ids))
    const done = state.completed + state.failed + state.cancelled
    if (done !== before) ctx.reportProgress(`${done} of ${ids.length} tasks have ended`, done, ids.length)
    // Compare with the number of existing jobs, because some may have been pruned with their results.
    if (done === state.known) return state
    before = done
    await delay(Math.max(MIN_POLL_INTERVAL_MS, ids.length * POLL_INTERVAL_MS_PER_TASK), undefined, {
      signal: ctx.signal,
    })
  }
}
