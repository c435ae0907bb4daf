import type { Refund } from '../../sql/payments/changes.ts'
import type { Change } from './facts.ts'
import type { PaymentId, PaymentProvider } from './provider.ts'

/** The provider's id of a payment. If the provider had to be asked for the id, `changes` link it to the payment. */
export interface ResolvedPayment {
  readonly payment: PaymentId
  readonly changes: readonly Change[]
}

/**
 * Finds the id of a payment; asks the provider if only its invoice or session is known. Null if the provider has no
 * payment intent for them.
 */
export async function resolvePayment(
  provider: PaymentProvider,
  refund: Pick<Refund, 'charge' | 'payment_intent' | 'invoice' | 'session'>,
  signal: AbortSignal,
): Promise<ResolvedPayment | null> {
  if (refund.payment_intent !== null)
    return { payment: { payment_intent: refund.payment_intent }, changes: [] }
  if (refund.charge !== null) return { payment: { charge: refund.charge }, changes: [] }
  for (const what of ['invoice', 'session'] as const) {
    const id = refund[what]
    const intent = id === null ? null : await provider.findIntent(what, id, signal)
    if (intent !== null)
      return { payment: { payment_intent: intent }, changes: [createIntentLink(id!, intent)] }
  }
  return null
}

/** Creates the change that identifies an invoice or session with its payment intent. */
export function createIntentLink(id: string, intent: string): Change {
  return { kind: 'transaction', ids: [id, intent], facts: { payment_intent: ['', intent] } }
}
