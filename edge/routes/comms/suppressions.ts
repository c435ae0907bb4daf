import { z } from 'zod'
import { SEND_STREAMS } from '../../../sql/comms/sends.ts'
import {
  liftSuppression,
  readSuppressions,
  SUPPRESSION_CHANNELS,
  SUPPRESSION_ORDER,
  SUPPRESSION_REASONS,
} from '../../../sql/comms/suppressions.ts'
import { fail } from '../../../sql/errors.ts'
import { normalizeAddress } from '../../../tasks/platform/email-address.ts'
import { answerArray, buildCursorSchema } from '../../pipeline/request/lists.ts'
import { count, Timestamp } from '../../pipeline/request/schemas.ts'
import { Answer, route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'

const Stream = z.enum(SEND_STREAMS).optional().meta({ description: 'Default: all streams' })

const Suppression = z
  .strictObject({
    channel: z.enum(SUPPRESSION_CHANNELS),
    address: z.string().meta({ description: 'An email address in lowercase, or a phone number' }),
    stream: z.enum(SEND_STREAMS).meta({ description: 'The stream that the address no longer gets' }),
    reason: z.enum(SUPPRESSION_REASONS),
    send_id: z
      .uuid()
      .nullable()
      .meta({ description: 'The message that caused it, which may have been pruned; null without one' }),
    created_at: Timestamp,
  })
  .meta({ id: 'Suppression' })

/** Routes for suppressed addresses, which only admins may use. */
export const suppressionRoutes = [
  route({
    method: 'get',
    path: '/suppressions',
    auth: 'admin',
    summary: 'List suppressed addresses, latest first',
    description:
      'Their servers permanently rejected an email, or their owners marked one as spam or unsubscribed. Emails of the stream to them are refused. Emails of accounts are transactional, and ignore unsubscriptions. A permanent bounce, or a complaint about a transactional email, suppresses both streams. Numbers that the telephony provider reports as opted out get no text messages.',
    query: z.object({
      stream: Stream,
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(SUPPRESSION_ORDER),
    }),
    response: z.array(Suppression),
    reads: 'list',
    handle: async ({ query: { stream = null, limit, cursor = null }, reader, request }) =>
      answerArray((await reader.text(readSuppressions, [stream, cursor, 0, limit]))!, request),
  }),

  route({
    method: 'delete',
    path: '/suppressions/:address',
    auth: 'admin',
    summary: 'Lift the suppression of an address',
    description: 'The provider may have its own suppression list: remove the address from that list, too.',
    params: z.object({ address: z.string() }),
    query: z.object({ stream: Stream }),
    errors: ['suppression.missing'],
    handle: (input) =>
      input.transaction(async (tx) => {
        const { params, query } = input
        const address = normalizeAddress(params.address) ?? params.address
        const lifted = await tx.maybeOne(liftSuppression(address, query.stream ?? null))
        if (lifted === null) throw fail('suppression.missing')
        await tx.run(appendAuditEvent(input, 'suppression.lifted', { data: lifted }))
        return new Answer<undefined>({})
      }),
  }),
]
