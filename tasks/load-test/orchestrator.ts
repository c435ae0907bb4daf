import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { childId } from '../../sql/ids.ts'
import { loadState, loadTimes } from '../../sql/tasks.ts'
import type { TaskContext } from '../context.ts'
import { enqueueMany, type TaskDefinition } from '../task.ts'
import { cpuIntensive } from './cpu-intensive.ts'
import { failureTesting } from './failure-testing.ts'
import { ioSimulation } from './io-simulation.ts'
import { memoryOperations } from './memory-operations.ts'
import { NAMED_QUEUES, onNamedQueues, publicName } from './on-queues.ts'

const LOADS = [
  ioSimulation,
  cpuIntensive,
  memoryOperations,
  failureTesting,
] as unknown as readonly (readonly TaskDefinition<unknown, unknown>[])[]
const LOAD_NAMES = LOADS.map(([task]) => publicName(task!))

/** The most tasks that one load, or one request, may add. */
export const MOST_AT_ONCE = 10_000

const Payload = z
  .strictObject({
    task_name: z.enum(LOAD_NAMES).default('io_simulation_task'),
    queue_type: z.enum(NAMED_QUEUES).default('load_test'),
    count: z.int().min(1).max(MOST_AT_ONCE).default(100),
    args: z.record(z.string(), z.unknown()).default({}),
  })
  .superRefine(({ task_name, queue_type, args }, context) => {
    for (const issue of loadOf(task_name, queue_type).payload.safeParse(args).error?.issues ?? [])
      context.addIssue({ code: 'custom', message: issue.message, path: ['args', ...issue.path] })
  })

const Percentiles = z.strictObject({ p50: z.number(), p95: z.number(), p99: z.number(), max: z.number() })

// A poll reads a row of every task of the load.
const POLL_MS = 100
const POLL_MS_PER_TASK = 0.05

/** Adds a load in one insert, waits for its end, and reports what it came to. */
export const orchestrator = onNamedQueues({
  name: 'load_test_orchestrator',
  pool: 'io',
  // Those that wait hold slots that their own loads need: each caller has one at a time.
  actor: (_payload, ownerId) => `load-test:${ownerId ?? 0}`,
  payload: Payload,
  result: z.strictObject({
    task_name: z.string(),
    queue_type: z.string(),
    count: z.int(),
    completed: z.int(),
    failed: z.int(),
    cancelled: z.int(),
    seconds: z.number(),
    per_second: z.number(),
    latency_ms: Percentiles.nullable(),
    start_ms: Percentiles.nullable(),
  }),
  run: async (ctx, payload) => {
    const { task_name, queue_type, count } = payload
    const ids = Array.from({ length: count }, (_, n) => childId(ctx.job.id, n))
    await addOnce(ctx, payload, ids)
    const { completed, failed, cancelled } = await ended(ctx, ids)
    const { seconds, latency, start } = await ctx.db.one(loadTimes(ids))
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
  },
})

function loadOf(name: string, queue: string): TaskDefinition<unknown, unknown> {
  return LOADS.flat().find((task) => task.queue === queue && publicName(task) === name)!
}

/** The ids are the same in every attempt: what an earlier one has added is not added again. */
async function addOnce(
  ctx: TaskContext,
  { task_name, queue_type, args }: z.output<typeof Payload>,
  ids: readonly string[],
): Promise<void> {
  ctx.progress('Adding the tasks', 0, ids.length)
  await ctx.fenced(async (tx) => {
    if ((await tx.one(loadState(ids))).known > 0) return
    await enqueueMany(
      tx,
      loadOf(task_name, queue_type),
      ids.map(() => args),
      {
        ownerId: ctx.job.ownerId,
        requestId: ctx.job.requestId,
        maxTries: ctx.settings.workerMaxTries,
        idOf: (n) => ids[n]!,
      },
    )
  })
}

async function ended(ctx: TaskContext, ids: readonly string[]) {
  for (let before = -1; ; ) {
    const state = await ctx.db.one(loadState(ids))
    const done = state.completed + state.failed + state.cancelled
    if (done !== before) ctx.progress(`${done} of ${ids.length} tasks have ended`, done, ids.length)
    // Some may have been removed with their results.
    if (done === state.known) return state
    before = done
    await delay(Math.max(POLL_MS, ids.length * POLL_MS_PER_TASK), undefined, { signal: ctx.signal })
  }
}
