import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { CALL_TRIES } from './provider.ts'

/**
 * Asks the provider for data that an event omits: an invoice's payments, a charge's refunds, or a subscription's newest
 * state. The payments of an invoice merge with it into one transaction. The refunds include those
 * made outside Millrace. The event stays applied if this job fails.
 */
export const lookUpObject = defineTask({
  name: 'payments.look-up',
  queue: 'payments',
  pool: 'io',
  actor: ({ id }) => `payment_look_up:${id}`,
  payload: z.strictObject({ what: z.enum(['invoice', 'charge', 'subscription']), id: z.string() }),
  result: z.strictObject({}),
  tries: CALL_TRIES,
  timeoutSeconds: 90,
  run: loadLazily(() => import('./look-up.work.ts')),
})
