import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import type { ErrorCode } from '../errors.ts'
import {
  branchByValue,
  buildArrayText,
  buildTimeSpanCondition,
  mapOrders,
  type PageValues,
  pairConditions,
} from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Ledger of messages. See `comms/tables.sql` for their states. */

export const CHANNELS = ['email', 'sms', 'call'] as const
export type Channel = (typeof CHANNELS)[number]

/** Streams of messages, which recipients leave separately. */
export const SEND_STREAMS = ['transactional', 'broadcast'] as const
export type SendStream = (typeof SEND_STREAMS)[number]

export const SEND_STATUSES = [
  'scheduled',
  'queued',
  'sending',
  'sent',
  'failed',
  'unknown',
  'cancelled',
  'delivered',
  'bounced',
  'complained',
] as const

export interface NewSend {
  readonly id: string
  readonly channel: Channel
  readonly ownerId: number | null
  readonly jobId: string
  readonly recipients: readonly string[]
  readonly message: object
  /** Time to send the message, in ISO 8601; null sends it immediately. */
  readonly sendAt?: string | null
  /** Name of the template that rendered the message. */
  readonly template?: string | null
  /** Attachments, which only mail supports. */
  readonly attachments?: readonly SendAttachment[]
  /** All recipients, also of copies; defaults to `recipients`. */
  readonly addresses?: readonly string[]
  /** Default: transactional. */
  readonly stream?: SendStream
}

const SendAttachment = z.object({
  document_id: z.number(),
  filename: z.string(),
  media_type: z.string(),
  byte_size: z.number(),
})
/** A stored document that is attached to a mail. */
export type SendAttachment = z.output<typeof SendAttachment>

const listDeliveries = (addresses: readonly string[]): string =>
  JSON.stringify([...new Set(addresses)].map((address) => ({ address })))

export const insertSend = (send: NewSend): Query<unknown> =>
  sql.type(noRows)`
    insert into comms_send (id, channel, stream, owner_id, job_id, recipients, deliveries, message, status, send_at, template, attachments)
    values (${send.id}::uuid, ${send.channel}, ${send.stream ?? 'transactional'}, ${send.ownerId}, ${send.jobId}::uuid,
      ${sql.array(send.recipients, 'text')}, ${listDeliveries(send.addresses ?? send.recipients)}::jsonb, ${JSON.stringify(send.message)}::jsonb,
      ${send.sendAt == null ? 'queued' : 'scheduled'}, ${send.sendAt ?? null}::timestamptz,
      ${send.template ?? null}, ${JSON.stringify(send.attachments ?? [])}::jsonb)`

/**
 * Computes the milliseconds from the start of this transaction to a time, by the database's clock. Negative for a past
 * time.
 */
export const computeMsUntil = (time: string): Query<{ ms: number }> =>
  sql.prepared('comms_ms_until', z.object({ ms: z.number() }))`
    select extract(epoch from ${time}::timestamptz - now())::float8 * 1000 as ms`

/** Records a mail about an account, once per job and without its text. Only admins can see it. */
export const insertAccountMail = (jobId: string, recipient: string, subject: string): Query<unknown> =>
  sql.type(noRows)`
    insert into comms_send (id, channel, purpose, job_id, recipients, deliveries, message)
    values (${jobId}::uuid, 'email', 'account', ${jobId}::uuid, array[${recipient}::text], ${listDeliveries([recipient])}::jsonb,
      ${JSON.stringify({ to: [recipient], subject })}::jsonb)
    on conflict on constraint comms_send_pkey do nothing`

const Send = z.object({
  id: z.string(),
  stream: z.enum(SEND_STREAMS),
  owner_id: z.number().nullable(),
  recipients: z.array(z.string()),
  deliveries: z.array(
    z.object({ address: z.string(), status: z.string().optional(), detail: z.string().nullish() }),
  ),
  message: z.unknown(),
  attachments: z.array(SendAttachment),
  status: z.enum(SEND_STATUSES),
  provider_id: z.string().nullable(),
  provider_status: z.string().nullable(),
  detail: z.string().nullable(),
  /** Creation time in ms since the epoch, on the database's clock. */
  created_ms: z.number(),
  /** Scheduled time in ms; the creation time if the message was not scheduled. */
  due_ms: z.number(),
  /** Time since `due_ms`, on the database's clock. */
  waited_ms: z.number(),
  requested_ms: z.number().nullable(),
})
export type Send = z.output<typeof Send>

