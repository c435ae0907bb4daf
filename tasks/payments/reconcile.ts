import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/**
 * Makes good what was missed: events that never came or were never applied, refunds of which nobody knows whether the
 * provider has taken them. What is known already changes nothing.
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
