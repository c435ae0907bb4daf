import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { BATCH_TASK } from '../../sql/jobs/batches.ts'
import { route } from '../pipeline/route.ts'
import { followBatch } from '../streams/follow-selected.ts'
import { encodeFrame } from '../streams/sse.ts'
import { buildSubscription, requireState } from './jobs/streams.ts'

/** The event stream of a batch. */

const BATCH_ID = '01a20118-fbcc-738c-80ed-00058e0e401d'
const frame = (event: string, id: string, data: object): string =>
  encodeFrame({ event, id, data: JSON.stringify(data) })
const EXAMPLE =
  frame('progress', '1792000000000', {
    job_id: BATCH_ID,
    status: 'waiting',
    label: '8 of 9 tasks have ended',
    progress: { current: 8, total: 9 },
  }) +
  frame('status', '1792000000000', {
    job_id: '01a20118-fbd0-7c55-b1f2-3d9a8c0e7f66',
    status: 'done',
    label: '',
    result: { operations: 2 },
  }) +
  frame('status', 'end', {
    job_id: BATCH_ID,
    status: 'done',
    label: '',
    result: { total: 9, done: 9, failed: 0, cancelled: 0 },
  })

export const batchEventsRoute = route({
  method: 'get',
  path: '/:batch_id/events',
  summary: 'Stream the progress and the ends of a batch',
  description: `Sends server-sent events: \`progress\` with the state of the batch, at most four times a second; \`status\` with the \
end of each of its jobs, including those before the stream; then \`status\` with the end of the batch itself, as the last \
event. Send \`Last-Event-ID\` to resume: the stream repeats ends after the time that the id names. The id of the last event \
is \`end\`, after which the answer is 204.`,
  params: z.object({ batch_id: z.string() }),
  produces: 'text/event-stream',
  example: EXAMPLE,
  errors: ['batch.missing'],
  reads: 'list',
  stream: async ({ params, ...input }) => {
    const batch = await requireState(input, params.batch_id, 'batch.missing')
    if (batch.task !== BATCH_TASK) throw fail('batch.missing')
    return followBatch(input.edge.hub, buildSubscription(input), batch)
  },
})
