import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/**
 * Asks the provider for what an event left out: the payment intent of an invoice, which merges two rows into one
 * payment; the refunds of a charge, which may have been made elsewhere. Without an answer, the event still counts.
 */
export const lookUp = defineTask({
  name: 'payments.look-up',
  queue: 'payments',
  pool: 'io',
  actor: ({ id }) => `payment_look_up:${id}`,
  payload: z.strictObject({ what: z.enum(['invoice', 'charge']), id: z.string() }),
  result: z.strictObject({}),
  tries: 8,
  timeoutSeconds: 90,
  run: lazily(() => import('./look-up-run.ts')),
})
