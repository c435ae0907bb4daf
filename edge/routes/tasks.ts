import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { isUuid } from '../../sql/ids.ts'
import { readNamedQueues, readTaskResult } from '../../sql/jobs/tasks.ts'
import { namedTasks } from '../../tasks/load-test/index.ts'
import { NAMED_QUEUES } from '../../tasks/load-test/on-queues.ts'
import { MAX_LOAD_TASKS } from '../../tasks/load-test/orchestrator.task.ts'
import { type AnyTask, buildJobSpecs, type TaskDefinition } from '../../tasks/task.ts'
import { parsePart } from '../pipeline/request/input.ts'
import { markNullable, Timestamp } from '../pipeline/request/schemas.ts'
import { answerJson, area, route } from '../pipeline/route.ts'

const STATUSES = ['queued', 'running', 'completed', 'failed'] as const
const LONGEST_DELAY_SECONDS = 30 * 86_400

const EnqueueRequest = z
  .strictObject({
    task_name: z.string().max(100).meta({ example: 'io_simulation_task' }),
    queue_type: z.string().max(100).default('system').meta({ example: 'load_test' }),
    args: z.record(z.string(), z.unknown()).default({}),
    delay_seconds: z.number().min(0).max(LONGEST_DELAY_SECONDS).default(0),
    count: z.int().min(1).max(MAX_LOAD_TASKS).default(1),
  })
  .meta({ id: 'EnqueueRequest' })

const Enqueued = z
  .strictObject({
    task_id: z.uuid().describe('The first task, if `count` is greater than 1'),
    task_ids: z.array(z.uuid()).optional().describe('All tasks, only if `count` is greater than 1'),
    task_name: z.string(),
    queue_type: z.string(),
    queued_at: Timestamp,
    status: z.literal('queued'),
  })
  .meta({ id: 'EnqueuedTask' })

const TaskResult = z
  .strictObject({
    task_id: z.uuid(),
    task_name: z.string(),
    queue_type: z.string(),
    status: z.enum(STATUSES),
    result: z.unknown(),
    error: z.strictObject({ code: z.string(), detail: z.string() }).nullable(),
    enqueued_at: Timestamp,
    started_at: Timestamp.nullable(),
    finished_at: Timestamp.nullable(),
  })
  .meta({ id: 'TaskResult' })

const TaskList = z
  .strictObject({
    tasks: z.array(
      z.strictObject({
        task_name: z.string(),
        queue_types: z.array(z.string()),
        args: z.record(z.string(), z.unknown()).describe('JSON Schema of its arguments'),
      }),
    ),
    queues: z.array(
      z.strictObject({
        queue_type: z.string(),
        depth: z.int().describe('Number of waiting jobs'),
        running: z.int(),
        oldest_seconds: z.number().nullable().describe('Wait of the oldest waiting job; null if none waits'),
      }),
    ),
  })
  .meta({ id: 'TaskList' })

export const tasks = area('tasks', '/api/v1/tasks', { auth: 'open' }, [
  route({
    method: 'get',
    path: '',
    summary: 'List tasks to enqueue and their queues',
    response: TaskList,
    reads: 'statistics',
    mayLag: true,
    handle: async ({ reader }) => {
      const queues = await reader.text(readNamedQueues, [[...NAMED_QUEUES]])
      return answerJson(`{"tasks":${TASKS_JSON},"queues":${queues}}`)
    },
  }),

  route({
    method: 'post',
    path: '/enqueue',
    summary: 'Enqueue a task',
    description: `\`args\` are the arguments of the task. \`count\` enqueues it that many times, all or none. Each task \
is a job: watch and cancel it at \`/api/v1/jobs/{task_id}\`.`,
    body: EnqueueRequest,
    response: Enqueued,
    status: 202,
    errors: ['task.unknown', 'task.unknown_queue'],
    sideEffect: true,
    handle: ({ body, caller, edge, requestId, enqueue }) => {
      const task = requireTask(body.task_name, body.queue_type)
      const payload = parsePart(z.object({ args: task.payload }), 'body', { args: body.args }) as {
        args: unknown
      }
      const specs = buildJobSpecs(task, Array<unknown>(body.count).fill(payload.args), {
        ownerId: caller.ownerId,
        requestId,
        settings: edge.settings,
        ...(body.delay_seconds > 0 ? { delayMs: body.delay_seconds * 1000 } : {}),
      })
      return enqueue(specs, (ids) => ({
        task_id: ids[0]!,
        ...(body.count > 1 ? { task_ids: [...ids] } : {}),
        task_name: body.task_name,
        queue_type: body.queue_type,
        queued_at: new Date().toISOString(),
        status: 'queued' as const,
      }))
    },
  }),

  route({
    method: 'get',
    path: '/result/:task_id',
    summary: 'Get the status and result of a task',
    description: 'Results are kept for `WORKER_KEEP_RESULT_SECONDS`.',
    params: z.object({ task_id: z.string() }),
    response: TaskResult,
    errors: ['task.missing'],
    handle: async ({ params, caller, edge }) => {
      const text = isUuid(params.task_id)
        ? await edge.reader.text(readTaskResult, [
            caller.ownerId,
            caller.role === 'admin',
            params.task_id,
            [...NAMED_QUEUES],
            edge.settings.keepResultSeconds,
          ])
        : null
      if (text === null) throw fail('task.missing')
      return answerJson(text)
    },
  }),
])

// JSON list of the tasks, which is the same for all callers.
const TASKS_JSON = JSON.stringify(
  [...new Set([...namedTasks.values()].flatMap((byName) => [...byName.keys()]))].sort().map((task_name) => ({
    task_name,
    queue_types: NAMED_QUEUES.filter((queue) => namedTasks.get(queue)!.has(task_name)),
    args: buildArgumentsSchema(task_name),
  })),
)

/** Returns the JSON Schema of a task's arguments, which is the same on all its queues. */
function buildArgumentsSchema(name: string): object {
  const task = [...namedTasks.values()]
    .map((byName) => byName.get(name))
    .find((found) => found !== undefined)!
  const { $schema: _, ...schema } = z.toJSONSchema(task.payload, { io: 'input', override: markNullable })
  return schema
}

/** Finds a task. @throws fail('task.unknown_queue') or fail('task.unknown'), whose text lists the existing names. */
function requireTask(name: string, queue: string): TaskDefinition<unknown, unknown> {
  const byName = (namedTasks as ReadonlyMap<string, ReadonlyMap<string, AnyTask>>).get(queue)
  if (byName === undefined) throw fail('task.unknown_queue', { name: queue, names: NAMED_QUEUES.join(', ') })
  const task = byName.get(name)
  if (task === undefined) throw fail('task.unknown', { name, names: [...byName.keys()].sort().join(', ') })
  return task as unknown as TaskDefinition<unknown, unknown>
}
