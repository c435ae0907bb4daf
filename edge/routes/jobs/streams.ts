import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { readCurrentStates, readVisibleState } from '../../../sql/jobs/jobs.ts'
import { readLiveIds, scopeOf } from '../../../sql/jobs/lists.ts'
import { route } from '../../pipeline/route.ts'
import { readEndedJobs, type Viewer } from '../../streams/ended-jobs.ts'
import { followJob } from '../../streams/follow.ts'
import { followAllJobs } from '../../streams/follow-all.ts'
import { isTerminal, parseJobEvent } from '../../streams/job-event.ts'
import { followOverview } from '../../streams/overview.ts'
import { encodeFrame } from '../../streams/sse.ts'
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
  items: [{ queue: 'documents', queued: 2, running: 1, oldest_at: '2026-03-01T09:29:58.000Z' }],
})

/** Routes for the event streams of jobs. */
export const streamRoutes = [
  route({
    method: 'get',
    path: '/events',
    summary: 'Stream all jobs that the caller may see',
    description: `${STREAM_DESCRIPTION} An id is a time, usually some seconds ago, before which every terminal frame has \
been sent. A resumed stream repeats the terminal frames after that time: ignore those of jobs that you have seen end.`,
    produces: 'text/event-stream',
    example: STREAM_EXAMPLE,
    reads: 'list',
    stream: async ({ request, caller, edge, reader }) => {
      const since = /^(\d{1,15})$/.exec(request.header('last-event-id'))?.[1]
      const viewer: Viewer = [caller.ownerId, isAdmin(caller)]
      const now = edge.healthCheck.now()
      return followAllJobs(edge.hub, {
        canSee: (ownerId) => isAdmin(caller) || ownerId === null || ownerId === caller.ownerId,
        // The retention of jobs that ended earlier has passed.
        since:
          since === undefined
            ? null
            : Math.min(now, Math.max(Number(since), now - edge.settings.keepResultSeconds * 1000)),
        readLiveIds: () => reader.texts(readLiveIds[scopeOf(isAdmin(caller))], [caller.ownerId]),
        readEndedPage: (after) => readEndedJobs(reader, viewer, after),
        readStates: (ids) => edge.reader.texts(readCurrentStates, [ids]),
        onError: (error) => edge.log.warn({ err: error }, 'The stream of all jobs failed'),
      })
    },
  }),

  route({
    method: 'get',
    path: '/overview/events',
    summary: 'Stream the data of the monitor',
    description: `Sends server-sent events, each with an id. \`data\` is \`{at, items}\`; each event replaces the earlier \
ones of its name: \`queues\` (depth and the oldest waiting job), \`workers\` (lease, threads, memory), \`running\`, \
\`waiting\` and \`failed\` (at most 50 jobs each). \`GET /api/v1/queues\` has the figures of ended jobs.`,
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
    stream: async ({ params, request, caller, edge }) => {
      const line = isUuid(params.job_id)
        ? await edge.reader.text(readVisibleState, buildJobReadParameters(edge, caller, params.job_id))
        : null
      if (line === null) throw fail('job.missing')
      const state = parseJobEvent(line)
      const lastSeen = /^\d{1,9}$/.test(request.header('last-event-id'))
        ? Number(request.header('last-event-id'))
        : null
      if (isTerminal(state) && lastSeen !== null && lastSeen >= state.seq) return 'ended'
      // An id beyond the latest frame is ignored, because waiting for the frame after it could take forever.
      return followJob(edge.hub, state, lastSeen !== null && lastSeen <= state.seq ? lastSeen : null)
    },
  }),
]
