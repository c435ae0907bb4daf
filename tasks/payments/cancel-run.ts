import { fail } from '../../sql/errors.ts'
import { applyChanges, subscriptionState } from '../../sql/payment-changes.ts'
import type { TaskContext } from '../context.ts'
import type { Cancellation } from './shapes.ts'
import { subscriptionChange } from './subscriptions.ts'

/** The work of `payments.cancel`. */
export async function run(
  { db, job, providers, signal, fenced }: TaskContext,
  payload: { readonly subscription_id: number; readonly provider_subscription_id: string },
): Promise<Cancellation> {
  const id = payload.provider_subscription_id
  const { object, at } = await providers.payments.cancelSubscription(id, {
    key: `${job.id}:cancel`,
    signal,
  })
  const change = subscriptionChange(object, 'updated', at, { cancel_at_period_end: false })
  if (change !== null) await fenced((tx) => tx.run(applyChanges([change])))
  const state = await db.maybeOne(subscriptionState(payload.subscription_id))
  if (state === null) throw fail('subscription.missing')
  return {
    status: state.status,
    cancel_at_period_end: state.cancel_at_period_end ? ('true' as const) : ('false' as const),
  }
}
