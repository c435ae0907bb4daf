import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { isUuid } from '../../sql/ids.ts'
import { cancelJob, readJob, readJobs, readLiveStates, readVisibleState } from '../../sql/jobs.ts'
import type { Caller } from '../auth.ts'
import { followEverything, followJob } from '../follow.ts'
import { isTerminal, parseLine } from '../hub.ts'
import { area, json, route } from '../route.ts'
import { count, Timestamp } from '../schemas.ts'

const STATUSES = ['queued', 'running', 'done', 'failed', 'cancelled'] as const

const Job = z
  .strictObject({
    job_id: z.uuid(),
    name: z.string(),
    queue: z.string(),
    status: z.enum(STATUSES),
    label: z.string(),
    progress: z.strictObject({ current: z.int().nullable(), total: z.int().nullable() }).nullable(),
    attempts: z.int(),
    result: z.unknown().nullable(),
    error: z.strictObject({ code: z.string(), detail: z.string() }).nullable(),
    created_at: Timestamp,
    started_at: Timestamp.nullable(),
    finished_at: Timestamp.nullable(),
  })
  .meta({ id: 'Job' })

// An id that is no UUID is no job's: the same answer as for an unknown one.
const JobParams = z.object({ job_id: z.string() })

const STREAM_DESCRIPTION = `Server-sent events named \`status\`, each with an id: data is a frame with job_id, status and label, \
progress while there is one, and on the terminal frame result or error. \`Last-Event-ID\` goes on where a stream broke off. \
A comment every 15 s keeps the connection.`

export const jobs = area('jobs', '/api/v1/jobs', { auth: 'open' }, [
  route({
    method: 'get',
    path: '',
    summary: 'The jobs that the caller may see: running first, then waiting, then ended, newest first',
    query: z.object({
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      status: z.enum(STATUSES).optional(),
    }),
    response: z.array(Job),
    handle: async ({ query, caller, edge }) =>
      json(
        (await edge.reader.text(readJobs, [
          caller.ownerId,
          isAdmin(caller),
          query.limit,
          query.status ?? null,
        ])) ?? '[]',
      ),
  }),

  route({
    method: 'get',
    path: '/events',
    summary: 'One stream with the frames of all jobs that the caller may see',
    description: STREAM_DESCRIPTION,
    produces: 'text/event-stream',
    stream: async ({ request, caller, edge }) => {
      const since = /^(\d{1,15})$/.exec(request.header('last-event-id'))?.[1] ?? null
      return followEverything(edge.hub, {
        sees: (ownerId) => isAdmin(caller) || ownerId === null || ownerId === caller.ownerId,
        now: () =>
          edge.reader.texts(readLiveStates, [
            caller.ownerId,
            isAdmin(caller),
            since === null ? null : Number(since),
          ]),
        onError: (error) => edge.log.warn({ err: error }, 'The stream of all jobs could not begin'),
      })
    },
  }),

  route({
    method: 'get',
    path: '/:job_id',
    summary: 'One job',
    params: JobParams,
    response: Job,
    errors: ['job.missing'],
    handle: async ({ params, caller, edge }) => {
      const text = isUuid(params.job_id)
        ? await edge.reader.text(readJob, [caller.ownerId, isAdmin(caller), params.job_id])
        : null
      if (text === null) throw fail('job.missing')
      return json(text)
    },
  }),

  route({
    method: 'delete',
    path: '/:job_id',
    summary: 'Cancel a job',
    description:
      'A waiting job ends at once; a running one is told to stop, and killed if it does not. An ended job stays as it is.',
    params: JobParams,
    response: Job,
    status: 202,
    errors: ['job.missing'],
    handle: async ({ params, caller, edge }) => {
      const visible = [caller.ownerId, isAdmin(caller), params.job_id]
      if (!isUuid(params.job_id) || (await edge.reader.text(readJob, visible)) === null)
        throw fail('job.missing')
      await edge.db.one(cancelJob(params.job_id))
      edge.publisher.mark(params.job_id)
      const text = await edge.reader.text(readJob, visible)
      if (text === null) throw fail('job.missing')
      return json(text)
    },
  }),

  route({
    method: 'get',
    path: '/:job_id/events',
    summary: 'The stream of one job',
    description: STREAM_DESCRIPTION,
    params: JobParams,
    produces: 'text/event-stream',
    errors: ['job.missing'],
    stream: async ({ params, request, caller, edge }) => {
      const line = isUuid(params.job_id)
        ? await edge.reader.text(readVisibleState, [caller.ownerId, isAdmin(caller), params.job_id])
        : null
      if (line === null) throw fail('job.missing')
      const state = parseLine(line)
      const lastSeen = /^\d{1,9}$/.test(request.header('last-event-id'))
        ? Number(request.header('last-event-id'))
        : null
      if (isTerminal(state) && lastSeen !== null && lastSeen >= state.seq) return 'ended'
      // A frame that is yet to come was not seen here: waiting for the one after it could take for ever.
      return followJob(edge.hub, state, lastSeen !== null && lastSeen <= state.seq ? lastSeen : null)
    },
  }),
])

function isAdmin(caller: Caller): boolean {
  return caller.role === 'admin'
}