const SEND_COLUMNS = sql.fragment`id, stream, owner_id, recipients, deliveries, message, attachments, status, provider_id, provider_status, detail,
  extract(epoch from created_at)::float8 * 1000 as created_ms,
  extract(epoch from coalesce(send_at, created_at))::float8 * 1000 as due_ms,
  extract(epoch from now() - coalesce(send_at, created_at))::float8 * 1000 as waited_ms,
  extract(epoch from requested_at)::float8 * 1000 as requested_ms`

export const findSendById = (id: string): Query<Send> =>
  sql.type(Send)`select ${SEND_COLUMNS} from comms_send where id = ${id}::uuid`

/**
 * Records that a request is about to be sent. No row if the message already has its outcome. Also no row if the
 * provider may have accepted an earlier request, unless requests are idempotent (`repeatable`).
 */
export const beginSendRequest = (
  id: string,
  { id: jobId, attempt }: { readonly id: string; readonly attempt: number },
  repeatable: boolean,
): Query<Send> =>
  sql.type(Send)`
    update comms_send set status = 'sending', requests = requests + 1, job_id = ${jobId}::uuid, attempt = ${attempt},
      requested_at = clock_timestamp(), next_attempt_at = null, settled_at = null, error_code = null, detail = null
    where id = ${id}::uuid and provider_id is null
      and (status in ('scheduled', 'queued', 'failed') or (status = 'sending' and ${repeatable}))
    returning ${SEND_COLUMNS}`

/** Outcomes of recipients by address. Without a status, the recipient has no outcome yet. */
export type Outcomes = Readonly<
  Record<string, { readonly status?: 'sent' | 'failed'; readonly detail?: string }>
>

/** Marks a message as accepted by the provider, even after `unknown`. No row if it has another outcome. */
export const markSent = (
  id: string,
  accepted: {
    providerId: string | null
    status: string
    detail: string | null
    outcomes?: Outcomes | undefined
  },
): Query<Send> =>
  sql.type(Send)`
    update comms_send set status = 'sent', provider_id = ${accepted.providerId}, provider_status = ${accepted.status},
      deliveries = comms_deliveries_merge(deliveries, ${JSON.stringify(accepted.outcomes ?? {})}::jsonb),
      detail = ${accepted.detail}, message = null, settled_at = now()
    where id = ${id}::uuid and status in ('sending', 'unknown')
      and not exists (select from comms_send other where other.channel = comms_send.channel
        and other.provider_id = ${accepted.providerId}::text and other.id <> comms_send.id)
    returning ${SEND_COLUMNS}`

// The messages whose request of this attempt the provider certainly rejected. Not those with a later attempt's request.
const isRejectedIn = (id: string, attempt: number) => sql.fragment`id = ${id}::uuid and provider_id is null
  and (status in ('scheduled', 'queued', 'failed') or (status = 'sending' and attempt = ${attempt}))`

/** Marks a message as failed, for the recipients that it has not reached. */
export const markFailed = (
  id: string,
  attempt: number,
  failure: { readonly code: string; readonly detail: string; readonly outcomes?: Outcomes },
): Query<unknown> =>
  sql.type(noRows)`
    select comms_send_close(array[id], 'failed', ${failure.code}, ${failure.detail}, ${JSON.stringify(failure.outcomes ?? {})}::jsonb)
    from comms_send where ${isRejectedIn(id, attempt)} for update`

/**
 * Queues a message again that the provider did not accept for now. A message that the provider may have accepted stays
 * `sending`.
 */
