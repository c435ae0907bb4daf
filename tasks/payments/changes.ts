import { disputeChange, warningChange } from './disputes.ts'
import type { Change } from './facts.ts'
import { idOf, itemsOf, objectOf, type ProviderObject } from './reading.ts'
import { subscriptionChange } from './subscriptions.ts'
import { chargeChanges, intentChange, invoiceChange, sessionChange } from './transactions.ts'

/** An event of the provider: what happened to one of its objects, and how that object is since. */
export interface ProviderEvent {
  readonly type: string
  /** When it happened, in seconds since the epoch. */
  readonly at: number
  readonly object: ProviderObject
  /** The values that an update has replaced. */
  readonly before: ProviderObject
}

type Reader = (event: ProviderEvent) => readonly (Change | null)[]

/** What each type of event says (https://docs.stripe.com/api/events/types). Any other type says nothing to us. */
const READERS: Readonly<Record<string, Reader>> = {
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
  // The same by another name.
  'fraudscreen.early_fraud_warning.created': ({ object, at, type }) => [warningChange(object, type, at)],
}

/** The types of events that say something to us. */
export const EVENT_TYPES: ReadonlySet<string> = new Set(Object.keys(READERS))

/** Those of them that the provider's own list of events knows. */
export const LISTED_TYPES: readonly string[] = [...EVENT_TYPES].filter(
  (type) => !type.startsWith('fraudscreen.'),
)

/** What an event says; nothing of what names no object. */
export function changesOf(event: ProviderEvent): Change[] {
  const said = Object.hasOwn(READERS, event.type) ? READERS[event.type]!(event) : []
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

/** The object that an event is about, by the id that most of its events share: they are applied one after the other. */
export function subjectOf({ object }: ProviderEvent): string {
  for (const key of ['payment_intent', 'charge', 'invoice', 'subscription']) {
    const id = idOf(object[key])
    if (id !== null) return id
  }
  return idOf(object.id) ?? 'unknown'
}

/** What an event leaves to be asked of the provider: see the task `payments.look-up`. */
export interface LookUp {
  readonly what: 'invoice' | 'charge'
  readonly id: string
}

/**
 * Since 2025 an invoice does not say which payment intent has paid it, and since 2022 a charge does not say which
 * refunds it had. Without the first, one payment is counted twice; without the second, refunds that were made elsewhere
 * have no rows of their own.
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
