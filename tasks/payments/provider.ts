import type { ProviderObject } from './reading.ts'

/**
 * The payment provider, as tasks see it. Every call ends within its time limit and when `signal` is aborted.
 *
 * @throws fail('payment.not_configured'), fail('payment.key'), fail('payment.rejected') and fail('payment.declined')
 * permanently; fail('payment.failed') temporarily, when the call may or may not have had its effect.
 */
export interface PaymentProvider {
  /** Returns the customer's id. */
  createCustomer(customer: NewCustomer, call: Once): Promise<string>
  /** Returns null when there is no such customer, or no longer. */
  createCheckout(
    checkout: NewCheckout,
    call: Once,
  ): Promise<{ readonly id: string; readonly url: string } | null>
  /** Expires what a customer could still pay at: checkouts that are open. None when there is no such customer. */
  expireCheckouts(customer: string, signal: AbortSignal): Promise<void>
  createRefund(refund: NewRefund, call: Once): Promise<Answered>
  /** Ends a subscription at the end of its paid period. */
  cancelSubscription(id: string, call: Once): Promise<Answered>
  /** The ids of what a customer would pay for again: subscriptions that have not ended and will not end with their period. */
  runningSubscriptions(customer: string, signal: AbortSignal): Promise<readonly string[]>
  /** A subscription as it is; null when there is none. */
  subscription(id: string, signal: AbortSignal): Promise<Answered | null>
  /** The payment intent that an invoice or a session was paid by; null when there is none. */
  intentOf(what: 'invoice' | 'session', id: string, signal: AbortSignal): Promise<string | null>
  /** All refunds of a charge or payment intent; none when it does not exist. */
  refundsOf(
    payment: PaymentId,
    signal: AbortSignal,
  ): Promise<{ readonly objects: readonly ProviderObject[]; readonly at: number }>
  /** Events of these types since a time in seconds, in pages, the newest first. */
  eventsSince(
    seconds: number,
    types: readonly string[],
    signal: AbortSignal,
  ): AsyncIterable<readonly ProviderObject[]>
  /** The active prices with their products. */
  prices(signal: AbortSignal): Promise<readonly ProviderObject[]>
}

/** A call with an effect. Repeated under the same key, it has that effect once. */
export interface Once {
  readonly key: string
  readonly signal: AbortSignal
}

/** An object of the provider, and the time of this state by the provider's clock, in seconds. */
export interface Answered {
  readonly object: ProviderObject
  readonly at: number
}

export interface NewCustomer {
  readonly email: string
  readonly name: string | null
  readonly userId: number
}

export interface NewCheckout {
  readonly priceId: string
  readonly quantity: number
  readonly mode: 'payment' | 'subscription'
  readonly successUrl: string
  readonly cancelUrl: string
  /** Null: the provider creates a customer for the payer. */
  readonly customer: string | null
  readonly userId: number | null
}

export type PaymentId =
  | { readonly charge: string; readonly payment_intent?: never }
  | { readonly payment_intent: string; readonly charge?: never }

export interface NewRefund {
  readonly payment: PaymentId
  readonly amount: number
  /** One of the provider's reasons, or a note. */
  readonly reason: string | null
  readonly metadata: Readonly<Record<string, string>>
}

/** The reasons for a refund that the provider knows; anything else is a note. */
const REFUND_REASONS = ['requested_by_customer', 'duplicate', 'fraudulent'] as const

export function isKnownReason(reason: string): reason is (typeof REFUND_REASONS)[number] {
  return (REFUND_REASONS as readonly string[]).includes(reason)
}