export const markDeferred = (
  id: string,
  attempt: number,
  deferral: {
    readonly seconds: number
    readonly detail: string
    readonly isUncertain: boolean
    readonly outcomes?: Outcomes
  },
): Query<unknown> =>
  sql.type(noRows)`
    update comms_send set status = ${deferral.isUncertain ? 'sending' : 'queued'}, detail = ${deferral.detail},
      next_attempt_at = now() + make_interval(secs => ${deferral.seconds}), error_code = null, settled_at = null,
      deliveries = comms_deliveries_merge(deliveries, ${JSON.stringify(deferral.outcomes ?? {})}::jsonb)
    where ${isRejectedIn(id, attempt)}`

/**
 * Cancels a message and its job, unless a request is under way. Returns the resulting status, which is not `cancelled`
 * if the call was too late. No row if the message does not exist.
 */
export const cancelSend = (id: string): Query<{ status: string; job_id: string }> =>
  sql.prepared('comms_send_cancel', z.object({ status: z.string(), job_id: z.string() }))`
    select status, job_id from comms_send_cancel(${id}::uuid)`

/** Marks the outcome of a message as unknown. No row if the message is no longer `sending`. */
export const markUnknown = (id: string, detail: string): Query<Send> =>
  sql.type(Send)`
    update comms_send set status = 'unknown', detail = ${detail}, next_attempt_at = null, settled_at = now()
    where id = ${id}::uuid and status = 'sending' returning ${SEND_COLUMNS}`

/** Finds the provider ids of messages to a recipient that were requested since a time (ms since the epoch). */
export const findAcceptedIds = (
  channel: Channel,
  recipient: string,
  sinceMs: number,
): Query<{ provider_id: string }> =>
  sql.type(z.object({ provider_id: z.string() }))`
    select provider_id from comms_send
    where channel = ${channel} and recipients[1] = ${recipient} and provider_id is not null
      and requested_at >= to_timestamp(${sinceMs / 1000}::float8)`

const UnknownSend = z.object({ id: z.string(), channel: z.enum(CHANNELS) })

/**
 * Finds a random sample of text messages and calls with an unknown outcome. Limited to requests of the last day, whose
 * outcome the provider may still report. Random order keeps messages that the provider never received from starving the
 * others.
 */
export const findUnknownSends = (limit: number): Query<z.output<typeof UnknownSend>> =>
  sql.type(UnknownSend)`
    select id, channel from comms_send
    where status = 'unknown' and channel in ('sms', 'call') and requested_at > now() - interval '1 day'
    order by random() limit ${limit}`

/**
 * Closes messages older than 10 s that no unfinished job works on. A message that was `sending` becomes `unknown`,
 * because the provider may have accepted it. Any other becomes `failed`.
 */
