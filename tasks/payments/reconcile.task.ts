import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/**
 * Ingests events that never arrived, and applies events that were never applied. Looks up invoices whose payments are
 * unknown. Settles refunds that are pending or have an unknown outcome. Idempotent, because known events and
 * settled refunds are not processed again.
 */
export const reconcilePayments = defineTask({
  name: 'payments.reconcile',
  queue: 'payments',
  pool: 'io',
  actor: () => 'payment_reconcile',
  whenBusy: 'join',
  payload: z.strictObject({}),
  result: z.strictObject({ missed: z.int(), left: z.int(), settled: z.int() }),
  timeoutSeconds: 1800,
  run: loadLazily(() => import('./reconcile.work.ts')),
})
