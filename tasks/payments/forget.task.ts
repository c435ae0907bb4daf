import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { CALL_TRIES } from './provider.ts'

/**
 * Clears the personal data of a deleted account's customer at the provider. The customer itself stays: deleting it would
 * end paid subscriptions immediately, and its payments would lose their customer.
 */
export const forgetCustomer = defineTask({
  name: 'payments.forget',
  queue: 'payments',
  pool: 'io',
  actor: ({ provider_customer_id }) => `payment_customer:${provider_customer_id}`,
  payload: z.strictObject({ account_id: z.int(), provider_customer_id: z.string() }),
  result: z.strictObject({}),
  tries: CALL_TRIES,
  timeoutSeconds: 90,
  run: loadLazily(() => import('./forget.work.ts')),
})
