import { z } from 'zod'
import { readWithin } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import { isUuid } from '../../sql/ids.ts'
import { BATCH_JOB_ORDER, cancelBatch, readBatch, readBatchJobs } from '../../sql/jobs/batches.ts'
import { closeBatch } from '../../sql/jobs/jobs.ts'
import { addJobCallbacks } from '../../sql/webhooks/webhooks.ts'
import { buildBatch, retryBatch } from '../../tasks/batches.ts'
import { findTask } from '../../tasks/index.ts'
import { answerArray, buildCursorSchema, buildCursorValues } from '../pipeline/request/lists.ts'
import { count, Timestamp } from '../pipeline/request/schemas.ts'
import { answerJson, area, route } from '../pipeline/route.ts'
import { buildCallback } from '../pipeline/write/job-links.ts'
import { batchEventsRoute } from './batch-events.ts'
import { addJobs, BatchJob, buildMembers, MAX_LINKS, requireBatch, requireOwnBatch } from './batch-jobs.ts'
import { buildJobReadParameters, Job, STATUSES } from './jobs/shapes.ts'

/** Batches: jobs that are asked for together, and end together. */

const CALLBACK_DESCRIPTION = 'Receives a webhook `batch.done` when the batch ends'

const MAX_JOBS = 10_000
const MAX_BODY_BYTES = 16 * 2 ** 20
// Enough for 20 keys and arguments of each job, and the dependencies.
const MAX_BODY_VALUES = 20 * MAX_JOBS + MAX_LINKS

const Jobs = z.array(BatchJob).max(MAX_JOBS)

const NewBatch = z
  .strictObject({
    name: z.string().min(1).max(200).optional(),
    jobs: Jobs,
    callback_url: z.string().max(2000).optional().describe(CALLBACK_DESCRIPTION),
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

const MemberJob = Job.extend({
  after: z.array(z.uuid()).describe("The jobs on which it depends, in the caller's order"),
}).meta({ id: 'MemberJob' })

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
    errors: [
      'task.unknown',
      'task.unknown_queue',
      'worker_queue.undeclared',
      'auth.forbidden',
      'job.missing',
      'quota.waiting_jobs',
      'webhook.no_account',
    ],
    sideEffect: true,
    handle: async (input) => {
      const { body, caller, edge, requestId } = input
      const { name = null, open } = body
      const callback =
        body.callback_url === undefined ? null : buildCallback(edge, caller, body.callback_url, 'body')
      const batch = buildBatch(name, { ownerId: caller.ownerId, requestId, settings: edge.settings })
      const members = await buildMembers(input, { id: batch.id, ownerId: caller.ownerId }, body.jobs)
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
      if (!isUuid(params.batch_id)) throw fail('batch.missing')
      const values = buildJobReadParameters(edge, caller, params.batch_id)
      return answerBatch(await reader.text(readBatch, values))
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
    response: z.array(MemberJob),
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
    description: 'Only for the owner of the batch and admins. The jobs belong to its owner.',
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
      'worker_queue.undeclared',
      'auth.forbidden',
      'job.missing',
      'quota.waiting_jobs',
    ],
    sideEffect: true,
    handle: async (input) => {
      const { params, body, caller, edge } = input
      const batch = await requireOwnBatch(edge, caller, params.batch_id)
      const members = await buildMembers(input, batch, body.jobs)
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
        const values = buildJobReadParameters(edge, caller, params.batch_id)
        return answerBatch(await readWithin(tx, readBatch, values))
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
      for await (const id of cancelBatch(edge.db, params.batch_id)) edge.publisher.notify(id)
      const values = buildJobReadParameters(edge, caller, params.batch_id)
      return answerBatch(await edge.reader.text(readBatch, values))
    },
  }),

  route({
    method: 'post',
    path: '/:batch_id/retry',
    summary: 'Retry the jobs of a batch that did not succeed',
    description: `Answers with a new batch of the same name. It has the jobs that failed, and those that were cancelled because \
one that they depend on did not succeed, with the same dependencies. A job that they need and that was cancelled runs again, too. \
Only for the owner of the batch and admins.`,
    params: Params,
    query: z.object({ callback_url: z.string().max(2000).optional().describe(CALLBACK_DESCRIPTION) }),
    response: Batch,
    status: 202,
    errors: [
      'batch.missing',
      'batch.succeeded',
      'auth.forbidden',
      'job.not_runnable',
      'job.not_retryable',
      'job.dependency_failed',
      'quota.waiting_jobs',
      'webhook.no_account',
    ],
    sideEffect: true,
    handle: async ({ params, query, caller, edge, requestId, transaction }) => {
      await requireOwnBatch(edge, caller, params.batch_id)
      const options = { findTask, requestId, settings: edge.settings }
      const { callback_url: url } = query
      const callback = url === undefined ? null : buildCallback(edge, caller, url, 'query')
      return transaction(async (tx) => {
        const id = await retryBatch(tx, params.batch_id, options)
        if (callback !== null) await tx.run(addJobCallbacks([id], callback))
        const text = await readWithin(tx, readBatch, buildJobReadParameters(edge, caller, id))
        return answerBatch(text, buildLocation(id))
      })
    },
  }),
])

const buildLocation = (id: string) => [['location', `/api/v1/batches/${id}`]] as const

/** @throws fail('batch.missing') without a text. */
function answerBatch(text: string | null, headers: readonly (readonly [string, string])[] = []) {
  if (text === null) throw fail('batch.missing')
  return answerJson<z.input<typeof Batch>>(text, { headers })
}
