import { z } from 'zod'
import { Failure, fail } from '../../../sql/errors.ts'
import { ingestEvent } from '../../../tasks/payments/event.ts'
import { EVENT_TYPES, readEvent } from '../../../tasks/payments/provider-events.ts'
import type { EdgeRequest, Responder } from '../../http/server.ts'
import type { Edge } from '../../pipeline/context.ts'
import { jsonBytes } from '../../pipeline/input.ts'
import { Answer, route } from '../../pipeline/route.ts'
import { verifiedEvent } from './signature.ts'

// So long an event waits for its job: what the provider or its user reads next is there already.
const WAIT_MS = 2000

const Received = z.strictObject({ received: z.literal('true') }).meta({ id: 'Received' })
const EventBody = z.looseObject({ id: z.string(), type: z.string() }).meta({ id: 'ProviderEvent' })

/** Where the provider tells what has happened. Whatever is wrong with a request is told in one way only. */
export const webhook = route({
  method: 'post',
  path: '/webhook',
  auth: 'public',
  summary: 'An event of the payment provider',
  description: `Signed by the provider: header \`Stripe-Signature\`, at most 300 s old. An event is stored once, however often it \
comes, and applied by the time of the answer, or soon after. Types: ${[...EVENT_TYPES].join(', ')}; any other is acknowledged \
and forgotten.`,
  body: EventBody,
  bodyType: 'bytes',
  response: Received,
  errors: ['payment.payload', 'payment.webhook_not_configured', 'internal', 'database.down'],
  repeatable: 'an event is known by its id',
  raw: async ({ edge, request, requestId, responder }) => {
    const event = readEvent(await signedEvent(edge, request))
    if (event === null) throw fail('payment.payload')
    if (EVENT_TYPES.has(event.type)) {
      const options = { ownerId: null, requestId, maxTries: edge.settings.workerMaxTries }
      const { jobId } = await edge.db.transaction((tx) => ingestEvent(tx, event, options))
      if (jobId !== null) await waitUntilApplied(edge, jobId, requestId, responder)
    }
    return new Answer<z.input<typeof Received>>({ value: { received: 'true' } })
  },
})

async function signedEvent(edge: Edge, request: EdgeRequest): Promise<unknown> {
  const secrets = edge.settings.payments.webhookSecrets
  if (secrets.length === 0) throw fail('payment.webhook_not_configured')
  const body = await request.body.bytes(jsonBytes(edge.settings)).catch((error) => {
    if (error instanceof Failure && error.code === 'request.too_large') throw fail('payment.payload')
    throw error
  })
  return verifiedEvent(body, request.header('stripe-signature'), secrets, edge.pulse.now())
}

/** Waits for the job, not for long. One that has failed is a fault of ours: the provider sends its event again. */
async function waitUntilApplied(
  edge: Edge,
  jobId: string,
  requestId: string,
  responder: Responder,
): Promise<void> {
  edge.publisher.notify(jobId)
  const gone = new AbortController()
  responder.onClose(() => gone.abort())
  const end = await edge.hub.terminal(jobId, WAIT_MS, gone.signal)
  if (end !== null && end.status !== 'done') throw fail('internal', { requestId })
}
