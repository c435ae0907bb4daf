import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import type { StartRate } from '../../sql/jobs/jobs.ts'
import { type EnqueueOptions, type JobTerms, MAX_LIMIT, type TaskDefinition } from '../../tasks/task.ts'
import { type DeclaredTasks, requireTask } from '../../tasks/worker-queues/declared.ts'
import type { Caller } from '../pipeline/access/auth.ts'
import type { Edge } from '../pipeline/context.ts'
import { failInvalidInput, parseAt } from '../pipeline/request/input.ts'
import { Moment } from '../pipeline/request/schemas.ts'

/** A job that a caller asks for by name, in a request of its own or in a batch. */

const MAX_DELAY_SECONDS = 30 * 86_400
const MAX_RATE_STARTS = 10_000
const MAX_RATE_SECONDS = 86_400

export const DelaySeconds = z.number().min(0).max(MAX_DELAY_SECONDS)

const Rate = z
  .string()
  .regex(/^\d{1,5}\/\d{1,5}$/, 'must be starts/seconds, such as 10/1')
  .transform((text) => text.split('/').map(Number) as [starts: number, seconds: number])
  .refine(
    ([starts, seconds]) =>
      starts >= 1 && starts <= MAX_RATE_STARTS && seconds >= 1 && seconds <= MAX_RATE_SECONDS,
    `must have 1 to ${MAX_RATE_STARTS} starts in 1 to ${MAX_RATE_SECONDS} seconds`,
  )

export const JOB_REQUEST_FIELDS = {
  task_name: z.string().max(100).meta({ example: 'io_simulation_task' }),
  queue_type: z.string().max(100).default('system').meta({ example: 'load_test' }),
  args: z.record(z.string(), z.unknown()).default({}),
  delay_seconds: DelaySeconds.default(0),
  run_at: Moment.optional().describe('Earliest start, at most 30 days ahead; instead of `delay_seconds`'),
  priority: z
    .enum(['low', 'normal', 'high'])
    .default('normal')
    .describe('`high` is for admins, unless `HIGH_PRIORITY=everyone`'),
  key: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Name of yours for the jobs of this task that share `limit`, `rate` and `when_busy`'),
  limit: z
    .int()
    .min(1)
    .max(MAX_LIMIT)
    .optional()
    .describe(`Most jobs of the key that run at a time; default ${MAX_LIMIT}`),
  rate: Rate.optional()
    .meta({ example: '10/1' })
    .describe('Most starts of the key, as starts/seconds, evenly spaced; the latest request sets it'),
  burst: z.boolean().default(false).describe('With `rate`: the starts of one period may be together'),
  when_busy: z
    .enum(['wait', 'join', 'join_waiting', 'replace'])
    .default('wait')
    .describe(
      'If the key has an unfinished job: `wait` adds another one; `join` answers with it, `join_waiting` only if it has ' +
        'not started; `replace` gives a job that has not started these `args` and this delay',
    ),
  max_delay_seconds: DelaySeconds.optional().describe('With `replace`: latest start after the first request'),
}

const JobRequest = z.strictObject(JOB_REQUEST_FIELDS)
type JobRequest = z.output<typeof JobRequest>

interface RequestedTerms extends JobRequest {
  readonly count?: number
  readonly after?: readonly unknown[] | undefined
  readonly after_outcome?: string | undefined
}

/** Adds the problems of fields that need others. */
export function checkTerms(request: RequestedTerms, context: z.RefinementCtx): void {
  const refuse = (name: keyof RequestedTerms, message: string) =>
    context.addIssue({ code: 'custom', message, path: [name] })
  if (request.run_at !== undefined && request.delay_seconds > 0) refuse('run_at', 'excludes delay_seconds')
  if (request.key === undefined)
    for (const name of ['limit', 'rate', 'when_busy'] as const)
      if (request[name] !== undefined && request[name] !== 'wait') refuse(name, 'needs key')
  if (request.count !== undefined && request.count > 1 && request.when_busy !== 'wait')
    refuse('count', 'must be 1 for a job that may join another')
  if (request.after !== undefined && request.when_busy !== 'wait') refuse('after', 'excludes when_busy')
  if (request.after === undefined && request.after_outcome !== undefined)
    refuse('after_outcome', 'needs after')
  if (request.burst && request.rate === undefined) refuse('burst', 'needs rate')
  if (request.max_delay_seconds !== undefined && request.when_busy !== 'replace')
    refuse('max_delay_seconds', 'needs when_busy replace')
}

