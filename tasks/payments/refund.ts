import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'
import { Transaction } from './shapes.ts'

/**
 * Gives back what the edge has reserved. The provider is asked under one key for all attempts, and told which job asks:
 * an attempt that was cut short after the provider had taken the refund finds it, or is answered the same again. A
 * refusal gives back the reserve; after an end that tells nothing it stays until the reconciliation has looked it up.
 */
export const refund = defineTask({
  name: 'payments.refund',
  queue: 'payments',
  pool: 'io',
  // The provider lets one refund of a payment pass at a time.
  actor: ({ transaction_id }) => `payment_transaction:${transaction_id}`,
  payload: z.strictObject({ refund_id: z.int(), transaction_id: z.int() }),
  result: Transaction,
  timeoutSeconds: 90,
  run: lazily(() => import('./refund-run.ts')),
})
