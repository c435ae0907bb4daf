import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import {
  liftSuppression,
  readSuppressions,
  SUPPRESSION_ORDER,
  SUPPRESSION_REASONS,
} from '../../../sql/suppressions.ts'
import { audit } from '../../pipeline/audit.ts'
import { array, cursor } from '../../pipeline/lists.ts'
import { Answer, route } from '../../pipeline/route.ts'
import { count, Timestamp } from '../../pipeline/schemas.ts'

const Suppression = z
  .strictObject({
    address: z.string().meta({ description: 'In lower case' }),
    reason: z.enum(SUPPRESSION_REASONS),
    send_id: z.uuid().meta({ description: 'The mail that it is known from, as long as that is kept' }),
    created_at: Timestamp,
  })
  .meta({ id: 'Suppression' })

/** The addresses that mail is not sent to, for admins. */
export const suppressionRoutes = [
  route({
    method: 'get',
    path: '/suppressions',
    auth: 'admin',
    summary: 'List the addresses that mail is not sent to, latest first',
    description:
      'Those whose servers have refused mail for good, and those that have marked it as spam. Mail to them is refused, that of accounts included.',
    query: z.object({
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: cursor(SUPPRESSION_ORDER),
    }),
    response: z.array(Suppression),
    reads: 'list',
    handle: async ({ query: { limit, cursor = null }, reader, request }) =>
      array((await reader.text(readSuppressions, [cursor, 0, limit]))!, request),
  }),

  route({
    method: 'delete',
    path: '/suppressions/:address',
    auth: 'admin',
    summary: 'Have mail sent to an address again',
    description: 'The provider may have a list of its own, from which it has to be removed, too.',
    params: z.object({ address: z.string() }),
    errors: ['suppression.missing'],
    handle: (input) =>
      input.transaction(async (tx) => {
        const lifted = await tx.maybeOne(liftSuppression(input.params.address))
        if (lifted === null) throw fail('suppression.missing')
        await tx.run(audit(input, 'suppression.lifted', { data: lifted }))
        return new Answer<undefined>({})
      }),
  }),
]
