import { z } from 'zod'
import { readWithin } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { readJob } from '../../../sql/jobs/jobs.ts'
import {
  JOB_ORDER,
  JOB_SORT_ORDERS,
  MAX_SORTED_JOBS,
  readJobs,
  readSortedJobs,
  scopeOf,
} from '../../../sql/jobs/lists.ts'
import { findJobHistory } from '../../../sql/jobs/monitor.ts'
import { findTask } from '../../../tasks/index.ts'
import { retryJob } from '../../../tasks/retry.ts'
import {
  answerArray,
  buildCursorSchema,
  buildCursorValues,
  buildSortSchema,
  buildTimeRangeFields,
} from '../../pipeline/request/lists.ts'
import { count, formatNumber } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { requireOwnJob } from './ownership.ts'
import { buildJobReadParameters, isAdmin, Job, JobEvent, JobParams, MAX_EVENTS, STATUSES } from './shapes.ts'

/** Routes that list, read, cancel and retry jobs. */
export const recordRoutes = [
  route({
    method: 'get',
    path: '',
    summary: 'List the jobs that the caller may see',
    description: `Running jobs come first, then queued, waiting and ended ones, latest first, unless \`sort\` is given. With \
\`sort\`, the list has at most ${formatNumber(MAX_SORTED_JOBS)} ended jobs of each state, the latest to end.`,
    query: z.object({
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      status: z.enum(STATUSES).optional(),
      ...buildTimeRangeFields('Added'),
      sort: buildSortSchema(JOB_SORT_ORDERS),
      cursor: buildCursorSchema(JOB_ORDER, JOB_SORT_ORDERS.created_at),
    }),
    response: z.array(Job),
    reads: 'list',
    handle: async ({ query, caller, edge, reader, request }) => {
      const { status = null, from = null, to = null, sort, limit } = query
      const filters = [caller.ownerId, status, edge.settings.jobRetention, from, to] as const
      const scope = scopeOf(isAdmin(caller))
      const after = buildCursorValues(
        query.cursor,
        sort === undefined ? JOB_ORDER : JOB_SORT_ORDERS[sort.column],
      )
      const statement = (sort === undefined ? readJobs : readSortedJobs[sort.column][sort.direction])[scope]
      return answerArray((await reader.text(statement, [...filters, after, limit]))!, request)
    },
  }),

  route({
    method: 'get',
    path: '/:job_id',
    summary: 'Get a job',
    params: JobParams,
    response: Job,
    errors: ['job.missing'],
    handle: async ({ params, caller, edge, reader }) => {
      const text = isUuid(params.job_id)
        ? await reader.text(readJob, buildJobReadParameters(edge, caller, params.job_id))
        : null
      if (text === null) throw fail('job.missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'delete',
    path: '/:job_id',
    summary: 'Cancel a job',
    description:
      'Only for the owner of the job and admins. A waiting job ends immediately; a running job is asked to stop, and killed if it does not. An ended job does not change.',
    params: JobParams,
    response: Job,
    status: 202,
    errors: ['job.missing', 'auth.forbidden'],
    handle: async ({ params, caller, edge }) => {
      const parameters = await requireOwnJob(edge, caller, params.job_id)
      await edge.cancellations.run(params.job_id)
      const text = await edge.reader.text(readJob, parameters)
      if (text === null) throw fail('job.missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'post',
    path: '/:job_id/retry',
    summary: 'Retry a failed job',
    description:
      'Only for the owner of the job and admins. Returns a new job, whose `retry_of` names the failed one, or the unfinished job that it joins. The failed job does not change. A repeated retry returns the same new job.',
    params: JobParams,
    response: Job,
    status: 202,
    errors: [
      'job.missing',
      'auth.forbidden',
      'job.not_failed',
      'job.not_retryable',
      'job.not_runnable',
      'quota.waiting_jobs',
    ],
    sideEffect: true,
    handle: async ({ params, caller, edge, requestId, transaction }) => {
      const viewer = { ownerId: caller.ownerId, isAdmin: isAdmin(caller) }
      const options = { findTask, requestId, settings: edge.settings }
      return transaction(async (tx) => {
        const read = (id: string) => readWithin(tx, readJob, buildJobReadParameters(edge, caller, id))
        if (!isUuid(params.job_id) || (await read(params.job_id)) === null) throw fail('job.missing')
        const id = await retryJob(tx, params.job_id, viewer, options)
        const text = await read(id)
        if (text === null) throw fail('job.missing')
        return answerJson(text, { headers: [['location', `/api/v1/jobs/${id}`]] })
      })
    },
  }),

  route({
    method: 'get',
    path: '/:job_id/history',
    summary: 'List the events of a job, oldest first',
    description: `Returns the last ${MAX_EVENTS} with their times. \`seq\` is the id of the event in the stream of the job.`,
    params: JobParams,
    response: z.array(JobEvent),
    errors: ['job.missing'],
    handle: async ({ params, caller, edge }) => {
      const parameters = buildJobReadParameters(edge, caller, params.job_id)
      if (!isUuid(params.job_id) || (await edge.reader.text(readJob, parameters)) === null)
        throw fail('job.missing')
      const { json: text } = await edge.db.one(findJobHistory(params.job_id, MAX_EVENTS))
      return answerJson(text ?? '[]')
    },
  }),
]
