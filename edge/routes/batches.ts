import { z } from 'zod'
import { readWithin, type Transaction } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import { isUuid } from '../../sql/ids.ts'
import { BATCH_JOB_ORDER, readBatch, readBatchJobs } from '../../sql/jobs/batches.ts'
import {
  closeBatch,
  enqueueJobs,
  type JobSpec,
  MAX_DEPENDENCIES,
  readJobOwnership,
} from '../../sql/jobs/jobs.ts'
import { addJobCallbacks } from '../../sql/webhooks/webhooks.ts'
import { buildBatch, retryBatch } from '../../tasks/batches.ts'
import { createTaskFinder, tasks } from '../../tasks/index.ts'
import { buildJobSpecs } from '../../tasks/task.ts'
import type { Caller } from '../pipeline/access/auth.ts'
import type { Edge } from '../pipeline/context.ts'
import { failInvalidField, failInvalidInput } from '../pipeline/request/input.ts'
import { answerArray, buildCursorSchema, buildCursorValues } from '../pipeline/request/lists.ts'
import { count, Timestamp } from '../pipeline/request/schemas.ts'
import { answerJson, area, route } from '../pipeline/route.ts'
import { buildCallback, requireVisibleJobs } from '../pipeline/write/job-links.ts'
import { batchEventsRoute } from './batch-events.ts'
import { buildOptions, checkJob, checkTerms, JOB_REQUEST_FIELDS } from './job-requests.ts'
import { buildJobReadParameters, Job, STATUSES } from './jobs/shapes.ts'

/** Batches: jobs that are asked for together, and end together. */

const findTask = createTaskFinder(tasks)

const MAX_JOBS = 10_000
const MAX_KEYS = 1000
const MAX_LINKS = 100_000
const MAX_BODY_BYTES = 16 * 2 ** 20
// Enough for 20 keys and arguments of each job, and the dependencies.
const MAX_BODY_VALUES = 20 * MAX_JOBS + MAX_LINKS

const BatchJob = z
  .strictObject({
    ...JOB_REQUEST_FIELDS,
    after: z
      .array(z.union([z.int().min(0), z.uuid()]))
      .min(1)
      .max(MAX_DEPENDENCIES)
      .optional()
      .describe('Jobs that must end first: indexes of earlier jobs of this request, or ids of jobs'),
    after_outcome: z
      .enum(['done', 'any'])
      .default('done')
      .describe('`done` cancels the job if one of them does not succeed, `any` runs it'),
  })
  .superRefine(checkTerms)
  .meta({ id: 'BatchJob' })
type BatchJob = z.output<typeof BatchJob>

const Jobs = z.array(BatchJob).max(MAX_JOBS)

const NewBatch = z
  .strictObject({
    name: z.string().min(1).max(200).optional(),
    jobs: Jobs,
    callback_url: z
      .string()
      .max(2000)
      .optional()
      .describe('Receives a webhook `batch.done` when the batch ends'),
    open: z.boolean().default(false).describe('True if more jobs will be added before the batch is closed'),
  })
  .meta({ id: 'NewBatch' })

const MoreJobs = z.strictObject({ jobs: Jobs.min(1) }).meta({ id: 'MoreJobs' })

const AddedBatch = z
  .strictObject({
    batch_id: z.uuid(),
    status: z.enum(['open', 'running']),
    job_ids: z.array(z.uuid()).describe('The jobs in the order of the request'),
  })
  .meta({ id: 'AddedBatch' })

const Counts = z.strictObject({
  waiting: z.int(),
  queued: z.int(),
  running: z.int(),
  done: z.int(),
  failed: z.int(),
  cancelled: z.int(),
})

const Batch = z
  .strictObject({
    batch_id: z.uuid(),
    name: z.string().nullable(),
    status: z
      .enum(['open', 'running', 'cancelling', 'queued', 'done', 'failed', 'cancelled'])
      .describe('`queued`: all jobs have ended, and the batch is about to end'),
    progress: z.strictObject({ current: z.int(), total: z.int() }).describe('Jobs that have ended, and all'),
    counts: Counts.describe('Jobs by status'),
    failures: z
      .array(
        z.strictObject({
          job_id: z.uuid(),
          name: z.string(),
          status: z.enum(['failed', 'cancelled']),
          error: z.strictObject({ code: z.string(), detail: z.string() }).nullable(),
          finished_at: Timestamp,
        }),
      )
      .describe('The first jobs that did not succeed, at most 10'),
    created_at: Timestamp,
    started_at: Timestamp.nullable().describe('Start of the first job'),
    finished_at: Timestamp.nullable(),
  })
  .meta({ id: 'Batch' })

const Params = z.object({ batch_id: z.string() })

