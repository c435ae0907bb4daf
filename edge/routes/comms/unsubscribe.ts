import { z } from 'zod'
import { suppressUnsubscribed } from '../../../sql/comms/suppressions.ts'
import { fail } from '../../../sql/errors.ts'
import { readUnsubscribeToken, UNSUBSCRIBE_PATH } from '../../../tasks/comms/unsubscribe.ts'
import { route } from '../../pipeline/route.ts'

/** Handles the button of the page of an unsubscribe link, and the one click in mail clients (RFC 8058). */
export const unsubscribeRoute = route({
  method: 'post',
  path: UNSUBSCRIBE_PATH,
  summary: 'Unsubscribe the recipient of an email',
  description:
    'Mail clients post to the URL in `List-Unsubscribe`. The address is then suppressed for the stream of the email. The body is ignored.',
  query: z.object({ token: z.string().default('') }),
  response: z.strictObject({ detail: z.string() }).meta({ id: 'Unsubscribed' }),
  errors: ['suppression.link_invalid'],
  whyRepeatable: 'an address is unsubscribed only once',
  handle: async ({ edge, query }) => {
    const subscription = readUnsubscribeToken(edge.keys, query.token)
    if (subscription === null) throw fail('suppression.link_invalid')
    await edge.db.run(suppressUnsubscribed(subscription))
    return { detail: 'You are unsubscribed' }
  },
})
