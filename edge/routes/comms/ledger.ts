import { z } from 'zod'
import {
  CHANNELS,
  cancelSend,
  readSend,
  readSendOwnership,
  readSends,
  readUnknownSendCount,
  SEND_ORDERS,
  SEND_STATUSES,
} from '../../../sql/comms/sends.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { addressOf } from '../../../tasks/comms/mailbox.ts'
import { findMissingEmailSettings, findMissingTelephonySettings } from '../../../tasks/comms/settings.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import {
  answerArray,
  buildCursorSchema,
  buildSortSchema,
  buildTimeRangeFields,
} from '../../pipeline/request/lists.ts'
import { count } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { CommsStatus, Send } from './shapes.ts'

const NEWEST_FIRST = { column: 'created_at', direction: 'desc' } as const

/** Routes for the configuration status and for the ledger of sends. */
export const ledgerRoutes = [
  route({
    method: 'get',
    path: '/status',
    summary: 'Get the configuration status of all channels',
    description: 'Has the number of sends with an unknown outcome. Does not call the providers.',
    response: CommsStatus,
    reads: 'statistics',
    mayLag: true,
    handle: async ({ edge, reader }) => {
      const unknown = await reader.text(readUnknownSendCount, [])
      return { ...listChannelStatuses(edge.settings), unknown_sends: Number(unknown) }
    },
  }),

  route({
    method: 'get',
    path: '/sends',
    summary: 'List the sends of the caller',
    description:
      'Newest first, unless `sort` is given. Admins see all sends. Sends are kept for `SENDS_KEEP_DAYS` after their last change of status.',
    query: z.object({
      channel: z.enum(CHANNELS).optional(),
      status: z.enum(SEND_STATUSES).optional(),
      ...buildTimeRangeFields('Requested'),
      sort: buildSortSchema(SEND_ORDERS),
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(SEND_ORDERS.created_at),
    }),
    response: z.array(Send),
    reads: 'list',
    handle: async ({ query, caller, reader, request }) => {
      const {
        channel = null,
        status = null,
        from = null,
        to = null,
        sort = NEWEST_FIRST,
        cursor = null,
        limit,
      } = query
      const viewer = [caller.ownerId, caller.role === 'admin'] as const
      const values = [...viewer, channel, status, from, to, cursor, 0, limit] as const
      return answerArray((await reader.text(readSends[sort.column][sort.direction], values))!, request)
    },
  }),

  route({
    method: 'get',
    path: '/sends/:id',
    summary: 'Get a send and its outcome',
    params: z.object({ id: z.string() }),
    response: Send,
    errors: ['send.missing'],
    handle: async ({ params, caller, edge }) => {
      const text = isUuid(params.id)
        ? await edge.reader.text(readSend, [caller.ownerId, caller.role === 'admin', params.id])
        : null
      if (text === null) throw fail('send.missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'delete',
    path: '/sends/:id',
    summary: 'Cancel a message before it is sent',
    description:
      'Only for its sender and admins. The message is never sent, and its job is cancelled; cancelling the job has the same effect. A message that is being sent or was sent does not change.',
    params: z.object({ id: z.string() }),
    response: Send,
    errors: ['send.missing', 'auth.forbidden', 'send.not_cancellable'],
    handle: async ({ params, caller, edge }) => {
      const parameters = [caller.ownerId, caller.role === 'admin', params.id] as const
      const isOwn = isUuid(params.id) ? await edge.reader.text(readSendOwnership, parameters) : null
      if (isOwn === null) throw fail('send.missing')
      if (isOwn === 'false') throw fail('auth.forbidden', { roles: 'admin' })
      const cancelled = await edge.db.maybeOne(cancelSend(params.id))
      const text = cancelled && (await edge.reader.text(readSend, parameters))
      if (text === null) throw fail('send.missing')
      if (cancelled!.status !== 'cancelled') throw fail('send.not_cancellable', { status: cancelled!.status })
      edge.publisher.notify(cancelled!.job_id)
      return answerJson(text)
    },
  }),
]

function listChannelStatuses({
  email,
  telephony,
}: Settings): Omit<z.input<typeof CommsStatus>, 'unknown_sends'> {
  const missing = {
    email: [...findMissingEmailSettings(email)],
    sms: [...findMissingTelephonySettings(telephony, telephony.smsFrom)],
    call: [...findMissingTelephonySettings(telephony, telephony.phoneNumber)],
  }
  const domains = email.apiKey === null ? ['EMAIL_PROVIDER_API_KEY'] : []
  return {
    email: buildChannelStatus(
      nameMailProvider(email.smtpUrl),
      email.from === '' ? null : addressOf(email.from),
      missing.email,
    ),
    sms: buildChannelStatus('twilio', telephony.smsFrom, missing.sms),
    call: buildChannelStatus('twilio', telephony.phoneNumber, missing.call),
    domains: buildChannelStatus('resend', null, domains),
  }
}

function buildChannelStatus(provider: string, from: string | null, missing: string[]) {
  const isConfigured = missing.length === 0
  return { configured: isConfigured, provider: isConfigured ? provider : null, from, missing }
}

function nameMailProvider(smtpUrl: string | null): string {
  if (smtpUrl === 'outbox:') return 'outbox'
  return smtpUrl !== null && /(^|\.)resend\.com$/.test(new URL(smtpUrl).hostname) ? 'resend' : 'smtp'
}
