import { z } from 'zod'
import type { Transaction } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import {
  getQueueControl,
  lockQueueName,
  MAX_TIMED_QUEUES,
  getWindowParameters as parametersOf,
  pauseQueue,
  readQueues,
  resumeQueue,
  setQueueLimit,
} from '../../../sql/jobs/queues.ts'
import { HISTOGRAM_BOUNDS, type TallyWindow, WINDOWS } from '../../../sql/jobs/tallies.ts'
import { queuesOf, tasks } from '../../../tasks/index.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { flag, Timestamp } from '../../pipeline/request/schemas.ts'
import { type Answer, answerJson, area, type Input, route, type Writes } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import {
  createFigureCalculator,
  createTimesCalculator,
  type SpanTimes,
  type TallySpan,
  type TallyTimes,
} from './figures.ts'

/** Routes that list the queues with their load and results, and that let admins control them. */

const QUEUE_NAMES = queuesOf(tasks)

const controlFields = {
  queue: z.string(),
  paused_at: Timestamp.nullable(),
  paused_by: z.int().nullable().describe('Id of the account that paused it; null if none did'),
  limit: z
    .int()
    .nullable()
    .describe('Maximum number of its jobs that run concurrently in all workers; null: no limit'),
}

const Times = z
  .strictObject({ p50: z.number(), p95: z.number(), p99: z.number() })
  .nullable()
  .describe('Seconds, accurate within a factor of 1.6 from 1 ms to 10,000 s; null if no attempt ended')

const Histograms = z.array(z.array(z.int()))

const TimesHistory = z
  .strictObject({ wait: z.array(Times), run: z.array(Times), waits: Histograms, runs: Histograms })
  .describe(
    `Times in each span of the window, only with \`times\` and for the ${MAX_TIMED_QUEUES} queues with the most attempts. \`waits\` and \`runs\` count attempts by \`bounds\`, and are empty for a span without attempts`,
  )

const Queue = z
  .strictObject({
    ...controlFields,
    queued: z.int(),
    running: z.int(),
    waiting: z.int().describe('Number of jobs that wait for others'),
    oldest_at: Timestamp.nullable().describe('When the longest-waiting job became due; null if none waits'),
    workers: z.int().describe('Number of workers that serve it'),
    ended: z.int().describe('Started jobs that ended within the window'),
    failed: z.int().describe('Number of these that failed'),
    repeated: z.int().describe('Attempts after which the job waited for another attempt'),
    wait: Times,
    run: Times,
    history: z
      .strictObject({ ended: z.array(z.int()), failed: z.array(z.int()) })
      .describe('The same counts for each span of the window; the last span is still open'),
    times: TimesHistory.nullable().optional(),
  })
  .meta({ id: 'Queue' })

const Queues = z
  .strictObject({
    at: Timestamp,
    window: z.enum(Object.keys(WINDOWS) as TallyWindow[]),
    span_seconds: z.int(),
    bounds: z
      .array(z.number())
      .optional()
      .describe('Upper bounds of histograms in seconds, only with `times`; longer times count last'),
    queues: z.array(Queue),
  })
  .meta({ id: 'Queues' })

const QueueControl = z.strictObject(controlFields).meta({ id: 'QueueControl' })
const QueueParams = z.object({ queue: z.string().max(100) })

type QueueControlJson = z.input<typeof QueueControl>
type QueueInput<Body = undefined> = Input<z.output<typeof QueueParams>, unknown, Body, Caller> &
  Writes<QueueControlJson>

