import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/**
 * Repairs what was missed: events that never arrived or were never applied, and refunds that the provider may or may
 * not have accepted. What is already known changes nothing.
 */
export const reconcile = defineTask({
  name: 'payments.reconcile',
  queue: 'payments',
  pool: 'io',
  actor: () => 'payment_reconcile',
  whenBusy: 'join',
  payload: z.strictObject({}),
  result: z.strictObject({ missed: z.int(), left: z.int(), settled: z.int() }),
  timeoutSeconds: 1800,
  run: lazily(() => import('./reconcile-run.ts')),
})
