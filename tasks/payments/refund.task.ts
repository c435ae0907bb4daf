import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { CALL_TRIES } from './provider.ts'
import { Transaction } from './shapes.ts'

/**
 * Refunds the amount that the edge has reserved. All attempts use one idempotency key, so an attempt gets the same
 * answer as an interrupted one. The refund's metadata names its job. A refusal releases the reservation. If the outcome
 * is unknown, the amount stays reserved until `payments.reconcile` settles the refund.
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
  tries: CALL_TRIES,
  timeoutSeconds: 90,
  run: loadLazily(() => import('./refund.work.ts')),
})
