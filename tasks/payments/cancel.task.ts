import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { CALL_TRIES } from './provider.ts'
import { Cancellation } from './shapes.ts'

/** Cancels a subscription at the end of its paid period, first at the provider and then in the database. */
export const cancelSubscription = defineTask({
  name: 'payments.cancel',
  queue: 'payments',
  pool: 'io',
  actor: ({ subscription_id }) => `payment_subscription:${subscription_id}`,
  payload: z.strictObject({ subscription_id: z.int(), provider_subscription_id: z.string() }),
  result: Cancellation,
  tries: CALL_TRIES,
  timeoutSeconds: 90,
  run: loadLazily(() => import('./cancel.work.ts')),
})
