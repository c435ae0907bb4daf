import { z } from 'zod'
import { readWithin, type Transaction } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import { isUuid, NIL_UUID } from '../../sql/ids.ts'
import { type EnqueuedJob, readJob } from '../../sql/jobs/jobs.ts'
import { readNamedQueues, readTaskResult, readTaskResults } from '../../sql/jobs/tasks.ts'
import { namedTasks } from '../../tasks/load-test/index.ts'
import { NAMED_QUEUES } from '../../tasks/load-test/on-queues.ts'
import { MAX_LOAD_TASKS } from '../../tasks/load-test/orchestrator.task.ts'
import { buildJobSpecs } from '../../tasks/task.ts'
import { JobLinksQuery, wantsBackground } from '../pipeline/request/input.ts'
import { buildIdsSchema } from '../pipeline/request/lists.ts'
import { formatNumber, markNullable, Timestamp } from '../pipeline/request/schemas.ts'
import { answerJson, area, route } from '../pipeline/route.ts'
import { linkJobs, parseJobLinks } from '../pipeline/write/job-links.ts'
import { findDeclaredTasks } from './declared-tasks.ts'
import { buildOptions, checkJob, checkTerms, JOB_REQUEST_FIELDS } from './job-requests.ts'
import { buildJobReadParameters } from './jobs/shapes.ts'

const STATUSES = ['waiting', 'queued', 'running', 'completed', 'failed'] as const
/** Maximum number of results per request. */
const MAX_RESULTS = 1000

const EnqueueRequest = z
  .strictObject({ ...JOB_REQUEST_FIELDS, count: z.int().min(1).max(MAX_LOAD_TASKS).default(1) })
  .superRefine(checkTerms)
  .meta({ id: 'EnqueueRequest' })

const Enqueued = z
  .strictObject({
    task_id: z.uuid().describe('The first task, if `count` is greater than 1'),
    task_ids: z.array(z.uuid()).optional().describe('All tasks, only if `count` is greater than 1'),
    task_name: z.string(),
    queue_type: z.string(),
    queued_at: Timestamp,
    status: z
      .enum(['waiting', 'queued', 'running', 'cancelled'])
      .describe('`waiting` or `cancelled` only with `after`, `running` only if it is joined'),
    joined: z.literal(true).optional().describe('Present if the task is one under way, see `when_busy`'),
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

const TaskResults = z
  .strictObject({
    results: z.array(TaskResult),
    missing: z.array(z.string()).describe('Ids that are unknown, of another owner, or expired'),
  })
  .meta({ id: 'TaskResults' })

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
        depth: z.int().describe('Number of queued jobs'),
        running: z.int(),
        waiting: z.int().describe('Number of jobs that wait for others'),
        oldest_seconds: z
          .number()
          .nullable()
          .describe('Wait of the oldest queued job; null if none is queued'),
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
is a job: watch and cancel it at \`/api/v1/jobs/{task_id}\`. The answer never waits for the task, so \`background\` changes nothing.`,
    query: JobLinksQuery,
    body: EnqueueRequest,
    response: Enqueued,
    status: 202,
    errors: [
      'task.unknown',
      'task.unknown_queue',
      'worker_queue.undeclared',
      'auth.forbidden',
      'job.missing',
      'job.joined',
      'quota.waiting_jobs',
      'webhook.no_account',
    ],
    sideEffect: true,
    handle: async (input) => {
      const { body, caller, edge, exchange, enqueue } = input
      wantsBackground(input.request)
      const declared = await findDeclaredTasks(edge, caller, [{ ...body, path: [] }])
      const job = checkJob(edge, caller, body, declared)
      const links = parseJobLinks({ edge, exchange }, true)
      const specs = buildJobSpecs(
        job.task,
        Array<unknown>(body.count).fill(job.payload),
        buildOptions(input, job),
      )
      let status: z.input<typeof Enqueued>['status'] = 'queued'
      const link = async (tx: Transaction, jobs: readonly EnqueuedJob[]) => {
        await linkJobs(tx, { edge, exchange }, jobs, links!)
        if (links!.dependencies === null && !jobs[0]!.joined) return
        const first = await readWithin(tx, readJob, buildJobReadParameters(edge, caller, jobs[0]!.job_id))
        if (first !== null) status = (JSON.parse(first) as z.input<typeof Enqueued>).status
      }
      return enqueue(
        specs,
        (jobs) => ({
          task_id: jobs[0]!.job_id,
          ...(body.count > 1 ? { task_ids: jobs.map(({ job_id }) => job_id) } : {}),
          task_name: body.task_name,
          queue_type: body.queue_type,
          queued_at: new Date().toISOString(),
          status,
          ...(jobs[0]!.joined ? { joined: true as const } : {}),
        }),
        links === null ? undefined : link,
      )
    },
  }),

  route({
    method: 'get',
    path: '/result/:task_id',
    summary: 'Get the status and result of a task',
    description:
      'Results are kept for `WORKER_KEEP_RESULT_SECONDS`, failed tasks for `WORKER_KEEP_FAILED_SECONDS`.',
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
            edge.settings.jobRetention,
          ])
        : null
      if (text === null) throw fail('task.missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'get',
    path: '/results',
    summary: 'Get the status and result of many tasks',
    description: `\`ids\` has up to ${formatNumber(MAX_RESULTS)} ids, separated by commas or repeated. \`results\` is in their order. A proxy may \
accept fewer: 1,000 ids are a URL of 37 KB.`,
    query: z.object({ ids: buildIdsSchema(MAX_RESULTS) }),
    response: TaskResults,
    reads: 'list',
    handle: async ({ query: { ids }, caller, edge, reader }) =>
      answerJson(
        (await reader.text(readTaskResults, [
          caller.ownerId,
          caller.role === 'admin',
          ids.map((id) => (isUuid(id) ? id : NIL_UUID)),
          [...NAMED_QUEUES],
          edge.settings.jobRetention,
          ids,
        ]))!,
      ),
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
