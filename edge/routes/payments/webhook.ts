import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { countIgnoredEvent } from '../../../sql/payments/changes.ts'
import { ingestEvent } from '../../../tasks/payments/event.task.ts'
import { EVENT_TYPES, findIgnoreReason, parseEvent } from '../../../tasks/payments/provider-events.ts'
import { objectOf } from '../../../tasks/payments/reading.ts'
import { modeOf } from '../../../tasks/payments/settings.ts'
import type { EdgeRequest, Responder } from '../../http/server.ts'
import type { Edge } from '../../pipeline/context.ts'
import { Answer, route } from '../../pipeline/route.ts'
import { RECEIVED, Received, readEventBytes } from '../../pipeline/write/provider-events.ts'
import { verifyEvent } from './signature.ts'

// Time that a request waits for its job, so that a later read usually sees the event applied.
const APPLY_WAIT_MS = 2000

const EventBody = z.looseObject({ id: z.string(), type: z.string() }).meta({ id: 'ProviderEvent' })

/** Receives the provider's events. All invalid requests get the same error. */
export const webhookRoute = route({
  method: 'post',
  path: '/webhook',
  auth: 'public',
  summary: 'Receive an event of the payment provider',
  description: `Requires the provider's signature in the header \`Stripe-Signature\`, at most 300 s old. Stores each event \
once, and applies it before the response or soon after. Types: ${[...EVENT_TYPES].join(', ')}. All other types are \
acknowledged and ignored, as are events of connected accounts and of the other mode, which \
\`GET /payment/status\` counts.`,
  body: EventBody,
  bodyType: 'bytes',
  response: Received,
  errors: ['payment.payload', 'payment.webhook_not_configured', 'internal', 'database.down'],
  whyRepeatable: 'an event is stored once, by its id',
  raw: async ({ edge, request, requestId, responder }) => {
    const value = await readSignedEvent(edge, request)
    const ignored = findIgnoreReason(value, modeOf(edge.settings.payments.secretKey))
    if (ignored === null) {
      const event = parseEvent(value)
      if (event === null) throw fail('payment.payload')
      const options = { ownerId: null, requestId, settings: edge.settings }
      const { jobId } = await edge.db.transaction((tx) => ingestEvent(tx, event, options))
      if (jobId !== null) await waitUntilApplied(edge, jobId, requestId, responder)
    } else if (ignored !== 'type') {
      await edge.db.run(countIgnoredEvent(ignored, String(objectOf(value).type)))
    }
    return new Answer<z.input<typeof Received>>({ value: RECEIVED })
  },
})

async function readSignedEvent(edge: Edge, request: EdgeRequest): Promise<unknown> {
  const secrets = edge.settings.payments.webhookSecrets
  if (secrets.length === 0) throw fail('payment.webhook_not_configured')
  const body = await readEventBytes(edge, request, 'payment.payload')
  return verifyEvent(body, request.header('stripe-signature'), secrets, edge.healthCheck.now())
}

/** Waits briefly for the job. If the job fails, the error makes the provider redeliver the event. */
async function waitUntilApplied(
  edge: Edge,
  jobId: string,
  requestId: string,
  responder: Responder,
): Promise<void> {
  const disconnect = new AbortController()
  responder.onClose(() => disconnect.abort())
  const end = await edge.hub.waitForTerminal(jobId, APPLY_WAIT_MS, disconnect.signal)
  if (end !== null && end.status !== 'done') throw fail('internal', { requestId })
}
