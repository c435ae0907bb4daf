import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { CheckoutSession } from './shapes.ts'

const Payload = z.strictObject({
  /** Null if authentication is disabled. */
  user_id: z.int().nullable(),
  price_id: z.string(),
  quantity: z.int(),
  mode: z.enum(['payment', 'subscription']),
  success_url: z.string(),
  cancel_url: z.string(),
  /** True if the account may have another running subscription of the price. */
  allow_second: z.boolean(),
})

/** Opens a checkout page at the provider. The first checkout of an account creates its customer there. */
export const openCheckout = defineTask({
  name: 'payments.checkout',
  queue: 'payments',
  pool: 'io',
  // Serializes the checkouts of an account: the second one finds the customer that the first created.
  actor: ({ user_id }) => (user_id === null ? null : `payment_payer:${user_id}`),
  links: ({ user_id }) => (user_id === null ? [] : [{ kind: 'account', id: user_id }]),
  // Anyone with this URL can continue the checkout as the payer.
  secrets: ['checkout_url'],
  payload: Payload,
  result: CheckoutSession,
  timeoutSeconds: 90,
  run: loadLazily(() => import('./checkout.work.ts')),
})
