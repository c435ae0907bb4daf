import type { ProviderObject } from './reading.ts'

/**
 * The tasks' interface to the payment provider. Every call has a timeout and ends when `signal` aborts.
 *
 * @throws fail('payment.not_configured'), fail('payment.key'), fail('payment.rejected') or fail('payment.declined')
 * permanently.
 * @throws fail('payment.failed') transiently; the call may nevertheless have taken effect.
 */
export interface PaymentProvider {
  /** Creates a customer and returns its id. */
  createCustomer(customer: NewCustomer, call: IdempotentCall): Promise<string>
  /** Replaces the address and name of a customer. Returns false if there is no such customer. */
  updateCustomer(id: string, contact: Contact, call: IdempotentCall): Promise<boolean>
  /** Clears the address, name and other personal data of a customer, and keeps its payments. */
  clearCustomer(id: string, call: IdempotentCall): Promise<void>
  /** Opens a checkout page. Null if the provider has no such customer or has deleted it. */
  createCheckout(
    checkout: NewCheckout,
    call: IdempotentCall,
  ): Promise<{ readonly id: string; readonly url: string } | null>
  /** Opens a page on which the customer manages billing, and returns its URL. Null if there is no such customer. */
  createPortal(
    portal: { readonly customer: string; readonly returnUrl: string },
    call: IdempotentCall,
  ): Promise<string | null>
  /**
   * Expires a customer's open checkouts, because the customer could still pay them; `which` limits them. Does nothing
   * if there is no such customer.
   */
  expireCheckouts(customer: string, signal: AbortSignal, which?: CheckoutSelection): Promise<void>
  createRefund(refund: NewRefund, call: IdempotentCall): Promise<ObjectSnapshot>
  /**
   * Cancels a subscription at the end of its paid period; one that has none ends immediately. Releases it first from a
   * schedule that manages it.
   */
  cancelSubscription(id: string, call: IdempotentCall): Promise<ObjectSnapshot>
  /**
   * Replaces the only price of a subscription.
   * @throws fail('subscription.canceled'), fail('subscription.unchangeable') permanently
   */
  changePlan(id: string, plan: NewPlan, call: IdempotentCall): Promise<ObjectSnapshot>
  /** Removes the set end of a subscription; does nothing without one. @throws like `changePlan` */
  resumeSubscription(id: string, call: IdempotentCall): Promise<ObjectSnapshot>
  /** Cancels the customer's schedules that would start a subscription. Does nothing if there is no such customer. */
  cancelFutureSchedules(customer: string, signal: AbortSignal): Promise<void>
  /**
   * Returns the ids of the customer's subscriptions that will renew. Omits those that have ended or will end with their
   * period.
   */
  listRenewingSubscriptions(customer: string, signal: AbortSignal): Promise<readonly string[]>
  /** Returns the customer's subscriptions of a price that have not ended; none if there is no such customer. */
  listSubscriptionsOfPrice(customer: string, price: string, signal: AbortSignal): Promise<ListSnapshot>
  /** Returns the current state of a subscription; null if there is none. */
  findSubscription(id: string, signal: AbortSignal): Promise<ObjectSnapshot | null>
  /** Returns the id of the payment intent of a session; null if there is none. */
  findSessionIntent(id: string, signal: AbortSignal): Promise<string | null>
  /** Returns the payments of an invoice; none if it does not exist. */
  listInvoicePayments(invoice: string, signal: AbortSignal): Promise<ListSnapshot>
  /** Returns all refunds of a charge or payment intent; none if it does not exist. */
  listRefunds(payment: PaymentId, signal: AbortSignal): Promise<ListSnapshot>
  /** Yields pages of the events of these types since a time in seconds, newest first. */
  listEvents(
    seconds: number,
    types: readonly string[],
    signal: AbortSignal,
  ): AsyncIterable<readonly ProviderObject[]>
  /** Returns the active prices with their products. */
  listPrices(signal: AbortSignal): Promise<readonly ProviderObject[]>
}

/**
 * Tries of a job whose call must take effect although the provider is away or busy. With delays of up to 5 minutes, the
 * last try starts after about 4 hours. The provider keeps idempotency keys for 24 hours.
 */
export const CALL_TRIES = 60

/** Options of a call with an effect. Calls with the same idempotency key take effect once. */
export interface IdempotentCall {
  readonly key: string
  readonly signal: AbortSignal
}

/** An object of the provider, and the time of its state in seconds, by the provider's clock. */
export interface ObjectSnapshot {
  readonly object: ProviderObject
  readonly at: number
}

/** A list of the provider's objects, and the time of their states. */
export interface ListSnapshot {
  readonly objects: readonly ProviderObject[]
  readonly at: number
}

export interface Contact {
  readonly email: string
  readonly name: string | null
}

export interface NewCustomer extends Contact {
  readonly userId: number
}

export interface NewCheckout {
  readonly priceId: string
  readonly quantity: number
  readonly mode: 'payment' | 'subscription'
  readonly successUrl: string
  readonly cancelUrl: string
  /** Null makes the provider create a customer for the payer. */
  readonly customer: string | null
  readonly userId: number | null
  /** The job of the checkout. */
  readonly jobId: string
}

/** Selects the checkouts of subscriptions of a price, except that of a job. */
export interface CheckoutSelection {
  readonly priceId: string
  readonly exceptJobId: string
}

/** Ways to charge for the rest of the period after a change of plan. */
export const PRORATIONS = ['create_prorations', 'none', 'always_invoice'] as const

export interface NewPlan {
  readonly priceId: string
  readonly proration: (typeof PRORATIONS)[number]
}

export type PaymentId =
  | { readonly charge: string; readonly payment_intent?: never }
  | { readonly payment_intent: string; readonly charge?: never }

export interface NewRefund {
  readonly payment: PaymentId
  readonly amount: number
  /** One of the provider's reasons, or a free-text note; null if none was given. */
  readonly reason: string | null
  readonly metadata: Readonly<Record<string, string>>
}

/** Key of the job's id in the metadata of a refund or checkout. It identifies a refund whose response was lost. */
export const JOB_METADATA_KEY = 'millrace_job'

/** Refund reasons that the provider accepts; any other reason is stored as a note. */
const REFUND_REASONS = ['requested_by_customer', 'duplicate', 'fraudulent'] as const

export function isKnownReason(reason: string): reason is (typeof REFUND_REASONS)[number] {
  return (REFUND_REASONS as readonly string[]).includes(reason)
}
