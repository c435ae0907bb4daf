import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import { branchByValue, buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { SEND_STREAMS, type SendStream } from './sends.ts'

/**
 * Suppressed mail addresses and phone numbers. Provider events (`comms/functions`), unsubscriptions and refusals by the
 * telephony provider add them.
 */

export const SUPPRESSION_REASONS = ['bounced', 'complained', 'unsubscribed', 'opted_out'] as const
export const SUPPRESSION_CHANNELS = ['email', 'sms'] as const

/**
 * Returns those of the given addresses that are suppressed in a stream. Ignores case. `account` is the transactional
 * stream without unsubscriptions: they are no reason to withhold mails about the recipient's own account.
 */
export const filterSuppressed = (
  addresses: readonly string[],
  stream: SendStream | 'account',
): Query<{ address: string }> =>
  sql.prepared('comms_suppressed', z.object({ address: z.string() }))`
    select address from comms_suppression
    where address = any(array(select lower(given) from unnest(${sql.array(addresses, 'text')}) given))
      and stream = ${stream === 'account' ? 'transactional' : stream}
      and not (${stream === 'account'} and reason = 'unsubscribed') order by address`

/** Suppresses an address for a stream because its owner has unsubscribed. An earlier suppression keeps its reason. */
export const suppressUnsubscribed = (from: {
  readonly address: string
  readonly stream: SendStream
  readonly sendId: string
}): Query<unknown> =>
  sql.type(noRows)`
    insert into comms_suppression (address, stream, reason, send_id)
    values (lower(${from.address}), ${from.stream}, 'unsubscribed', ${from.sendId}::uuid)
    on conflict on constraint comms_suppression_pkey do nothing`

/** Suppresses a phone number because its owner has opted out of text messages. */
export const suppressOptedOut = (number: string, sendId: string): Query<unknown> =>
  sql.type(noRows)`
    insert into comms_suppression (channel, address, reason, send_id)
    values ('sms', ${number}, 'opted_out', ${sendId}::uuid)
    on conflict on constraint comms_suppression_pkey do nothing`

/**
 * Suppresses the number of a text message that the provider accepted, and failed later because the owner has opted out.
 */
export const suppressOptedOutRecipient = (providerId: string): Query<unknown> =>
  sql.type(noRows)`
    insert into comms_suppression (channel, address, reason, send_id)
    select 'sms', recipients[1], 'opted_out', id from comms_send
    where channel = 'sms' and provider_id = ${providerId}
    on conflict on constraint comms_suppression_pkey do nothing`

const Lifted = z.object({ address: z.string(), streams: z.array(z.enum(SEND_STREAMS)) })

/** Lifts the suppression of an address in a stream, or in all (null); no row if the address is not suppressed. */
export const liftSuppression = (address: string, stream: SendStream | null): Query<z.output<typeof Lifted>> =>
  sql.type(Lifted)`
    with lifted as (
      delete from comms_suppression
      where address = lower(${address}) and stream = coalesce(${stream}::text, stream) returning address, stream
    )
    select address, array_agg(stream order by stream) as streams from lifted group by address`

export const SUPPRESSION_ORDER = {
  's.created_at': 'timestamptz',
  's.address': 'text',
  's.stream': 'text',
} as const

/** Suppressions, of one stream or of all (null). */
export const readSuppressions: ReadStatement<[stream: string | null, ...page: PageValues]> = {
  name: 'comms_suppressions',
  text: buildArrayText({
    table: 'comms_suppression',
    row: 's',
    parameters: 1,
    where: branchByValue('s.stream', '$1::text', SEND_STREAMS),
    order: SUPPRESSION_ORDER,
    hasPageNumbers: false,
    direction: 'desc',
    item: `json_build_object('channel', s.channel, 'address', s.address, 'stream', s.stream, 'reason', s.reason, 'send_id', s.send_id, 'created_at', iso(s.created_at))`,
  }),
}
