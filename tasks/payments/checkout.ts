import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'
import { CheckoutSession } from './shapes.ts'

const Payload = z.strictObject({
  /** Null where there is no authentication. */
  user_id: z.int().nullable(),
  price_id: z.string(),
  quantity: z.int(),
  mode: z.enum(['payment', 'subscription']),
  success_url: z.string(),
  cancel_url: z.string(),
})
export type CheckoutPayload = z.output<typeof Payload>

/** Opens a page of the provider's on which somebody pays. An account becomes its customer with the first one. */
export const checkout = defineTask({
  name: 'payments.checkout',
  queue: 'payments',
  pool: 'io',
  // Of two first checkouts at once the second finds the customer that the first has made.
  actor: ({ user_id }) => (user_id === null ? null : `payment_payer:${user_id}`),
  payload: Payload,
  result: CheckoutSession,
  timeoutSeconds: 90,
  run: lazily(() => import('./checkout-run.ts')),
})
