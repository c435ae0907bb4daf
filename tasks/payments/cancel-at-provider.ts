import { applyChanges } from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import { toSubscriptionChange } from './subscriptions.ts'

/** Cancels a subscription at the end of its paid period, first at the provider and then in the database. */
export async function cancelAtProvider(
  { job, providers, signal, runFenced }: TaskContext,
  id: string,
): Promise<void> {
  const key = `${job.id}:${id}:cancel`
  const { object, at } = await providers.payments.cancelSubscription(id, { key, signal })
  const change = toSubscriptionChange(object, 'updated', at, { cancel_at_period_end: false, cancel_at: null })
  if (change !== null) await runFenced((tx) => tx.run(applyChanges([change])))
}
