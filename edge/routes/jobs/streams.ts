import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { readVisibleState, readVisibleStates } from '../../../sql/jobs/events.ts'
import type { Reads } from '../../../sql/reads/slow-reads.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { readLastEventId } from '../../pipeline/request/input.ts'
import { buildIdsSchema } from '../../pipeline/request/lists.ts'
import { formatNumber } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { followJob } from '../../streams/follow.ts'
import {
  followNamedJobs,
  followSelectedJobs,
  isSelected,
  parseNamedJob,
  type Subscription,
} from '../../streams/follow-selected.ts'
import { isTerminal, type JobEvent, parseJobEvent } from '../../streams/job-event.ts'
import { followOverview, readOverview } from '../../streams/overview.ts'
import { encodeFrame, type StreamSource } from '../../streams/sse.ts'
import { buildJobReadParameters, isAdmin, JobParams } from './shapes.ts'

const STREAM_DESCRIPTION = `Sends server-sent events named \`status\`, each with an id. \`data\` is a frame with \`job_id\`, \
\`status\` and \`label\`, with \`progress\` if known, and with \`result\` or \`error\` on the terminal frame. Send \
\`Last-Event-ID\` to resume a stream. A comment every 15 s keeps the connection alive.`

const formatFrame = (event: string, id: number, data: object): string =>
  encodeFrame({ event, id: String(id), data: JSON.stringify(data) })
const EXAMPLE_JOB_ID = '01a20118-fbcc-738c-80ed-00058e0e401d'
const EXAMPLE_PROGRESS = { current: 3, total: 9 }
const STREAM_EXAMPLE =
  formatFrame('status', 4, {
    job_id: EXAMPLE_JOB_ID,
    status: 'running',
    label: 'Page 3 of 9: text layer',
    progress: EXAMPLE_PROGRESS,
  }) +
  formatFrame('status', 11, {
    job_id: EXAMPLE_JOB_ID,
    status: 'done',
    label: '',
    result: { read: 9, unread: 0, skipped: 0 },
  })
const OVERVIEW_EXAMPLE = formatFrame('queues', 1_792_000_000_000, {
  at: '2026-03-01T09:30:00.000Z',
  items: [{ queue: 'documents', queued: 2, running: 1, waiting: 0, oldest_at: '2026-03-01T09:29:58.000Z' }],
  total: { queued: 2, running: 1, waiting: 0 },
})

/** Maximum time for one read of the overview, in ms. */
const OVERVIEW_TIMEOUT_MS = 5000

/** Maximum number of jobs that one stream names. */
const MAX_NAMED_JOBS = 1000

const Selection = z.object({
  ids: buildIdsSchema(MAX_NAMED_JOBS).optional(),
  batch: z.string().max(100).optional().meta({ description: 'Members of this batch' }),
  queue: z.string().max(100).optional(),
  task: z.string().max(100).optional().meta({ description: 'Jobs with this `name`' }),
})
type Selection = z.output<typeof Selection>

interface StreamInput {
  readonly request: EdgeRequest
  readonly caller: Caller
  readonly edge: Edge
  readonly reader: Reads
}

/** Returns the subscription of a stream of several jobs. `reader` runs lists. */
export const buildSubscription = ({ request, caller, edge, reader }: StreamInput): Subscription => ({
  viewer: [caller.ownerId, isAdmin(caller)],
  lastEventId: readLastEventId(request),
  now: edge.healthCheck.now(),
  reader: edge.reader,
  listReader: reader,
  onError: (error) => edge.log.warn({ err: error }, 'The stream of several jobs failed'),
})

/** Returns the current state of a job or a batch. @throws the failure `missing` if the caller may not see it. */
export async function requireState(
  { edge, caller }: StreamInput,
  jobId: string,
  missing: 'job.missing' | 'batch.missing',
): Promise<JobEvent> {
  const line = isUuid(jobId)
    ? await edge.reader.text(readVisibleState, buildJobReadParameters(edge, caller, jobId))
    : null
  if (line === null) throw fail(missing)
  return parseJobEvent(line)
}

