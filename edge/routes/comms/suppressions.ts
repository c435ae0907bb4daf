import { z } from 'zod'
import {
  liftSuppression,
  readSuppressions,
  SUPPRESSION_ORDER,
  SUPPRESSION_REASONS,
} from '../../../sql/comms/suppressions.ts'
import { fail } from '../../../sql/errors.ts'
import { normalizeAddress } from '../../../tasks/platform/email-address.ts'
import { answerArray, buildCursorSchema } from '../../pipeline/request/lists.ts'
import { count, Timestamp } from '../../pipeline/request/schemas.ts'
import { Answer, route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'

const Suppression = z
  .strictObject({
    address: z.string().meta({ description: 'In lowercase' }),
    reason: z.enum(SUPPRESSION_REASONS),
    send_id: z.uuid().meta({ description: 'The email that caused it, which may have been pruned' }),
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
      'Their servers permanently rejected an email, or their owners marked one as spam. Emails to them are refused, including those of accounts.',
    query: z.object({
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(SUPPRESSION_ORDER),
    }),
    response: z.array(Suppression),
    reads: 'list',
    handle: async ({ query: { limit, cursor = null }, reader, request }) =>
      answerArray((await reader.text(readSuppressions, [cursor, 0, limit]))!, request),
  }),

  route({
    method: 'delete',
    path: '/suppressions/:address',
    auth: 'admin',
    summary: 'Lift the suppression of an address',
    description: 'The provider may have its own suppression list: remove the address from that list, too.',
    params: z.object({ address: z.string() }),
    errors: ['suppression.missing'],
    handle: (input) =>
      input.transaction(async (tx) => {
        const lifted = await tx.maybeOne(
          liftSuppression(normalizeAddress(input.params.address) ?? input.params.address),
        )
        if (lifted === null) throw fail('suppression.missing')
        await tx.run(appendAuditEvent(input, 'suppression.lifted', { data: lifted }))
        return new Answer<undefined>({})
      }),
  }),
]
