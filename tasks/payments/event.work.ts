import { applyStoredEvent, findPendingEvent } from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import { enqueue } from '../task.ts'
import { changesOf, findRequiredLookUp } from './changes.ts'
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
  const required = settings.payments.secretKey === undefined ? null : findRequiredLookUp(event)
  // Not fenced: if two attempts run concurrently, either may apply the event, because applying is idempotent.
  const apply = applyStoredEvent(event_id, changesOf(event))
  if (required === null) await db.one(apply)
  else
    await db.transaction(async (tx) => {
      const { applied } = await tx.one(apply)
      const options = { ownerId: null, requestId: job.requestId, settings }
      if (applied) await enqueue(tx, lookUpObject, required, options)
    })
  return {}
}
