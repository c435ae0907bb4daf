import { z } from 'zod'
import { readWithin } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { readJob } from '../../../sql/jobs/jobs.ts'
import {
  ADDED_ORDER,
  chooseSource,
  ENDED_ORDER,
  MAX_BULK_JOBS,
  MAX_SCANNED_JOBS,
  MEASURED_ORDER,
  readFailures,
  readFoundJobs,
} from '../../../sql/jobs/search.ts'
import { MAX_COUNTED_ROWS } from '../../../sql/reads/lists.ts'
import { bulkJobs, JobFilter, JobsAction } from '../../../tasks/system/bulk.task.ts'
import { enqueue } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import {
  buildCursorSchema,
  buildCursorValues,
  buildTimeRangeFields,
  NextField,
} from '../../pipeline/request/lists.ts'
import { count, formatNumber, RowId, Timestamp } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { TERMINAL_STATUSES } from '../../streams/job-event.ts'
import { buildJobReadParameters, isAdmin, Job, STATUSES } from './shapes.ts'

/** Routes for job search and bulk actions. Admins may use them for all jobs, others for their own. */

const DAY_SECONDS = 86_400

const FoundJob = z
  .strictObject({
    job_id: z.uuid(),
    name: z.string(),
    queue: z.string(),
    owner_id: z.int().nullable(),
    owner_email: z.string().nullable(),
    status: z.enum(STATUSES),
    label: z.string(),
    attempts: z.int(),
    request_id: z.string().nullable(),
    error: z.strictObject({ code: z.string(), detail: z.string() }).nullable(),
    created_at: Timestamp,
    due_at: Timestamp.nullable().describe('When it may start; null unless that is in the future'),
    started_at: Timestamp.nullable(),
    finished_at: Timestamp.nullable(),
    expires_at: Timestamp.nullable().describe(
      'Until when the job is kept; null before its end, and before that of its batch',
    ),
    batch_id: z.uuid().nullable(),
    key: z.string().nullable(),
    retried_by: z.uuid().nullable(),
  })
  .meta({ id: 'FoundJob' })

const FoundJobs = z.strictObject({ jobs: z.array(FoundJob), ...NextField }).meta({ id: 'FoundJobs' })

const Failures = z
  .strictObject({
    at: Timestamp,
    span_seconds: z.number(),
    total_is_exact: z.boolean().describe('True if all failures of the period were counted'),
    groups: z.array(
      z.strictObject({
        task: z.string(),
        queue: z.string(),
        code: z.string(),
        jobs: z.int(),
        retried: z.int().describe('Number of these jobs that were retried'),
        first_at: Timestamp,
        last_at: Timestamp,
        expires_at: Timestamp.describe('Until when the first of these jobs can be retried'),
        last_job_id: z.uuid(),
        last_detail: z.string().nullable(),
        history: z.array(z.int()).describe('Failures in each of 24 spans, oldest first'),
      }),
    ),
  })
  .meta({ id: 'Failures' })

// Query parameters are strings, so `owner_id` is parsed.
const Filter = z.object({
  ...JobFilter.shape,
  ...buildTimeRangeFields('Added'),
  owner_id: RowId.optional(),
})

const BulkRequest = JobsAction.extend({
  filter: JobFilter.extend(buildTimeRangeFields('Added')).meta({ id: 'JobFilter' }).default({}),
}).meta({ id: 'JobsAction' })

type Sort = keyof (typeof readFoundJobs)['all']

const ORDERS: Readonly<Partial<Record<Sort, typeof ADDED_ORDER | typeof ENDED_ORDER>>> = {
  created_at: ADDED_ORDER,
  '-created_at': ADDED_ORDER,
  '-finished_at': ENDED_ORDER,
}

const chooseDefaultSort = (status: string | undefined): Sort =>
  status !== undefined && TERMINAL_STATUSES.has(status) ? '-finished_at' : '-created_at'

/**
 * Returns the filter, limited to the caller's own jobs unless the caller is an admin.
 *
 * @throws fail('auth.forbidden') if the filter asks for the jobs of another account.
 */
function restrictToCaller<F extends { readonly owner_id?: number | undefined }>(
  filter: F,
  caller: Caller,
): F {
  if (isAdmin(caller)) return filter
  const { ownerId } = caller
  if (ownerId === null || (filter.owner_id ?? ownerId) !== ownerId)
    throw fail('auth.forbidden', { roles: 'admin' })
  return { ...filter, owner_id: ownerId }
}

