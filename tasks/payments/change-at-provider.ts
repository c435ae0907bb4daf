import { fail } from '../../sql/errors.ts'
import { applyChanges, findSubscriptionJson } from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import type { IdempotentCall, ObjectSnapshot } from './provider.ts'
import type { ProviderObject } from './reading.ts'
import { Subscription } from './shapes.ts'
import { toSubscriptionChange } from './subscriptions.ts'

/**
 * Changes a subscription first at the provider, with the idempotency key of the job and `name`, and then in the
 * database. `fields` are those that the request changes.
 */
export async function changeAtProvider(
  { job, signal, runFenced }: TaskContext,
  id: string,
  name: string,
  fields: ProviderObject,
  request: (call: IdempotentCall) => Promise<ObjectSnapshot>,
): Promise<void> {
  const { object, at } = await request({ key: `${job.id}:${id}:${name}`, signal })
  const change = toSubscriptionChange(object, 'updated', at, fields)
  if (change !== null) await runFenced((tx) => tx.run(applyChanges([change])))
}

/** Cancels a subscription at the end of its paid period, first at the provider and then in the database. */
export async function cancelAtProvider(ctx: TaskContext, id: string): Promise<void> {
  const fields = { cancel_at_period_end: false, cancel_at: null }
  await changeAtProvider(ctx, id, 'cancel', fields, (call) =>
    ctx.providers.payments.cancelSubscription(id, call),
  )
}

/** Returns a subscription as callers see it. */
export async function readSubscription({ db }: TaskContext, id: number): Promise<Subscription> {
  const found = await db.maybeOne(findSubscriptionJson(id))
  if (found === null) throw fail('subscription.missing')
  return Subscription.parse(JSON.parse(found.json))
}
