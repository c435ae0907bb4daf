import type { Refund } from '../../sql/payment-changes.ts'
import type { Change } from './facts.ts'
import type { PaymentId, PaymentProvider } from './provider.ts'

/** The provider's id of a payment, and what was learned about the payment if the provider had to be asked. */
export interface Resolved {
  readonly payment: PaymentId
  readonly changes: readonly Change[]
}

/** Asks about a payment known only by its invoice or session; null when the provider knows no charge of it. */
export async function resolvePayment(
  provider: PaymentProvider,
  asked: Pick<Refund, 'charge' | 'payment_intent' | 'invoice' | 'session'>,
  signal: AbortSignal,
): Promise<Resolved | null> {
  if (asked.payment_intent !== null) return { payment: { payment_intent: asked.payment_intent }, changes: [] }
  if (asked.charge !== null) return { payment: { charge: asked.charge }, changes: [] }
  for (const what of ['invoice', 'session'] as const) {
    const id = asked[what]
    const intent = id === null ? null : await provider.intentOf(what, id, signal)
    if (intent !== null) return { payment: { payment_intent: intent }, changes: [linked(id!, intent)] }
  }
  return null
}

/** Says that an invoice or session and a payment intent belong to one payment. */
export function linked(id: string, intent: string): Change {
  return { kind: 'transaction', ids: [id, intent], facts: { payment_intent: ['', intent] } }
}
