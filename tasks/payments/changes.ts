import { disputeChange, warningChange } from './disputes.ts'
import type { Change } from './facts.ts'
import { type EventType, isEventType, type ProviderEvent } from './provider-events.ts'
import { idOf, itemsOf, objectOf } from './reading.ts'
import { subscriptionChange } from './subscriptions.ts'
import { chargeChanges, intentChange, invoiceChange, sessionChange } from './transactions.ts'

type Reader = (event: ProviderEvent) => readonly (Change | null)[]

/** How each type of event is read; any other type is ignored. */
const READERS: Readonly<Record<EventType, Reader>> = {
  'checkout.session.completed': ({ object, at }) => [sessionChange(object, at)],
  'payment_intent.succeeded': ({ object, at }) => [intentChange(object, 'succeeded', at)],
  'payment_intent.payment_failed': ({ object, at }) => [intentChange(object, 'failed', at)],
  'invoice.paid': ({ object, at }) => [invoiceChange(object, 'succeeded', at)],
  'invoice.payment_failed': ({ object, at }) => [invoiceChange(object, 'failed', at)],
  'customer.subscription.created': ({ object, at }) => [subscriptionChange(object, 'created', at)],
  'customer.subscription.updated': ({ object, at, before }) => [
    subscriptionChange(object, 'updated', at, before),
  ],
  'customer.subscription.deleted': ({ object, at }) => [subscriptionChange(object, 'deleted', at)],
  'charge.refunded': ({ object, at }) => chargeChanges(object, at),
  'charge.dispute.created': ({ object, at, type }) => [disputeChange(object, type, at)],
  'charge.dispute.updated': ({ object, at, type }) => [disputeChange(object, type, at)],
  'charge.dispute.closed': ({ object, at, type }) => [disputeChange(object, type, at)],
  'radar.early_fraud_warning.created': ({ object, at, type }) => [warningChange(object, type, at)],
  // The same under another name.
  'fraudscreen.early_fraud_warning.created': ({ object, at, type }) => [warningChange(object, type, at)],
}

/** The changes that an event reports, without those that name no object. */
export function changesOf(event: ProviderEvent): Change[] {
  const said = isEventType(event.type) ? READERS[event.type](event) : []
  const customer = idOf(event.object.customer)
  const first: Change[] = customer === null ? [] : [{ kind: 'customer', id: customer }]
  return [
    ...first,
    ...said.filter(
      (change): change is Change =>
        change !== null && (change.kind !== 'transaction' || change.ids.length > 0),
    ),
  ]
}

/** What has to be looked up at the provider after an event: see the task `payments.look-up`. */
export interface LookUp {
  readonly what: 'invoice' | 'charge'
  readonly id: string
}

/**
 * Since 2025 an invoice does not name the payment intent that paid it, and since 2022 a charge does not list its
 * refunds. Without the former, one payment is counted twice; without the latter, refunds that were made elsewhere have
 * no rows of their own.
 */
export function lookUpOf({ type, object }: ProviderEvent): LookUp | null {
  const id = idOf(object.id)
  if (id === null) return null
  if (type === 'charge.refunded') return itemsOf(object.refunds).length === 0 ? { what: 'charge', id } : null
  if (type !== 'invoice.paid' && type !== 'invoice.payment_failed') return null
  const linked = idOf(object.payment_intent) ?? idOf(object.charge)
  return linked === null && 'parent' in object && objectOf(object.payments).data === undefined
    ? { what: 'invoice', id }
    : null
}