const OWN_JOBS = 'Admins search all jobs. Others search their own; another `owner_id` is rejected.'

export const searchRoutes = [
  route({
    method: 'get',
    path: '/search',
    summary: 'Search jobs',
    description: `${OWN_JOBS} Without \`sort\`, jobs of a final state are sorted by their end, latest first, and others by when they \
were added, newest first. A search of an owner, batch or key considers its latest 100,000 jobs. Any other page searches at most 100,000 jobs, so a page with few jobs, or none, can still have a \
\`next\`. \`-ran\`, \`-waited\` and \`-attempts\` sort only the latest 100,000 jobs, by longest run, longest wait or most \
attempts.`,
    auth: 'user',
    query: Filter.extend({
      sort: z.enum(Object.keys(readFoundJobs.all) as Sort[]).optional(),
      limit: count({ min: 1, max: 200, fallback: 50 }),
      cursor: buildCursorSchema(ADDED_ORDER, ENDED_ORDER, MEASURED_ORDER),
    }),
    response: FoundJobs,
    errors: ['auth.forbidden'],
    reads: 'list',
    mayLag: true,
    handle: async ({ query, caller, edge, reader }) => {
      const { sort = chooseDefaultSort(query.status), limit, cursor, ...given } = query
      const filter = restrictToCaller(given, caller)
      const order = ORDERS[sort] ?? MEASURED_ORDER
      const after = buildCursorValues(cursor, order)
      const values = [JSON.stringify(filter), after, limit, edge.settings.jobRetention] as const
      const statement = readFoundJobs[chooseSource(filter)][sort]
      const [next, ...jobs] = (await reader.text(statement, values))!.split('\n')
      return answerJson(`{"jobs":${jobs.join('\n')},"next":${next === '' ? 'null' : JSON.stringify(next)}}`)
    },
  }),

  route({
    method: 'get',
    path: '/failures',
    summary: 'Count failed jobs by task and error',
    description: `${OWN_JOBS} Most jobs first. Counts the last ${formatNumber(MAX_COUNTED_ROWS)} failures of the period; with a filter, those \
that match among the last ${formatNumber(MAX_SCANNED_JOBS)}.`,
    auth: 'user',
    query: Filter.omit({ status: true }).extend({
      seconds: count({ min: 60, max: 7 * DAY_SECONDS, fallback: 3600 }).describe('Length of the period'),
    }),
    response: Failures,
    errors: ['auth.forbidden'],
    reads: 'statistics',
    mayLag: true,
    handle: async ({ query: { seconds, ...given }, caller, edge, reader }) => {
      const filter = restrictToCaller(given, caller)
      const statement = readFailures[filter.owner_id === undefined ? 'all' : 'owner']
      return answerJson(
        (await reader.text(statement, [JSON.stringify(filter), seconds, edge.settings.jobRetention]))!,
      )
    },
  }),

  route({
    method: 'post',
    path: '/bulk',
    summary: 'Retry, cancel or delete many jobs',
    description: `Admins change jobs of any owner, others only their own; another \`owner_id\` is rejected. One job acts on all jobs that match now, at most ${formatNumber(MAX_BULK_JOBS)}. Its result has the numbers \
\`done\` and \`refused\`, and \`more\` if further jobs match.`,
    auth: 'user',
    body: BulkRequest,
    response: Job,
    status: 202,
    errors: ['auth.forbidden', 'quota.waiting_jobs'],
    sideEffect: true,
    handle: async (input) => {
      const { body, caller, edge, requestId } = input
      const { action, ids } = body
      const filter = restrictToCaller(body.filter, caller)
      return input.transaction(async (tx) => {
        const options = { ownerId: caller.ownerId, requestId, settings: edge.settings }
        const owners = isAdmin(caller) ? 'any' : 'own'
        const { jobId } = await enqueue(tx, bulkJobs, { action, filter, ids, owners }, options)
        const data = { action, filter, ...(ids && { jobs: ids.length }), job_id: jobId }
        await tx.run(appendAuditEvent(input, 'job.bulk', { data }))
        const text = await readWithin(tx, readJob, buildJobReadParameters(edge, caller, jobId))
        return answerJson(text!, { headers: [['location', `/api/v1/jobs/${jobId}`]] })
      })
    },
  }),
]
