import type { Queries } from '../../sql/db.ts'
import { applyStoredEvent, findLastReport, findPendingEvent } from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import { enqueue } from '../task.ts'
import { changesOf, findRequiredLookUp, findSubscriptionId } from './changes.ts'
import { lookUpObject } from './look-up.task.ts'
import { toProviderEvent } from './provider-events.ts'
import { objectOf } from './reading.ts'

/** Runs `payments.event`. */
export async function run(
  { db, settings, job }: TaskContext,
  { event_id }: { readonly event_id: string },
): Promise<Record<string, never>> {
  const pending = await db.maybeOne(findPendingEvent(event_id))
  if (pending === null) return {}
  const event = toProviderEvent(pending.type, pending.at, objectOf(pending.data))
  const canAsk = settings.payments.secretKey !== undefined
  const required = canAsk ? findRequiredLookUp(event) : null
  const subscription = canAsk ? findSubscriptionId(event) : null
  // Not fenced: if two attempts run concurrently, either may apply the event, because applying is idempotent.
  const apply = applyStoredEvent(event_id, changesOf(event))
  if (required === null && subscription === null) await db.one(apply)
  else
    await db.transaction(async (tx) => {
      const isUnclear = subscription !== null && (await isSecondReported(tx, subscription, event.at))
      const lookUp = isUnclear ? ({ what: 'subscription', id: subscription } as const) : required
      const { applied } = await tx.one(apply)
      const options = { ownerId: null, requestId: job.requestId, settings }
      if (applied && lookUp !== null) await enqueue(tx, lookUpObject, lookUp, options)
    })
  return {}
}

/**
 * True if another event has reported a subscription in the second of this one. Events name only the second, so the
 * provider has to say which of their states is the newest.
 */
async function isSecondReported(tx: Queries, id: string, at: number): Promise<boolean> {
  const last = await tx.maybeOne(findLastReport(id))
  return last?.at === at
}
