import { z } from 'zod'
import type { NewEvent } from '../../sql/payments/changes.ts'
import type { IgnoreReason } from '../../sql/payments/payments.ts'
import { idOf, isDeeperThan, objectOf, type ProviderObject, textOf, toStorable } from './reading.ts'
import type { PaymentMode } from './settings.ts'

/** An event about one of the provider's objects, with the object's state after the event. */
export interface ProviderEvent {
  readonly type: string
  /** The time of the event, in seconds since the epoch. */
  readonly at: number
  readonly object: ProviderObject
  /** Values that an update replaced; empty for other events. */
  readonly before: ProviderObject
}

/** Supported event types that the provider's event list accepts (https://docs.stripe.com/api/events/types). */
export const LISTED_EVENT_TYPES = [
  'checkout.session.completed',
  'checkout.session.async_payment_succeeded',
  'checkout.session.async_payment_failed',
  'payment_intent.succeeded',
  'payment_intent.payment_failed',
  'payment_intent.canceled',
  'invoice.paid',
  'invoice.payment_failed',
  'customer.subscription.created',
  'customer.subscription.updated',
  'customer.subscription.deleted',
  'customer.subscription.paused',
  'customer.subscription.resumed',
  'customer.subscription.trial_will_end',
  'charge.refunded',
  'charge.refund.updated',
  'refund.created',
  'refund.updated',
  'refund.failed',
  'charge.dispute.created',
  'charge.dispute.updated',
  'charge.dispute.closed',
  'radar.early_fraud_warning.created',
  'radar.early_fraud_warning.updated',
] as const

const HANDLED_EVENT_TYPES = [
  ...LISTED_EVENT_TYPES,
  // An alias of `radar.early_fraud_warning.created`. The provider's event list rejects the alias.
  'fraudscreen.early_fraud_warning.created',
] as const
export type EventType = (typeof HANDLED_EVENT_TYPES)[number]

/** All supported event types. */
export const EVENT_TYPES: ReadonlySet<string> = new Set(HANDLED_EVENT_TYPES)

/** True if an event type is supported. */
export const isEventType = (type: string): type is EventType => EVENT_TYPES.has(type)

/**
 * Returns why an event is acknowledged without an effect; null if it is to be applied. `type` covers every event that
 * is not listed above, in whatever form, such as thin events. The type is checked before the rest of the event.
 * `mode` is the mode of the provider's key; null if unknown.
 */
export function findIgnoreReason(value: unknown, mode: PaymentMode | null): 'type' | IgnoreReason | null {
  const { type, object, account, livemode } = objectOf(value)
  if (typeof type !== 'string') return null
  if (!isEventType(type) || object === 'v2.core.event') return 'type'
  if (textOf(account) !== null) return 'connected_account'
  return mode !== null && typeof livemode === 'boolean' && livemode !== (mode === 'live')
    ? 'other_mode'
    : null
}

/**
 * Returns the id that most events about one payment have in common. Events with the same subject are applied one at a
 * time.
 */
export function subjectOf({ object }: ProviderEvent): string {
  for (const key of ['payment_intent', 'charge', 'invoice', 'subscription']) {
    const id = idOf(object[key])
    if (id !== null) return id
  }
  return idOf(object.id) ?? 'unknown'
}

const Envelope = z.looseObject({
  id: z.string().min(1).max(255),
  type: z.string().min(1).max(255),
  created: z.int().min(0).max(100_000_000_000),
  data: z.looseObject({ object: z.looseObject({}) }),
})

// Limits the recursion over untrusted input. Genuine events of the provider are nested less than ten levels deep.
const MAX_DEPTH = 64

/** Parses an event from the provider into a storable form; null if it is not a valid event. */
export function parseEvent(value: unknown): NewEvent | null {
  const result = Envelope.safeParse(value)
  if (!result.success || isDeeperThan(result.data.data, MAX_DEPTH)) return null
  const { id, type, created, data } = result.data
  const { object, previous_attributes: before } = data
  return {
    id: String(toStorable(id)),
    type: String(toStorable(type)),
    created,
    data: toStorable({ object, previous_attributes: objectOf(before) }),
  }
}

/** Converts a stored event into the input of `changesOf`. */
export function toProviderEvent(type: string, at: number, data: ProviderObject): ProviderEvent {
  return { type, at, object: objectOf(data.object), before: objectOf(data.previous_attributes) }
}