export const queues = area('queues', '/api/v1/queues', { auth: 'admin' }, [
  route({
    method: 'get',
    path: '',
    summary: 'List queues with load, results and controls',
    description:
      'Lists the built-in queues, and at most 500 queues in all: worker queues with jobs, workers or controls come first. Figures of ended jobs are at most a few seconds old. The window `10m` has spans of 10 s, `1h` of 1 min, `24h` of 20 min and `7d` of 2 h.',
    query: z.object({
      window: z.enum(Object.keys(WINDOWS) as TallyWindow[]).default('10m'),
      times: flag().default(false).describe('True adds wait and run times by span'),
    }),
    response: Queues,
    reads: 'statistics',
    mayLag: true,
    handle: async ({ query: { window, times: hasTimes }, reader }) => {
      const values = parametersOf(QUEUE_NAMES, window, hasTimes)
      const [at, found, tallies, times, spanTimes] = await reader.texts(readQueues, values)
      const figures = createFigureCalculator(
        JSON.parse(tallies!) as TallySpan[],
        JSON.parse(times!) as TallyTimes[],
        window,
        Date.parse(at!),
      )
      const timesOf = createTimesCalculator(JSON.parse(spanTimes!) as SpanTimes[], window, Date.parse(at!))
      const queues = (JSON.parse(found!) as { queue: string }[]).map((queue) => ({
        ...queue,
        ...figures(queue.queue),
        ...(hasTimes && { times: timesOf(queue.queue) }),
      }))
      const head = { at, window, span_seconds: WINDOWS[window].span }
      return answerJson(JSON.stringify({ ...head, ...(hasTimes && { bounds: HISTOGRAM_BOUNDS }), queues }))
    },
  }),

  route({
    method: 'patch',
    path: '/:queue',
    summary: 'Limit the concurrency of a queue',
    description:
      'The limit covers all workers together: each gets a share of it, and applies a new limit as soon as it is notified. Running jobs continue.',
    params: QueueParams,
    body: z.strictObject({ limit: z.int().min(1).max(1_000_000).nullable() }),
    response: QueueControl,
    errors: ['queue.missing'],
    sideEffect: true,
    handle: (input) =>
      changeQueue(input, setQueueLimit(input.params.queue, input.body.limit), 'queue.limited', {
        limit: input.body.limit,
      }),
  }),

  route({
    method: 'post',
    path: '/:queue/pause',
    summary: 'Pause a queue',
    description:
      'Workers start none of its jobs; running jobs continue, and new jobs wait. Pausing a paused queue changes nothing.',
    params: QueueParams,
    response: QueueControl,
    errors: ['queue.missing'],
    sideEffect: true,
    handle: (input) =>
      changeQueue(input, pauseQueue(input.params.queue, input.caller.ownerId), 'queue.paused'),
  }),

  route({
    method: 'post',
    path: '/:queue/resume',
    summary: 'Resume a paused queue',
    params: QueueParams,
    response: QueueControl,
    errors: ['queue.missing'],
    sideEffect: true,
    handle: (input) => changeQueue(input, resumeQueue(input.params.queue), 'queue.resumed'),
  }),
])

/** Throws queue.missing if there is neither a built-in queue nor a worker queue of this name. */
async function requireQueue(tx: Transaction, queue: string): Promise<void> {
  if (QUEUE_NAMES.includes(queue)) return
  if ((await tx.maybeOne(lockQueueName(queue))) === null)
    throw fail('queue.missing', { name: queue, names: QUEUE_NAMES.join(', ') })
}

/**
 * Runs the statement and answers with the controls of the queue. Audits the statement if it changed anything.
 * @throws queue.missing
 */
async function changeQueue<Body>(
  input: QueueInput<Body>,
  statement: ReturnType<typeof pauseQueue>,
  kind: 'queue.paused' | 'queue.resumed' | 'queue.limited',
  data: object = {},
): Promise<Answer<QueueControlJson>> {
  const { queue } = input.params
  return input.transaction(async (tx) => {
    await requireQueue(tx, queue)
    if ((await tx.maybeOne(statement)) !== null)
      await tx.run(appendAuditEvent(input, kind, { data: { queue, ...data } }))
    return answerJson((await tx.one(getQueueControl(queue))).json)
  })
}
