import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { applyChanges, subscriptionState } from '../../sql/payment-changes.ts'
import { defineTask } from '../task.ts'
import { Cancellation } from './shapes.ts'
import { subscriptionChange } from './subscriptions.ts'

/** Ends a subscription with the period that is paid for: at the provider first, then here. */
export const cancel = defineTask({
  name: 'payments.cancel',
  queue: 'payments',
  pool: 'io',
  actor: ({ subscription_id }) => `payment_subscription:${subscription_id}`,
  payload: z.strictObject({ subscription_id: z.int(), provider_subscription_id: z.string() }),
  result: Cancellation,
  timeoutSeconds: 90,
  run: async ({ db, job, providers, signal, fenced }, payload) => {
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
  },
})
