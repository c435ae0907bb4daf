import { z } from 'zod'
import { applySendEvents } from '../../../sql/comms/sends.ts'
import { liftSuppression, suppressOptedOutRecipient } from '../../../sql/comms/suppressions.ts'
import { fail } from '../../../sql/errors.ts'
import { TWILIO_CALLBACK_PATH } from '../../../tasks/comms/callback.ts'
import { hasValidSignature } from '../../../tasks/webhooks/signature.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Edge } from '../../pipeline/context.ts'
import { Answer, route } from '../../pipeline/route.ts'
import { RECEIVED, Received, readEventBytes } from '../../pipeline/write/provider-events.ts'
import { convertResendEvent, ResendEvent } from './resend-events.ts'
import { convertTwilioEvent, findOptIn, isIncomingMessage, isOptOut } from './twilio-events.ts'
import { isFromTwilio } from './twilio-signature.ts'

const STATUS_RULES =
  'A status never moves back, in whatever order events arrive. Events about messages of other senders are ignored.'
const WHY_REPEATABLE = 'the same event changes a message only once'

/** Routes for the webhooks of providers, which report events of the messages that they have accepted. */
export const webhookRoutes = [
  route({
    method: 'post',
    path: '/webhooks/twilio',
    auth: 'public',
    summary: 'Receive a status callback or a text message of the telephony provider',
    description: `Requires the provider's signature of the URL and the parameters in the header \`X-Twilio-Signature\`. \
Messages and calls name this URL only if \`PUBLIC_BASE_URL\` is https. ${STATUS_RULES} An incoming \
text message such as START lifts the suppression of its number; others change nothing.`,
    query: z.object({ send_id: z.uuid().optional() }),
    body: z.record(z.string(), z.string()).meta({ id: 'StatusCallback' }),
    bodyType: 'form',
    response: Received,
    alsoAnswers: { 204: 'An incoming text message, to which there is no reply' },
    errors: ['send.event_invalid', 'telephony.not_configured'],
    whyRepeatable: WHY_REPEATABLE,
    handle: async ({ edge, request, query, body }) => {
      const { telephony, publicBaseUrl } = edge.settings
      if (telephony.authToken === null) throw fail('telephony.not_configured')
      const url = `${publicBaseUrl}${TWILIO_CALLBACK_PATH}${request.query === '' ? '' : `?${request.query}`}`
      const signature = request.header('x-twilio-signature')
      if (!(await isFromTwilio(telephony.authToken, signature, url, body))) throw fail('send.event_invalid')
      if (isIncomingMessage(body)) {
        const number = findOptIn(body)
        if (number !== null) await edge.db.maybeOne(liftSuppression(number, null))
        return new Answer<z.input<typeof Received>>({ status: 204 })
      }
      const event = convertTwilioEvent(body, query.send_id ?? null)
      if (event !== null)
        await edge.db.transaction(async (tx) => {
          const { moved } = await tx.one(applySendEvents([event]))
          // A repeated callback must not restore a suppression that was lifted.
          if (moved > 0 && event.status === 'failed' && isOptOut(body))
            await tx.run(suppressOptedOutRecipient(event.providerId))
        })
      return RECEIVED
    },
  }),

  route({
    method: 'post',
    path: '/webhooks/resend',
    auth: 'public',
    summary: 'Receive an event of the email provider',
    description: `Requires the provider's signature in the headers \`svix-id\`, \`svix-timestamp\` and \
\`svix-signature\`, at most 300 s old. ${STATUS_RULES}`,
    body: ResendEvent.meta({ id: 'EmailEvent' }),
    bodyType: 'bytes',
    response: Received,
    errors: ['send.event_invalid', 'email.events_not_configured'],
    whyRepeatable: WHY_REPEATABLE,
    raw: async ({ edge, request }) => {
      const event = convertResendEvent(request.header('svix-id'), await readSignedEvent(edge, request))
      if (event !== null) await edge.db.one(applySendEvents([event]))
      return new Answer<z.input<typeof Received>>({ value: RECEIVED })
    },
  }),
]

/** @throws fail('send.event_invalid') */
async function readSignedEvent(edge: Edge, request: EdgeRequest): Promise<ResendEvent> {
  const secret = edge.settings.email.webhookSecret
  if (secret === null) throw fail('email.events_not_configured')
  const body = await readEventBytes(edge, request, 'send.event_invalid')
  const signatures = {
    id: request.header('svix-id'),
    timestamp: request.header('svix-timestamp'),
    signature: request.header('svix-signature'),
  }
  if (!hasValidSignature(signatures, body, secret, edge.healthCheck.now())) throw fail('send.event_invalid')
  try {
    return ResendEvent.parse(JSON.parse(Buffer.from(body).toString()))
  } catch (error) {
    throw fail('send.event_invalid', {}, { cause: error })
  }
}
