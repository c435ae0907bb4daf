import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import {
  controlOf,
  limitQueue,
  queuesOf as parametersOf,
  pauseQueue,
  readQueues,
  resumeQueue,
} from '../../sql/jobs/queues.ts'
import { WINDOWS, type Window } from '../../sql/jobs/tallies.ts'
import { queuesOf, tasks } from '../../tasks/index.ts'
import { audit } from '../pipeline/audit.ts'
import type { Caller } from '../pipeline/auth.ts'
import { type Answer, area, type Input, json, route, type Writes } from '../pipeline/route.ts'
import { Timestamp } from '../pipeline/schemas.ts'
import { figuresOf, type Span } from './queues/figures.ts'

/** The queues: how they do, and what admins ask of them. */

const NAMES = queuesOf(tasks)

const Control = {
  queue: z.string(),
  paused_at: Timestamp.nullable(),
  paused_by: z.int().nullable().describe('The account that paused it'),
  limit: z
    .int()
    .nullable()
    .describe('How many of its jobs run at once in all workers together; null: no limit'),
}

const Times = z
  .strictObject({ p50: z.number(), p95: z.number(), p99: z.number() })
  .nullable()
  .describe('Seconds, within a factor of 1.6 from 1 ms to 10,000 s; null: nothing ended')

const Queue = z
  .strictObject({
    ...Control,
    queued: z.int(),
    running: z.int(),
    oldest_at: Timestamp.nullable().describe('Since when the job has been due that has waited longest'),
    workers: z.int().describe('How many workers serve it'),
    ended: z.int().describe('Jobs that ended within the window after they had begun'),
    failed: z.int().describe('How many of them failed'),
    repeated: z.int().describe('Attempts after which a job waited again'),
    wait: Times,
    run: Times,
    history: z
      .strictObject({ ended: z.array(z.int()), failed: z.array(z.int()) })
      .describe('The same for each span of the window, the last one is not over'),
  })
  .meta({ id: 'Queue' })

const Queues = z
  .strictObject({
    at: Timestamp,
    window: z.enum(Object.keys(WINDOWS) as Window[]),
    span_seconds: z.int(),
    queues: z.array(Queue),
  })
  .meta({ id: 'Queues' })

const QueueControl = z.strictObject(Control).meta({ id: 'QueueControl' })
const QueueParams = z.object({ queue: z.string().max(100) })

type Controlled = z.input<typeof QueueControl>
type OfQueue<Body = undefined> = Input<z.output<typeof QueueParams>, unknown, Body, Caller> &
  Writes<Controlled>

export const queues = area(
  'queues',
  '/api/v1/queues',
  { auth: 'admin', about: 'Queues: depth, statistics, pause, resume and limits.' },
  [
    route({
      method: 'get',
      path: '',
      summary: 'List the queues: how deep they are, what is asked of them, and how their jobs have ended',
      description:
        'Figures of what has ended are at most a few seconds old. `10m` is made of spans of 10 s, `1h` of minutes, `24h` of 20 min and `7d` of 2 h.',
      query: z.object({ window: z.enum(Object.keys(WINDOWS) as Window[]).default('10m') }),
      response: Queues,
      reads: 'statistics',
      handle: async ({ query: { window }, reader }) => {
        const [at, found, tallies] = await reader.texts(readQueues, parametersOf(NAMES, window))
        const figures = figuresOf(JSON.parse(tallies!) as Span[], window, Date.parse(at!))
        const queues = (JSON.parse(found!) as { queue: string }[]).map((queue) => ({
          ...queue,
          ...figures(queue.queue),
        }))
        return json(JSON.stringify({ at, window, span_seconds: WINDOWS[window].span, queues }))
      },
    }),

    route({
      method: 'patch',
      path: '/:queue',
      summary: 'Limit how many jobs of a queue run at once',
      description:
        'In all workers together: each of them has its share, from the next look on, which a notification causes. What runs already goes on.',
      params: QueueParams,
      body: z.strictObject({ limit: z.int().min(1).max(1_000_000).nullable() }),
      response: QueueControl,
      errors: ['queue.missing'],
      sideEffect: true,
      handle: (input) =>
        change(input, limitQueue(nameOf(input), input.body.limit), 'queue.limited', {
          limit: input.body.limit,
        }),
    }),

    route({
      method: 'post',
      path: '/:queue/pause',
      summary: 'Pause a queue: no worker starts its jobs, and those that run go on',
      description: 'Jobs may be added, and wait. Pausing it again changes nothing.',
      params: QueueParams,
      response: QueueControl,
      errors: ['queue.missing'],
      sideEffect: true,
      handle: (input) => change(input, pauseQueue(nameOf(input), input.caller.ownerId), 'queue.paused'),
    }),

    route({
      method: 'post',
      path: '/:queue/resume',
      summary: 'Resume a paused queue',
      params: QueueParams,
      response: QueueControl,
      errors: ['queue.missing'],
      sideEffect: true,
      handle: (input) => change(input, resumeQueue(nameOf(input)), 'queue.resumed'),
    }),
  ],
)

/** @throws queue.missing */
function nameOf({ params: { queue } }: Pick<OfQueue, 'params'>): string {
  if (!NAMES.includes(queue)) throw fail('queue.missing', { name: queue, names: NAMES.join(', ') })
  return queue
}

/** Makes a change, with an event of it unless it was so already; what is asked of the queue then. */
async function change<Body>(
  input: OfQueue<Body>,
  statement: ReturnType<typeof pauseQueue>,
  kind: 'queue.paused' | 'queue.resumed' | 'queue.limited',
  data: object = {},
): Promise<Answer<Controlled>> {
  const { queue } = input.params
  return input.transaction(async (tx) => {
    if ((await tx.maybeOne(statement)) !== null)
      await tx.run(audit(input, kind, { data: { queue, ...data } }))
    return json((await tx.one(controlOf(queue))).json)
  })
}