/**
 * Opens the stream of the selected jobs. Throws job.missing or batch.missing if the caller names one that it may not see.
 */
async function streamJobs(input: StreamInput, { ids, ...selection }: Selection): Promise<StreamSource> {
  const { edge, caller } = input
  const { jobRetention } = edge.settings
  if (selection.batch !== undefined) await requireState(input, selection.batch, 'batch.missing')
  const subscription = buildSubscription(input)
  if (ids === undefined) return followSelectedJobs(edge.hub, subscription, selection, jobRetention)
  if (!ids.every(isUuid)) throw fail('job.missing')
  const values = [caller.ownerId, isAdmin(caller), ids, jobRetention] as const
  const jobs = (await edge.reader.texts(readVisibleStates, values)).map(parseNamedJob)
  if (jobs.length < ids.length) throw fail('job.missing')
  return followNamedJobs(
    edge.hub,
    subscription,
    jobs.filter(({ state }) => isSelected(selection, state)),
  )
}

/** Routes for the event streams of jobs. */
export const streamRoutes = [
  route({
    method: 'get',
    path: '/events',
    summary: 'Stream all jobs that the caller may see',
    description: `${STREAM_DESCRIPTION} An id is a time, usually some seconds ago, before which every terminal frame has \
been sent. A resumed stream repeats the terminal frames after that time: ignore those of jobs that you have seen end.

\`ids\`, \`batch\`, \`queue\` and \`task\` select jobs; all conditions must hold. \`ids\` names up to \
${formatNumber(MAX_NAMED_JOBS)} jobs, separated by commas or repeated. Their stream begins with the state of each, and \
ends after the last terminal frame, whose id is \`end\`. An unknown job or batch is a 404.`,
    query: Selection,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    errors: ['job.missing', 'batch.missing'],
    reads: 'list',
    stream: ({ query, ...input }) => streamJobs(input, query),
  }),

  route({
    method: 'get',
    path: '/overview',
    summary: 'Get the data of the monitor',
    description:
      'Returns the latest event of each name of the stream `GET /api/v1/jobs/overview/events`, for clients that cannot receive streams.',
    auth: 'admin',
    response: z.record(z.string(), z.looseObject({ at: z.string(), items: z.array(z.looseObject({})) })),
    errors: ['database.down'],
    handle: async ({ edge }) => {
      const text = await readOverview(edge.overview, AbortSignal.timeout(OVERVIEW_TIMEOUT_MS))
      if (text === null) throw fail('database.down')
      return answerJson(text)
    },
  }),

  route({
    method: 'get',
    path: '/overview/events',
    summary: 'Stream the data of the monitor',
    description: `Sends server-sent events, each with an id. \`data\` is \`{at, items}\`; each event replaces the earlier \
ones of its name: \`queues\` (depth and the oldest queued job), \`workers\` (lease, threads, memory, and the \`queue\`, host, \
language and version of an HTTP worker), \`running\`, \`queued\`, \`waiting\` (for other jobs) and \`failed\` (at most 50 jobs \
each). \`queues\` and \`workers\` have at most 500 items, and their \`total\` counts all. \`GET /api/v1/queues\` has the figures of \
ended jobs.`,
    auth: 'admin',
    produces: 'text/event-stream',
    example: OVERVIEW_EXAMPLE,
    stream: async ({ edge }) => followOverview(edge.overview),
  }),

  route({
    method: 'get',
    path: '/:job_id/events',
    summary: 'Stream the events of a job',
    description: STREAM_DESCRIPTION,
    params: JobParams,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    errors: ['job.missing'],
    stream: async ({ params, ...input }) => {
      const state = await requireState(input, params.job_id, 'job.missing')
      const lastEventId = readLastEventId(input.request)
      const lastSeen = /^\d{1,9}$/.test(lastEventId) ? Number(lastEventId) : null
      if (isTerminal(state) && lastSeen !== null && lastSeen >= state.seq) return 'ended'
      // An id beyond the latest frame is ignored, because waiting for the frame after it could take forever.
      return followJob(input.edge.hub, state, lastSeen !== null && lastSeen <= state.seq ? lastSeen : null)
    },
  }),
]
