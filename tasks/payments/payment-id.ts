import { fail } from '../../sql/errors.ts'
import type { Refund } from '../../sql/payments/changes.ts'
import type { Change } from './facts.ts'
import type { PaymentId, PaymentProvider } from './provider.ts'
import { integerOf, itemsOf, textOf } from './reading.ts'
import { type InvoicePayment, toInvoiceLink, toInvoicePayment } from './transactions.ts'

/**
 * A provider's payments that make up a transaction: several if they share an invoice. If the provider had to be asked
 * for them, `changes` link them to the transaction.
 */
export interface ResolvedPayments {
  readonly payments: readonly PayablePart[]
  readonly changes: readonly Change[]
}

/** One payment of a transaction, and its amount; null if unknown. */
export interface PayablePart {
  readonly payment: PaymentId
  readonly amount: number | null
}

type PaymentIds = Pick<Refund, 'charge' | 'payment_intent' | 'invoice' | 'session' | 'payments'>

/**
 * Finds the payments of a transaction; asks the provider if only its invoice or session is known. None if the provider
 * has no payment intent for them.
 */
export async function resolvePayments(
  provider: PaymentProvider,
  given: PaymentIds,
  signal: AbortSignal,
): Promise<ResolvedPayments> {
  const parts = itemsOf(given.payments).flatMap(({ intent, amount }) =>
    toPart(textOf(intent), integerOf(amount)),
  )
  if (parts.length > 0) return { payments: parts, changes: [] }
  if (given.payment_intent !== null) return { payments: toPart(given.payment_intent, null), changes: [] }
  if (given.charge !== null)
    return { payments: [{ payment: { charge: given.charge }, amount: null }], changes: [] }
  if (given.invoice !== null) {
    const { payments, change } = await linkInvoice(provider, given.invoice, signal)
    const paid = payments.filter(({ status }) => status === 'paid')
    const found = (paid.length > 0 ? paid : payments).flatMap(({ intent, amount }) => toPart(intent, amount))
    if (found.length > 0) return { payments: found, changes: [change] }
  }
  const intent = given.session === null ? null : await provider.findSessionIntent(given.session, signal)
  return intent === null
    ? { payments: [], changes: [] }
    : { payments: toPart(intent, null), changes: [createIntentLink(given.session!, intent)] }
}

const toPart = (intent: string | null, amount: number | null): PayablePart[] =>
  intent === null ? [] : [{ payment: { payment_intent: intent }, amount }]

/** Asks the provider for the payments of an invoice. `change` makes them and the invoice one transaction. */
export async function linkInvoice(
  provider: PaymentProvider,
  id: string,
  signal: AbortSignal,
): Promise<{ readonly payments: readonly InvoicePayment[]; readonly change: Change }> {
  const { objects, at } = await provider.listInvoicePayments(id, signal)
  const payments = objects.map(toInvoicePayment)
  return { payments, change: toInvoiceLink(id, payments, at) }
}

/** Creates the change that identifies a session with its payment intent. */
function createIntentLink(session: string, intent: string): Change {
  return { kind: 'transaction', ids: [session, intent], facts: { payment_intent: ['', intent] } }
}

/**
 * Chooses the payment to refund. The provider refunds each payment of an invoice on its own, so one of them must have
 * the whole amount left.
 * @throws fail('payment.rejected')
 */
export async function choosePayment(
  provider: PaymentProvider,
  parts: readonly PayablePart[],
  amount: number,
  signal: AbortSignal,
): Promise<PaymentId> {
  if (parts.length === 1) return parts[0]!.payment
  let most = 0
  for (const { payment, amount: paid } of parts) {
    const { objects } = await provider.listRefunds(payment, signal)
    const alive = objects.filter(({ status }) => status !== 'failed' && status !== 'canceled')
    const refunded = alive.reduce((sum, refund) => sum + (integerOf(refund.amount) ?? 0), 0)
    const left = (paid ?? Number.POSITIVE_INFINITY) - refunded
    if (left >= amount) return payment
    most = Math.max(most, left)
  }
  const reason =
    parts.length === 0
      ? 'The payment provider has no charge to refund for this payment'
      : `Several payments paid this invoice; at most ${most} can be refunded in one request`
  throw fail('payment.rejected', { reason })
}
