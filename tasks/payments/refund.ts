import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'
import { Transaction } from './shapes.ts'

/**
 * Refunds the amount that the edge has reserved. All attempts use one idempotency key, and the refund names its job: if
 * an attempt was cut short after the provider had accepted the refund, the next one finds it or gets the same answer. A
 * refusal releases the reservation; after an unclear end it stays until reconciliation has looked the refund up.
 */
export const refund = defineTask({
  name: 'payments.refund',
  queue: 'payments',
  pool: 'io',
  // The provider allows one refund of a payment at a time.
  actor: ({ transaction_id }) => `payment_transaction:${transaction_id}`,
  links: ({ transaction_id }) => [{ kind: 'payment', id: transaction_id }],
  payload: z.strictObject({ refund_id: z.int(), transaction_id: z.int() }),
  result: Transaction,
  timeoutSeconds: 90,
  run: lazily(() => import('./refund-run.ts')),
})
