import { toDisputeChange, toWarningChange } from './disputes.ts'
import type { Change } from './facts.ts'
import { type EventType, isEventType, type ProviderEvent } from './provider-events.ts'
import { idOf, itemsOf, objectOf } from './reading.ts'
import { toRefundChanges } from './refunds.ts'
import { toSubscriptionChange } from './subscriptions.ts'
import {
  isPaidByInvoice,
  lacksPayments,
  toChargeChanges,
  toIntentChange,
  toInvoiceChange,
  toSessionChange,
} from './transactions.ts'

type ChangeReader = (event: ProviderEvent) => readonly (Change | null)[]

const readSubscription: ChangeReader = ({ object, at, before }) => [
  toSubscriptionChange(object, 'updated', at, before),
]
const readRefund: ChangeReader = ({ object, at }) => toRefundChanges(object, at)
const readDispute: ChangeReader = ({ object, at, type }) => [toDisputeChange(object, type, at)]
const readWarning: ChangeReader = ({ object, at, type }) => [toWarningChange(object, type, at)]

/** Functions that derive changes from an event, by event type. Events of other types change nothing. */
const CHANGE_READERS: Readonly<Record<EventType, ChangeReader>> = {
  'checkout.session.completed': ({ object, at }) => [toSessionChange(object, at)],
  'checkout.session.async_payment_succeeded': ({ object, at }) => [toSessionChange(object, at, 'succeeded')],
  'checkout.session.async_payment_failed': ({ object, at }) => [toSessionChange(object, at, 'failed')],
  'payment_intent.succeeded': ({ object, at }) => [toIntentChange(object, 'succeeded', at)],
  'payment_intent.payment_failed': ({ object, at }) => [toIntentChange(object, 'failed', at)],
  'payment_intent.canceled': ({ object, at }) => [toIntentChange(object, 'canceled', at)],
  'invoice.paid': ({ object, at }) => [toInvoiceChange(object, 'succeeded', at)],
  'invoice.payment_failed': ({ object, at }) => [toInvoiceChange(object, 'failed', at)],
  'customer.subscription.created': ({ object, at }) => [toSubscriptionChange(object, 'created', at)],
  'customer.subscription.updated': readSubscription,
  'customer.subscription.deleted': ({ object, at }) => [toSubscriptionChange(object, 'deleted', at)],
  'customer.subscription.paused': readSubscription,
  'customer.subscription.resumed': readSubscription,
  'customer.subscription.trial_will_end': readSubscription,
  'charge.refunded': ({ object, at }) => toChargeChanges(object, at),
  'charge.refund.updated': readRefund,
  'refund.created': readRefund,
  'refund.updated': readRefund,
  'refund.failed': readRefund,
  'charge.dispute.created': readDispute,
  'charge.dispute.updated': readDispute,
  'charge.dispute.closed': readDispute,
  'radar.early_fraud_warning.created': readWarning,
  'radar.early_fraud_warning.updated': readWarning,
  // An alias of `radar.early_fraud_warning.created`.
  'fraudscreen.early_fraud_warning.created': readWarning,
}

/** Returns the changes that an event reports. Omits transactions without ids. */
export function changesOf(event: ProviderEvent): Change[] {
  const reported = isEventType(event.type) ? CHANGE_READERS[event.type](event) : []
  const customer = idOf(event.object.customer)
  const customerChanges: Change[] = customer === null ? [] : [{ kind: 'customer', id: customer }]
  return [
    ...customerChanges,
    ...reported.filter(
      (change): change is Change =>
        change !== null && (change.kind !== 'transaction' || change.ids.length > 0),
    ),
  ]
}

/** An object to look up at the provider after an event, by the task `payments.look-up`. */
export interface LookUpRequest {
  readonly what: 'invoice' | 'charge' | 'subscription'
  readonly id: string
}

/**
 * Returns the look-up that an event requires; null if it requires none.
 *
 * Invoices since 2025 do not name the payment intents that paid them, and sessions may name only the invoice. Without a
 * look-up, a payment would count twice.
 * Charges since 2022 do not list their refunds: without a look-up, refunds made outside Millrace would get no rows.
 */
export function findRequiredLookUp({ type, object }: ProviderEvent): LookUpRequest | null {
  const id = idOf(object.id)
  if (id === null) return null
  if (type === 'charge.refunded') {
    const isComplete = itemsOf(object.refunds).length > 0 && objectOf(object.refunds).has_more !== true
    return isComplete || object.captured === false ? null : { what: 'charge', id }
  }
  if (type === 'invoice.paid' || type === 'invoice.payment_failed')
    return lacksPayments(object) ? { what: 'invoice', id } : null
  return type.startsWith('checkout.session.') &&
    toSessionChange(object, 0) !== null &&
    isPaidByInvoice(object)
    ? { what: 'invoice', id: idOf(object.invoice)! }
    : null
}

/** Returns the id of the subscription that an event is about; null if it is about another object. */
export function findSubscriptionId({ type, object }: ProviderEvent): string | null {
  return type.startsWith('customer.subscription.') ? idOf(object.id) : null
}
