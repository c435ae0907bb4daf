import { applyChanges } from '../../sql/payment-changes.ts'
import type { TaskContext } from '../context.ts'
import { subscriptionChange } from './subscriptions.ts'

/** Cancels a subscription at the end of its paid period: first at the provider, then in our database. */
export async function cancelAtProvider(
  { job, providers, signal, fenced }: TaskContext,
  id: string,
): Promise<void> {
  const key = `${job.id}:${id}:cancel`
  const { object, at } = await providers.payments.cancelSubscription(id, { key, signal })
  const change = subscriptionChange(object, 'updated', at, { cancel_at_period_end: false })
  if (change !== null) await fenced((tx) => tx.run(applyChanges([change])))
}
