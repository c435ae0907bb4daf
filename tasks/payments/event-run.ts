import { applyStoredEvent, pendingEvent } from '../../sql/payment-changes.ts'
import type { TaskContext } from '../context.ts'
import { enqueue } from '../task.ts'
import { changesOf, lookUpOf } from './changes.ts'
import { lookUp } from './look-up.ts'
import { asEvent } from './provider-events.ts'
import { objectOf } from './reading.ts'

/** The work of `payments.event`. */
export async function run(
  { db, settings, job }: TaskContext,
  { event_id }: { readonly event_id: string },
): Promise<Record<string, never>> {
  const pending = await db.maybeOne(pendingEvent(event_id))
  if (pending === null) return {}
  const event = asEvent(pending.type, pending.at, objectOf(pending.data))
  const wanted = settings.payments.secretKey === undefined ? null : lookUpOf(event)
  // Not fenced: of two concurrent attempts one applies it, and it does not matter which.
  const apply = applyStoredEvent(event_id, changesOf(event))
  if (wanted === null) await db.one(apply)
  else
    await db.transaction(async (tx) => {
      const { applied } = await tx.one(apply)
      const options = { ownerId: null, requestId: job.requestId, settings }
      if (applied) await enqueue(tx, lookUp, wanted, options)
    })
  return {}
}
