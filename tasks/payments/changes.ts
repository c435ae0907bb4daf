import { toDisputeChange, toWarningChange } from './disputes.ts'
import type { Change } from './facts.ts'
import { type EventType, isEventType, type ProviderEvent } from './provider-events.ts'
import { idOf, itemsOf, objectOf } from './reading.ts'
import { toSubscriptionChange } from './subscriptions.ts'
import { toChargeChanges, toIntentChange, toInvoiceChange, toSessionChange } from './transactions.ts'

type ChangeReader = (event: ProviderEvent) => readonly (Change | null)[]

/** Functions that derive changes from an event, by event type. Events of other types change nothing. */
const CHANGE_READERS: Readonly<Record<EventType, ChangeReader>> = {
  'checkout.session.completed': ({ object, at }) => [toSessionChange(object, at)],
  'payment_intent.succeeded': ({ object, at }) => [toIntentChange(object, 'succeeded', at)],
  'payment_intent.payment_failed': ({ object, at }) => [toIntentChange(object, 'failed', at)],
  'invoice.paid': ({ object, at }) => [toInvoiceChange(object, 'succeeded', at)],
  'invoice.payment_failed': ({ object, at }) => [toInvoiceChange(object, 'failed', at)],
  'customer.subscription.created': ({ object, at }) => [toSubscriptionChange(object, 'created', at)],
  'customer.subscription.updated': ({ object, at, before }) => [
    toSubscriptionChange(object, 'updated', at, before),
  ],
  'customer.subscription.deleted': ({ object, at }) => [toSubscriptionChange(object, 'deleted', at)],
  'charge.refunded': ({ object, at }) => toChargeChanges(object, at),
  'charge.dispute.created': ({ object, at, type }) => [toDisputeChange(object, type, at)],
  'charge.dispute.updated': ({ object, at, type }) => [toDisputeChange(object, type, at)],
  'charge.dispute.closed': ({ object, at, type }) => [toDisputeChange(object, type, at)],
  'radar.early_fraud_warning.created': ({ object, at, type }) => [toWarningChange(object, type, at)],
  // An alias of `radar.early_fraud_warning.created`.
  'fraudscreen.early_fraud_warning.created': ({ object, at, type }) => [toWarningChange(object, type, at)],
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
  readonly what: 'invoice' | 'charge'
  readonly id: string
}

/**
 * Returns the look-up that an event requires; null if it requires none.
 *
 * Invoices since 2025 do not name the payment intent that paid them: without a look-up, one payment would count twice.
 * Charges since 2022 do not list their refunds: without a look-up, refunds made outside Millrace would get no rows.
 */
export function findRequiredLookUp({ type, object }: ProviderEvent): LookUpRequest | null {
  const id = idOf(object.id)
  if (id === null) return null
  if (type === 'charge.refunded') return itemsOf(object.refunds).length === 0 ? { what: 'charge', id } : null
  if (type !== 'invoice.paid' && type !== 'invoice.payment_failed') return null
  const linked = idOf(object.payment_intent) ?? idOf(object.charge)
  return linked === null && 'parent' in object && objectOf(object.payments).data === undefined
    ? { what: 'invoice', id }
    : null
}