export const batches = area('batches', '/api/v1/batches', { auth: 'user' }, [
  route({
    method: 'post',
    path: '',
    summary: 'Add a batch of jobs',
    description: `Up to 10,000 different jobs in one transaction, all or none. The batch ends once it is closed and all of its \
jobs have ended. Its jobs are kept until its own result expires.`,
    body: NewBatch,
    bodyBytes: MAX_BODY_BYTES,
    bodyValues: MAX_BODY_VALUES,
    response: AddedBatch,
    status: 202,
    errors: ['task.unknown', 'task.unknown_queue', 'auth.forbidden', 'job.missing', 'webhook.no_account'],
    sideEffect: true,
    handle: (input) => {
      const { body, caller, edge, requestId } = input
      const { name = null, open } = body
      const callback =
        body.callback_url === undefined ? null : buildCallback(edge, caller, body.callback_url, 'body')
      const batch = buildBatch(name, { ownerId: caller.ownerId, requestId, settings: edge.settings })
      const members = buildMembers(input, batch.id, body.jobs)
      return input.transaction(async (tx) => {
        const job_ids = await addJobs(tx, input, [batch, ...members])
        if (callback !== null) await tx.run(addJobCallbacks([batch.id], callback))
        if (!open) await tx.any(closeBatch(batch.id))
        const value = { batch_id: batch.id, status: open ? 'open' : 'running', job_ids: job_ids.slice(1) }
        return answerJson(JSON.stringify(value), { headers: buildLocation(batch.id) })
      })
    },
  }),

  route({
    method: 'get',
    path: '/:batch_id',
    summary: 'Get a batch and the numbers of its jobs',
    params: Params,
    response: Batch,
    reads: 'statistics',
    errors: ['batch.missing'],
    handle: async ({ params, caller, edge, reader }) => {
      const text = isUuid(params.batch_id)
        ? await reader.text(readBatch, buildJobReadParameters(edge, caller, params.batch_id))
        : null
      if (text === null) throw fail('batch.missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'get',
    path: '/:batch_id/jobs',
    summary: 'List the jobs of a batch with their results',
    description: 'In the order in which they were added.',
    params: Params,
    query: z.object({
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      status: z.enum(STATUSES).optional(),
      cursor: buildCursorSchema(BATCH_JOB_ORDER),
    }),
    response: z.array(Job),
    reads: 'list',
    errors: ['batch.missing'],
    handle: async ({ params, query, caller, edge, reader, request }) => {
      await requireBatch(edge, caller, params.batch_id)
      const page = [buildCursorValues(query.cursor), 0, query.limit] as const
      return answerArray(
        (await reader.text(readBatchJobs, [
          params.batch_id,
          query.status ?? null,
          edge.settings.jobRetention,
          ...page,
        ]))!,
        request,
      )
    },
  }),

  batchEventsRoute,

  route({
    method: 'post',
    path: '/:batch_id/jobs',
    summary: 'Add jobs to an open batch',
    description: 'Only for the owner of the batch and admins.',
    params: Params,
    body: MoreJobs,
    bodyBytes: MAX_BODY_BYTES,
    bodyValues: MAX_BODY_VALUES,
    response: AddedBatch,
    status: 202,
    errors: [
      'batch.missing',
      'batch.closed',
      'batch.cycle',
      'task.unknown',
      'task.unknown_queue',
      'auth.forbidden',
      'job.missing',
    ],
    sideEffect: true,
    handle: async (input) => {
      const { params, body, caller, edge } = input
      await requireOwnBatch(edge, caller, params.batch_id)
      const members = buildMembers(input, params.batch_id, body.jobs)
      return input.transaction(async (tx) => ({
        batch_id: params.batch_id,
        status: 'open' as const,
        job_ids: [...(await addJobs(tx, input, members))],
      }))
    },
  }),

  route({
    method: 'post',
    path: '/:batch_id/close',
    summary: 'Close a batch',
    description:
      'It then ends with its last job. Closing a closed batch changes nothing. Only for its owner and admins.',
    params: Params,
    response: Batch,
    errors: ['batch.missing', 'auth.forbidden'],
    sideEffect: true,
    handle: async ({ params, caller, edge, transaction }) => {
      await requireOwnBatch(edge, caller, params.batch_id)
      return transaction(async (tx) => {
        const changed = await tx.any(closeBatch(params.batch_id))
        tx.afterCommit(() => {
          for (const { id } of changed) edge.publisher.notify(id)
        })
        return answerBatch(tx, edge, caller, params.batch_id)
      })
    },
  }),

  route({
    method: 'delete',
    path: '/:batch_id',
    summary: 'Cancel a batch',
    description:
      'Cancels its jobs that have not ended. The batch ends after those that are running. Only for its owner and admins.',
    params: Params,
    response: Batch,
    status: 202,
    errors: ['batch.missing', 'auth.forbidden'],
    handle: async ({ params, caller, edge }) => {
      await requireOwnBatch(edge, caller, params.batch_id)
      await edge.cancellations.run(params.batch_id)
      const text = await edge.reader.text(readBatch, buildJobReadParameters(edge, caller, params.batch_id))
      if (text === null) throw fail('batch.missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'post',
    path: '/:batch_id/retry',
    summary: 'Retry the jobs of a batch that did not succeed',
    description: `Answers with a new batch of the same name. It has the jobs that failed, and those that were cancelled because \
one that they depend on did not succeed, with the same dependencies. Only for the owner of the batch and admins.`,
    params: Params,
    response: Batch,
    status: 202,
    errors: [
      'batch.missing',
      'batch.succeeded',
      'auth.forbidden',
      'job.not_runnable',
      'job.not_retryable',
      'job.missing',
    ],
    sideEffect: true,
    handle: async ({ params, caller, edge, requestId, transaction }) => {
      await requireOwnBatch(edge, caller, params.batch_id)
      const options = { findTask, requestId, settings: edge.settings }
      return transaction(async (tx) => {
        const id = await retryBatch(tx, params.batch_id, options)
        tx.afterCommit(() => edge.publisher.notify(id, 'later'))
        return answerBatch(tx, edge, caller, id, buildLocation(id))
      })
    },
  }),
])

const buildLocation = (id: string) => [['location', `/api/v1/batches/${id}`]] as const

async function answerBatch(
  tx: Transaction,
  edge: Edge,
  caller: Caller,
  id: string,
  headers: readonly (readonly [string, string])[] = [],
) {
  const text = await readWithin(tx, readBatch, buildJobReadParameters(edge, caller, id))
  if (text === null) throw fail('batch.missing')
  return answerJson<z.input<typeof Batch>>(text, { headers })
}

/** @throws fail('batch.missing') unless the caller may see the batch. */
async function requireBatch(edge: Edge, caller: Caller, id: string): Promise<void> {
  const parameters = buildJobReadParameters(edge, caller, id)
  if (!isUuid(id) || (await edge.reader.text(readBatch, parameters)) === null) throw fail('batch.missing')
}

/** @throws fail('batch.missing'), or fail('auth.forbidden') unless the caller may change the batch. */
async function requireOwnBatch(edge: Edge, caller: Caller, id: string): Promise<void> {
  await requireBatch(edge, caller, id)
  const isOwn = await edge.reader.text(readJobOwnership, buildJobReadParameters(edge, caller, id))
  if (isOwn !== 'true') throw fail('auth.forbidden', { roles: 'admin' })
}

interface Requester {
  readonly edge: Edge
  readonly caller: Caller
  readonly requestId: string
}

/** Returns the jobs of a request. @throws as {@link checkJob} does, and fail('request.invalid') for wrong dependencies. */
function buildMembers(input: Requester, batchId: string, jobs: readonly BatchJob[]): readonly JobSpec[] {
  const specs: JobSpec[] = []
  const keys = new Set<string>()
  let links = 0
  for (const [index, { after, after_outcome: afterOutcome, ...request }] of jobs.entries()) {
    const path = ['jobs', index]
    const job = checkJob(input.edge, input.caller, request, path)
    const ids = after && [...new Set(after)].map((item) => findDependency(item, index, jobs, specs))
    if (request.key !== undefined) keys.add(`${job.task.name}/${request.key}`)
    links += ids?.length ?? 0
    const terms = { batchId, ...(ids && { after: ids, afterOutcome }) }
    specs.push(buildJobSpecs(job.task, [job.payload], buildOptions(input, job, terms))[0]!)
  }
  // A transaction locks the mailbox of each key.
  if (keys.size > MAX_KEYS)
    throw failInvalidField('body', 'jobs', `must not have more than ${MAX_KEYS} different keys`, 'too_big')
  if (links > MAX_LINKS)
    throw failInvalidField('body', 'jobs', `must not have more than ${MAX_LINKS} dependencies`, 'too_big')
  return specs
}

/** Returns the id of a dependency. An index must be that of an earlier job that joins no other. */
function findDependency(
  item: number | string,
  index: number,
  jobs: readonly BatchJob[],
  specs: readonly JobSpec[],
): string {
  if (typeof item === 'string') return item
  const refuse = (msg: string) =>
    failInvalidInput([{ loc: ['body', 'jobs', index, 'after'], msg, type: 'custom' }])
  if (item >= index) throw refuse('must name earlier jobs')
  if (jobs[item]!.when_busy !== 'wait') throw refuse('must name jobs that do not join others')
  return specs[item]!.id
}

/** Adds jobs, and returns their ids. @throws fail('job.missing') if the caller cannot see a dependency. */
async function addJobs(
  tx: Transaction,
  { edge, caller }: Requester,
  specs: readonly JobSpec[],
): Promise<readonly string[]> {
  const own = new Set(specs.map(({ id }) => id))
  const others = new Set(specs.flatMap(({ after = [] }) => after.filter((id) => !own.has(id))))
  if (others.size > 0) await requireVisibleJobs(tx, edge, caller, [...others])
  const added = await tx.any(enqueueJobs(specs, edge.settings.quotas.waiting_jobs))
  const ids = added.map(({ job_id }) => job_id)
  tx.afterCommit(() => {
    for (const id of ids.slice(0, MAX_ANNOUNCED)) edge.publisher.notify(id, 'later')
  })
  return ids
}

// Watchers of all jobs see each other job when it starts.
const MAX_ANNOUNCED = 1000
