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

/** Opens a checkout page at the provider. An account becomes the provider's customer with its first checkout. */
export const checkout = defineTask({
  name: 'payments.checkout',
  queue: 'payments',
  pool: 'io',
  // Of two concurrent first checkouts, the second finds the customer that the first created.
  actor: ({ user_id }) => (user_id === null ? null : `payment_payer:${user_id}`),
  links: ({ user_id }) => (user_id === null ? [] : [{ kind: 'account', id: user_id }]),
  // Anyone who has it can continue as the payer.
  secrets: ['checkout_url'],
  payload: Payload,
  result: CheckoutSession,
  timeoutSeconds: 90,
  run: lazily(() => import('./checkout-run.ts')),
})
