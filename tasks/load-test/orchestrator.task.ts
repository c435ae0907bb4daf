import { z } from 'zod'
import { loadLazily } from '../task.ts'
import { findLoadTask, LOAD_NAMES } from './loads.ts'
import { defineOnNamedQueues, NAMED_QUEUES } from './on-queues.ts'

/** Maximum number of tasks that one load or one request may add. */
export const MAX_LOAD_TASKS = 10_000

const Payload = z
  .strictObject({
    task_name: z.enum(LOAD_NAMES).default('io_simulation_task'),
    queue_type: z.enum(NAMED_QUEUES).default('load_test'),
    count: z.int().min(1).max(MAX_LOAD_TASKS).default(100),
    args: z.record(z.string(), z.unknown()).default({}),
  })
  .superRefine(({ task_name, queue_type, args }, context) => {
    for (const issue of findLoadTask(task_name, queue_type).payload.safeParse(args).error?.issues ?? [])
      context.addIssue({ code: 'custom', message: issue.message, path: ['args', ...issue.path] })
  })

const Percentiles = z.strictObject({ p50: z.number(), p95: z.number(), p99: z.number(), max: z.number() })

const Result = z.strictObject({
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
})

/** Adds the jobs of a load in one insert, ends its attempt until they have finished, and reports the results. */
export const orchestrator = defineOnNamedQueues({
  name: 'load_test_orchestrator',
  pool: 'io',
  payload: Payload,
  result: Result,
  run: loadLazily(() => import('./orchestrator.work.ts')),
})
