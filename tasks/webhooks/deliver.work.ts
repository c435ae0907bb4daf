import {
  CHALLENGE_EVENT,
  claimDeliveries,
  type DeliveryResult,
  type DueDelivery,
  listEndpointOwners,
  markEndpointVerified,
  recordDeliveryAttempt,
  type WEBHOOK_OUTCOMES,
} from '../../sql/webhooks/webhooks.ts'
import type { TaskContext } from '../context.ts'
import { enqueueMany } from '../task.ts'
import { mailDisabledEndpoint } from './disabled-endpoint.task.ts'
import { signWebhook, webhookSealUseOf } from './signature.ts'

// Maximum concurrent requests per endpoint. Their order is undefined. A slow endpoint delays only its own deliveries.
const MAX_CONCURRENT = 8
// Maximum time of a run, after which other endpoints get the slot.
const MAX_RUN_MS = 60_000
// A delivery without a recorded attempt becomes due again this long after the request timeout.
const HOLD_MARGIN_SECONDS = 30

/** Runs `webhooks.deliver`. */
export async function run(
  ctx: TaskContext,
  { endpoint_id: endpoint, host }: { readonly endpoint_id: number; readonly host: string },
): Promise<{ delivered: number; failed: number }> {
  const { db, settings, signal } = ctx
  const { timeoutMs, rates } = settings.webhooks
  const limits = { max: MAX_CONCURRENT, holdSeconds: timeoutMs / 1000 + HOLD_MARGIN_SECONDS, rates }
  const counts = { delivered: 0, failed: 0 }
  const deadline = performance.now() + MAX_RUN_MS
  while (performance.now() < deadline && !signal.aborted) {
    const due = await db.any(claimDeliveries(endpoint, host, limits))
    if (due.length === 0) break
    for (const outcome of await Promise.all(due.map((delivery) => deliverOne(ctx, endpoint, delivery))))
      counts[outcome === 'delivered' ? 'delivered' : 'failed']++
    ctx.reportProgress(`${counts.delivered} delivered`)
  }
  return counts
}

async function deliverOne(
  ctx: TaskContext,
  endpoint: number,
  due: DueDelivery,
): Promise<(typeof WEBHOOK_OUTCOMES)[number] | null> {
  const { db, settings, providers, signal, job } = ctx
  const { id, message_id, url, body } = due
  const echo = due.type === CHALLENGE_EVENT ? readChallengeToken(body) : null
  const secrets = unsealSecrets(ctx, due)
  const answer: DeliveryResult = {
    at: new Date(due.at_ms).toISOString(),
    ...(secrets === null
      ? { ms: 0, status: null, body: null, error: 'the secret cannot be decrypted; rotate it' }
      : await providers.postWebhook(
          {
            url,
            headers: signWebhook({ id: message_id, timestamp: Math.floor(due.at_ms / 1000), body }, secrets),
            body,
            echo,
          },
          signal,
        )),
  }
  const isEchoed = echo !== null && answer.body?.includes(echo) === true
  // The abort interrupted the answer, so do not record it: the delivery becomes due again.
  if (signal.aborted && (answer.status === null || (echo !== null && !isEchoed))) return null
  return db.transaction(async (tx) => {
    if (isEchoed && classifyResponse(answer) === 'delivered')
      await tx.run(markEndpointVerified(endpoint, url))
    const { end } = await tx.one(
      recordDeliveryAttempt(id, classifyResponse(answer), answer, settings.webhooks.retryMs),
    )
    if (end === 'disabled') {
      const options = { ownerId: null, requestId: job.requestId, settings }
      const owners = await tx.any(listEndpointOwners(endpoint))
      const payloads = owners.map((owner) => ({ endpoint_id: endpoint, account_id: owner.id }))
      await enqueueMany(tx, mailDisabledEndpoint, payloads, options)
    }
    return end
  })
}

/** Unseals the secrets that sign a delivery; null if no key opens the current one. */
function unsealSecrets({ keys }: TaskContext, due: DueDelivery): string[] | null {
  const [current, ...previous] = due.secrets.map((sealed) =>
    keys.unseal(webhookSealUseOf(due.account_id), sealed),
  )
  return current == null ? null : [current, ...previous.filter((secret) => secret !== null)]
}

/** Returns the token that a challenge asks to echo. */
const readChallengeToken = (body: string): string =>
  (JSON.parse(body) as { data: { challenge: string } }).data.challenge

/** Classifies a response. Any 2xx status is a success, and 410 means that the endpoint is permanently gone. */
function classifyResponse({ status }: DeliveryResult): 'delivered' | 'failed' | 'gone' {
  if (status === 410) return 'gone'
  return status !== null && status >= 200 && status < 300 ? 'delivered' : 'failed'
}
