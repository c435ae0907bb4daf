import { z } from 'zod'
import type { NewEvent } from '../../sql/payment-changes.ts'
import { idOf, isDeeper, objectOf, type ProviderObject, storable } from './reading.ts'

/** An event of the provider: what happened to one of its objects, and the object's state after that. */
export interface ProviderEvent {
  readonly type: string
  /** When it happened, in seconds since the epoch. */
  readonly at: number
  readonly object: ProviderObject
  /** The values that an update has replaced. */
  readonly before: ProviderObject
}

/** The types of events that we handle (https://docs.stripe.com/api/events/types), as the provider's list knows them. */
export const LISTED_TYPES = [
  'checkout.session.completed',
  'payment_intent.succeeded',
  'payment_intent.payment_failed',
  'invoice.paid',
  'invoice.payment_failed',
  'customer.subscription.created',
  'customer.subscription.updated',
  'customer.subscription.deleted',
  'charge.refunded',
  'charge.dispute.created',
  'charge.dispute.updated',
  'charge.dispute.closed',
  'radar.early_fraud_warning.created',
] as const

const TYPES = [
  ...LISTED_TYPES,
  // The same as the last one under another name, which the provider's list does not know.
  'fraudscreen.early_fraud_warning.created',
] as const
export type EventType = (typeof TYPES)[number]

/** The types of events that we handle. */
export const EVENT_TYPES: ReadonlySet<string> = new Set(TYPES)

/** Whether we handle a type of event. */
export const isEventType = (type: string): type is EventType => EVENT_TYPES.has(type)

/** The id that most events about the same payment share: they are applied one after the other. */
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

// The provider's own events are less than ten levels deep; recursion must not run out of stack.
const DEEPEST = 64

/** Parses an event as the provider sends it, ready to be stored; null when it is not one. */
export function readEvent(given: unknown): NewEvent | null {
  const result = Envelope.safeParse(given)
  if (!result.success || isDeeper(result.data.data, DEEPEST)) return null
  const { id, type, created, data } = result.data
  const { object, previous_attributes: before } = data
  return {
    id: String(storable(id)),
    type: String(storable(type)),
    created,
    data: storable({ object, previous_attributes: objectOf(before) }),
  }
}

/** A stored event in the form that its readers take. */
export function asEvent(type: string, at: number, data: ProviderObject): ProviderEvent {
  return { type, at, object: objectOf(data.object), before: objectOf(data.previous_attributes) }
}
