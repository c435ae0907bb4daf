import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { Transaction } from './shapes.ts'

/**
 * Refunds the amount that the edge has reserved. All attempts use one idempotency key, and the refund's metadata names
 * its job. If an attempt is interrupted after the provider accepted the refund, the next one gets the same answer. A
 * refusal releases the reservation. With an unknown outcome, the amount stays reserved until `payments.reconcile`.
 */
export const refundPayment = defineTask({
  name: 'payments.refund',
  queue: 'payments',
  pool: 'io',
  // The provider allows one refund per payment at a time.
  actor: ({ transaction_id }) => `payment_transaction:${transaction_id}`,
  links: ({ transaction_id }) => [{ kind: 'payment', id: transaction_id }],
  payload: z.strictObject({ refund_id: z.int(), transaction_id: z.int() }),
  result: Transaction,
  timeoutSeconds: 90,
  run: loadLazily(() => import('./refund-run.ts')),
})