export const closeOrphanedSends = (limit: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with orphan as (
      select s.id, s.status from comms_send s
      where s.status in ('scheduled', 'queued', 'sending') and s.created_at < now() - interval '10 seconds'
        and not exists (select from job where job.id = s.job_id and job.finished_at is null)
      order by s.id limit ${limit} for update skip locked
    ), unknown as (
      update comms_send s set settled_at = now(), status = 'unknown', next_attempt_at = null,
        detail = 'The job ended while a request was under way'
      from orphan where s.id = orphan.id and orphan.status = 'sending'
    ), closed as (
      select comms_send_close(array(select id from orphan where status <> 'sending'), 'failed', 'job.cancelled',
        'The job ended before a request went out')
    )
    select count(*)::int as count from orphan, closed`

/** A provider's report about a message that it had accepted. */
export interface SendEvent {
  readonly channel: Channel
  /** The provider's id for the message. */
  readonly providerId: string
  /** Id of the message in `comms_send`; null if the event does not carry it. */
  readonly sendId: string | null
  readonly status: 'sent' | 'delivered' | 'failed' | 'bounced' | 'complained'
  readonly providerStatus: string
  /** Reason of the status `failed`; null for any other status. */
  readonly errorCode: ErrorCode | null
  readonly detail: string | null
  /** Address to suppress, and the id of the event. Only for `bounced` and `complained`. */
  readonly suppression?: { readonly address: string; readonly eventId: string }
}

/** Applies provider events to messages. Returns how many messages changed their status. */
export const applySendEvents = (events: readonly SendEvent[]): Query<{ moved: number }> => {
  const rows = events.map((event) => ({
    channel: event.channel,
    provider_id: event.providerId,
    send_id: event.sendId,
    status: event.status,
    provider_status: event.providerStatus,
    error_code: event.errorCode,
    detail: event.detail,
    event_id: event.suppression?.eventId,
    suppresses: event.suppression?.address,
  }))
  return sql.prepared('comms_events_apply', z.object({ moved: z.number() }))`
    select comms_events_apply(${JSON.stringify(rows)}::jsonb) as moved`
}

// Statements for the edge. `who` is the caller's account id. `everything` is true for admins.

const SEND_JSON = `json_build_object('id', s.id, 'channel', s.channel, 'stream', s.stream, 'to', s.recipients, 'recipients', comms_recipients_json(s),
  'status', s.status, 'next_attempt_at', iso(s.next_attempt_at), 'provider_id', s.provider_id, 'provider_status', s.provider_status, 'requests', s.requests, 'detail', s.detail,
  'job_id', s.job_id, 'created_at', iso(s.created_at), 'send_at', iso(s.send_at), 'template', s.template, 'attachments', s.attachments, 'requested_at', iso(s.requested_at),
  'settled_at', iso(s.settled_at))`

// Admins see every message. Others see their own messages and those of callers without an account. They do not see
// mails about accounts, which name addresses. No two conditions hold for the same row.
const VISIBILITY_CONDITIONS = [
  '$2::boolean',
  'not $2::boolean and s.owner_id = $1::int',
  `not $2::boolean and s.owner_id is null and s.purpose = 'caller'`,
]
const CHANNEL_CONDITIONS = branchByValue('s.channel', '$3::text', CHANNELS)
// Each status has its own index.
const STATUS_CONDITIONS = ['$4::text is null', 's.status = $4::text']
export const SEND_ORDERS = { created_at: { 's.created_at': 'timestamptz', 's.id': 'uuid' } } as const

type Filters = [
  who: number | null,
  everything: boolean,
  channel: string | null,
  status: string | null,
  from: string | null,
  to: string | null,
]

/** Messages filtered by channel, status and time. Null matches any value. */
export const readSends = mapOrders(
  SEND_ORDERS,
  (column, order, direction): ReadStatement<[...Filters, ...page: PageValues]> => ({
    name: `comms_sends_by_${column}_${direction}`,
    text: buildArrayText({
      table: 'comms_send',
      row: 's',
      parameters: 6,
      where: pairConditions(
        pairConditions(VISIBILITY_CONDITIONS, pairConditions(CHANNEL_CONDITIONS, STATUS_CONDITIONS)),
        [buildTimeSpanCondition('s.created_at', '$5', '$6')],
      ),
      order,
      hasPageNumbers: false,
      direction,
      item: SEND_JSON,
    }),
  }),
)

/** One message that the caller may see. */
export const readSend: ReadStatement<[who: number | null, everything: boolean, id: string]> = {
  name: 'comms_send',
  text: `select ${SEND_JSON}::text from comms_send s where (${VISIBILITY_CONDITIONS.join(' or ')}) and s.id = $3::uuid`,
}

/**
 * `true` if the caller may cancel a message, `false` if the message has no owner. No row if the caller cannot see it.
 */
export const readSendOwnership: ReadStatement<[who: number | null, everything: boolean, id: string]> = {
  name: 'comms_send_is_own',
  text: `select ($2::boolean or s.owner_id is not null)::text from comms_send s where (${VISIBILITY_CONDITIONS.join(' or ')}) and s.id = $3::uuid`,
}

/** Number of messages with an unknown outcome. */
export const readUnknownSendCount: ReadStatement<[]> = {
  name: 'comms_unknown',
  text: `select count(*)::text from comms_send where status = 'unknown'`,
}
