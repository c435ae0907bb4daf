import {
  CHALLENGE,
  type DueDelivery,
  proveEndpoint,
  settleDelivery,
  takeDeliveries,
  type WEBHOOK_ENDS,
  type WebhookAnswer,
} from '../../sql/webhooks.ts'
import type { TaskContext } from '../context.ts'
import { enqueue } from '../task.ts'
import { challengeTokenOf, webhookHeaders, webhookSecretOf } from './signature.ts'
import { switchedOffMail } from './switched-off.ts'

// Sent at the same time: order is not promised, and a slow endpoint holds up nobody else's.
const AT_ONCE = 8
// Then other endpoints have their turn.
const RUN_MS = 60_000
// Beyond the time that a request may take.
const HOLD_SECONDS = 30

/** The work of `webhooks.deliver`. */
export async function run(
  ctx: TaskContext,
  { endpoint_id: endpoint, host }: { readonly endpoint_id: number; readonly host: string },
): Promise<{ delivered: number; failed: number }> {
  const { db, settings, signal } = ctx
  const { timeoutMs, rates } = settings.webhooks
  const limits = { max: AT_ONCE, holdSeconds: timeoutMs / 1000 + HOLD_SECONDS, rates }
  const ends = { delivered: 0, failed: 0 }
  const until = performance.now() + RUN_MS
  while (performance.now() < until && !signal.aborted) {
    const due = await db.any(takeDeliveries(endpoint, host, limits))
    if (due.length === 0) break
    for (const end of await Promise.all(due.map((one) => deliverOne(ctx, endpoint, one))))
      ends[end === 'delivered' ? 'delivered' : 'failed']++
    ctx.progress(`${ends.delivered} delivered`)
  }
  return ends
}

async function deliverOne(
  ctx: TaskContext,
  endpoint: number,
  due: DueDelivery,
): Promise<(typeof WEBHOOK_ENDS)[number] | null> {
  const { db, settings, secretKey, providers, signal, job } = ctx
  const { id, message_id, url, body, secret_version: version } = due
  const secrets = due.is_rolling ? [version, version - 1] : [version]
  const headers = webhookHeaders(
    { id: message_id, timestamp: Math.floor(due.at_ms / 1000), body },
    secrets.map((one) => webhookSecretOf(secretKey, endpoint, one)),
  )
  const answer: WebhookAnswer = {
    at: new Date(due.at_ms).toISOString(),
    ...(await providers.postWebhook({ url, headers, body }, signal)),
  }
  // Cut short by the end of this attempt: it is due again soon, and this one does not count.
  if (signal.aborted && answer.status === null) return null
  const isEchoed =
    due.type === CHALLENGE && answer.body?.includes(challengeTokenOf(secretKey, endpoint, url)) === true
  return db.transaction(async (tx) => {
    if (isEchoed && outcomeOf(answer) === 'delivered') await tx.run(proveEndpoint(endpoint, url))
    const { end } = await tx.one(settleDelivery(id, outcomeOf(answer), answer, settings.webhooks.retryMs))
    if (end === 'switched_off') {
      const options = { ownerId: null, requestId: job.requestId, settings }
      await enqueue(tx, switchedOffMail, { endpoint_id: endpoint }, options)
    }
    return end
  })
}

/** Any status of success will do; 410 says that nobody will ever want this again. */
function outcomeOf({ status }: WebhookAnswer): 'delivered' | 'failed' | 'gone' {
  if (status === 410) return 'gone'
  return status !== null && status >= 200 && status < 300 ? 'delivered' : 'failed'
}
