import { z } from 'zod'
import { applyChanges } from '../../sql/payment-changes.ts'
import { defineTask } from '../task.ts'
import type { Change } from './facts.ts'
import { linked } from './payment-id.ts'
import { refundChange } from './transactions.ts'

/**
 * Asks the provider for what an event left out: the payment intent of an invoice, which makes one payment of two rows;
 * the refunds of a charge, which may have been made elsewhere. Without an answer, what the event said still stands.
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
  run: async ({ providers, signal, fenced }, { what, id }) => {
    const changes: Change[] = []
    if (what === 'invoice') {
      const intent = await providers.payments.intentOf('invoice', id, signal)
      if (intent !== null) changes.push(linked(id, intent))
    } else {
      const { objects, at } = await providers.payments.refundsOf({ charge: id }, signal)
      changes.push(...objects.flatMap((refund) => refundChange({ ...refund, charge: id }, at) ?? []))
    }
    if (changes.length > 0) await fenced((tx) => tx.run(applyChanges(changes)))
    return {}
  },
})