/** A request whose task is known and accepts its arguments. */
export interface CheckedJob {
  readonly task: TaskDefinition<unknown, unknown>
  readonly payload: unknown
  readonly terms: JobTerms
  readonly delayMs: number
}

/**
 * Finds the task of a request, and checks what only the service knows. `path` is the place of the request in the body.
 *
 * @param declared tasks of worker queues, from `findDeclaredTasks`, which has checked their arguments.
 * @throws fail('task.unknown_queue'), fail('task.unknown'), fail('worker_queue.undeclared'), fail('request.invalid').
 * @throws fail('auth.forbidden') for a priority that the caller may not choose.
 */
export function checkJob(
  edge: Edge,
  caller: Caller,
  request: JobRequest,
  declared: DeclaredTasks,
  path: readonly (string | number)[] = [],
): CheckedJob {
  const { task_name, queue_type, key } = request
  const task = requireTask(task_name, queue_type, declared, key !== undefined)
  const payload = parseAt(task.payload, request.args, ['body', ...path, 'args'])
  const refuse = (name: string, msg: string) =>
    failInvalidInput([{ loc: ['body', ...path, name], msg, type: 'custom' }])
  if (request.key !== undefined && task.actor !== undefined)
    throw refuse('key', 'is not for this task, which has an order of its own')
  checkRunAt(edge, request.run_at, path)
  if (request.priority === 'high' && caller.role !== 'admin' && edge.settings.highPriority !== 'everyone')
    throw fail('auth.forbidden', { roles: 'admin' })
  return { task, payload, terms: buildTerms(request), delayMs: request.delay_seconds * 1000 }
}

/** @throws fail('request.invalid') if a start is too far ahead. `path` is the place of the request in the body. */
export function checkRunAt(
  { healthCheck }: Edge,
  runAt: string | undefined,
  path: readonly (string | number)[] = [],
): void {
  if (runAt === undefined || Date.parse(runAt) <= healthCheck.now() + MAX_DELAY_SECONDS * 1000) return
  throw failInvalidInput([
    { loc: ['body', ...path, 'run_at'], msg: 'must be at most 30 days ahead', type: 'custom' },
  ])
}

function buildTerms({
  key,
  limit,
  rate,
  burst,
  when_busy,
  max_delay_seconds,
  priority,
  run_at,
}: JobRequest): JobTerms {
  return {
    key,
    limit,
    rate: rate && buildRate(rate, burst),
    // A task may have a rule of its own.
    whenBusy: key === undefined ? undefined : when_busy,
    maxDelayMs: max_delay_seconds === undefined ? undefined : max_delay_seconds * 1000,
    priority,
    runAt: run_at,
  }
}

const buildRate = ([starts, seconds]: readonly [number, number], burst: boolean): StartRate => ({
  starts,
  seconds,
  burst: burst ? starts : 1,
})

/** Returns the options with which a request's jobs are added. */
export function buildOptions(
  { edge, caller, requestId }: { readonly edge: Edge; readonly caller: Caller; readonly requestId: string },
  { terms, delayMs }: CheckedJob,
  more: JobTerms = {},
  ownerId = caller.ownerId,
): EnqueueOptions {
  return {
    ownerId,
    requestId,
    settings: edge.settings,
    terms: { ...terms, ...more },
    ...(delayMs > 0 ? { delayMs } : {}),
  }
}
