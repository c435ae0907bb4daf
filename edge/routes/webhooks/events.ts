import { z } from 'zod'
import {
  CHALLENGE_EVENT,
  type DeliveryType,
  TEST_EVENT,
  WEBHOOK_EVENTS,
} from '../../../sql/webhooks/webhooks.ts'
import { ExtractCounts } from '../../../tasks/documents/extraction.ts'
import { Subscription, Transaction } from '../../../tasks/payments/shapes.ts'
import { Timestamp } from '../../pipeline/request/schemas.ts'
import { Post } from '../blog/shapes.ts'
import { Send } from '../comms/shapes.ts'
import { Job } from '../jobs/shapes.ts'
import { Dispute } from '../payments/shapes.ts'

/**
 * The messages that endpoints receive: the scopes that events need, the `webhooks` section of the reference and the
 * examples of tests follow from it.
 */

interface MessageDefinition {
  /** Area whose read scope an API key needs for the event; null for messages about the endpoint itself. */
  readonly area: string | null
  readonly summary: string
  readonly data: z.ZodType
  /** True if the event may have no account, such as a post without an author. */
  readonly mayLackAccount?: boolean
}

const { error } = Job.shape

const EXAMPLE_JOB = {
  job_id: '01a20118-fbcc-738c-80ed-00058e0e401d',
  name: 'documents.extract',
  queue: 'documents',
  label: 'Page 3 of 3: text layer',
  progress: { current: 3, total: 3 },
  attempts: 1,
  retry_of: null,
  batch_id: null,
  created_at: '2026-03-01T09:30:00.000Z',
  run_at: null,
  started_at: '2026-03-01T09:30:00.120Z',
  finished_at: '2026-03-01T09:30:02.480Z',
  expires_at: null,
}

/** The data of an ended job. */
const endedJob = <S extends string, E extends z.ZodType>(
  status: S,
  itsError: E,
  example: { readonly result: unknown; readonly error: z.output<E> },
) =>
  z
    .strictObject({
      ...Job.shape,
      status: z.literal(status),
      error: itsError,
      finished_at: Timestamp,
      result_omitted: z.literal(true).optional().describe('Present if the result is over 16 KiB'),
    })
    .meta({ examples: [{ ...EXAMPLE_JOB, status, ...example }] })

const { id, channel, to, job_id, provider_id, detail, created_at } = Send.shape
const send = z
  .strictObject({
    ...{ id, channel, to, job_id, provider_id, detail, created_at },
    status: Send.shape.status.exclude(['scheduled', 'queued', 'sending']),
    error_code: z.string().nullable(),
    settled_at: Timestamp.nullable(),
  })
  .meta({
    examples: [
      {
        id: '01a20118-fbcc-738c-80ed-00058e0e401d',
        job_id: '01a20118-fbcc-738c-80ed-00058e0e401d',
        channel: 'email',
        to: ['ann@example.com'],
        status: 'bounced',
        provider_id: '01a20118-fbcc-738c-80ed-00058e0e401d',
        error_code: null,
        detail: 'The mailbox does not exist',
        created_at: '2026-03-01T09:30:00.000Z',
        settled_at: '2026-03-01T09:30:02.480Z',
      },
    ],
  })

const payment = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('transaction'), transaction: Transaction }),
  z.strictObject({ kind: z.literal('subscription'), subscription: Subscription }),
  z.strictObject({ kind: z.literal('dispute'), dispute: Dispute }),
])

export const MESSAGES = {
  'job.done': {
    area: 'jobs',
    summary: 'A job succeeded',
    data: endedJob('done', z.null(), { result: { read: 3, unread: 0, skipped: 0 }, error: null }),
  },
  'job.failed': {
    area: 'jobs',
    summary: 'A job failed',
    data: endedJob('failed', error.unwrap(), {
      result: null,
      error: { code: 'document.empty', detail: 'The file is empty' },
    }),
  },
  'job.cancelled': {
    area: 'jobs',
    summary: 'A job was cancelled',
    data: endedJob('cancelled', error, { result: null, error: null }),
  },
  'batch.done': {
    area: 'batches',
    summary: 'All jobs of a batch have ended',
    data: endedJob('done', error, {
      result: { total: 3, done: 2, failed: 1, cancelled: 0 },
      error: null,
    }).extend({ status: z.enum(['done', 'failed', 'cancelled']) }),
  },
  'document.read': {
    area: 'documents',
    summary: 'The pages of a document were read',
    data: z.strictObject({ document_id: z.int(), job_id: z.uuid(), result: ExtractCounts }),
  },
  'send.changed': { area: 'comms', summary: 'A message reached another state', data: send },
  'payment.changed': {
    area: 'payments',
    summary: 'A transaction, subscription or dispute is new or changed',
    data: payment,
  },
  'post.published': {
    area: 'blog',
    summary: 'A post became public, when it was published or at its scheduled time',
    data: Post.omit({ content: true }),
    mayLackAccount: true,
  },
  [CHALLENGE_EVENT]: {
    area: null,
    summary: 'Asks the receiver to echo a token',
    data: z.strictObject({ challenge: z.string() }),
  },
  [TEST_EVENT]: {
    area: null,
    summary: 'A test of the endpoint, with the example of an event if the caller chose one',
    data: z.strictObject({
      type: z.enum(WEBHOOK_EVENTS).nullable(),
      data: z.unknown().describe('Example data of that event; null without one'),
    }),
  },
} as const satisfies Readonly<Record<DeliveryType, MessageDefinition>>

const mayLackAccount = (message: MessageDefinition): boolean =>
  message.area === null || message.mayLackAccount === true

/** Returns the schema of a message as endpoints receive it. */
export const buildMessageSchema = (type: DeliveryType) =>
  z.strictObject({
    type: z.literal(type),
    timestamp: Timestamp,
    account_id: (mayLackAccount(MESSAGES[type]) ? z.int().nullable() : z.int()).describe(
      'The account of the event',
    ),
    data: MESSAGES[type].data,
  })

/** Returns the area that an API key must be able to read to see messages of a type; null if it needs none. */
export const areaOfMessage = (type: DeliveryType): string | null => MESSAGES[type].area
