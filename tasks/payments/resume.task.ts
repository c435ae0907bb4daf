import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { CALL_TRIES } from './provider.ts'
import { Subscription } from './shapes.ts'

/** Removes the set end of a subscription, first at the provider and then in the database. */
export const resumeSubscription = defineTask({
  name: 'payments.resume',
  queue: 'payments',
  pool: 'io',
  actor: ({ subscription_id }) => `payment_subscription:${subscription_id}`,
  payload: z.strictObject({ subscription_id: z.int(), provider_subscription_id: z.string() }),
  result: Subscription,
  tries: CALL_TRIES,
  timeoutSeconds: 90,
  run: loadLazily(() => import('./resume.work.ts')),
})
