import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { CALL_TRIES, PRORATIONS } from './provider.ts'
import { Subscription } from './shapes.ts'

/** Changes the price of a subscription, first at the provider and then in the database. */
export const changePlan = defineTask({
  name: 'payments.plan',
  queue: 'payments',
  pool: 'io',
  actor: ({ subscription_id }) => `payment_subscription:${subscription_id}`,
  payload: z.strictObject({
    subscription_id: z.int(),
    provider_subscription_id: z.string(),
    price_id: z.string(),
    proration: z.enum(PRORATIONS),
  }),
  result: Subscription,
  tries: CALL_TRIES,
  timeoutSeconds: 90,
  run: loadLazily(() => import('./plan.work.ts')),
})
