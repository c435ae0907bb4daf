import { type Change, factOrNull, knownFacts, stamp } from './facts.ts'
import { distinctIds, idOf, integerOf, objectOf, type ProviderObject, textOf } from './reading.ts'

// The provider's dispute states, ranked in the order of their progress, and the state that we report for each.
const STATES: Readonly<Record<string, readonly [rank: number, ours: string]>> = {
  warning_needs_response: [0, 'warning_issued'],
  warning_under_review: [1, 'warning_issued'],
  needs_response: [2, 'needs_response'],
  under_review: [3, 'under_review'],
  prevented: [4, 'warning_closed'],
  warning_closed: [4, 'warning_closed'],
  charge_refunded: [5, 'charge_refunded'],
  lost: [6, 'lost'],
  won: [7, 'won'],
}

const TYPES = ['charge.dispute.created', 'charge.dispute.updated', 'charge.dispute.closed']

/**
 * Returns the change with a dispute's state at `at`, in seconds; null without an id. Unknown states become
 * `needs_response`.
 */
export function disputeChange(dispute: ProviderObject, eventType: string, at: number): Change | null {
  const [rank, status] = STATES[textOf(dispute.status) ?? ''] ?? STATES.needs_response!
  const due = integerOf(objectOf(dispute.evidence_details).due_by)
  return buildChange(dispute, at, {
    state: [stamp(at, Math.max(0, TYPES.indexOf(eventType)), rank), { status, event_type: eventType, at }],
    reason: textOf(dispute.reason),
    due_by: due === 0 ? null : due,
  })
}

/** Returns the change for an early fraud warning, which has no amount. `fraud_type` is its reason. */
export function warningChange(warning: ProviderObject, eventType: string, at: number): Change | null {
  return buildChange(warning, at, {
    state: [stamp(at), { status: 'warning_issued', event_type: eventType, at }],
    reason: textOf(warning.fraud_type),
    due_by: null,
  })
}

function buildChange(
  object: ProviderObject,
  at: number,
  fields: { state: readonly [string, unknown]; reason: string | null; due_by: number | null },
): Change | null {
  const id = idOf(object.id)
  if (id === null) return null
  const [charge, intent] = [idOf(object.charge), idOf(object.payment_intent)]
  const amount = integerOf(object.amount)
  const currency = textOf(object.currency)
  const money = amount === null || currency === null ? null : { amount, currency: currency.toLowerCase() }
  return {
    kind: 'dispute',
    id,
    ids: distinctIds(charge, intent),
    facts: knownFacts({
      state: fields.state,
      reason: factOrNull(stamp(at), fields.reason),
      money: factOrNull(stamp(at), money),
      due_by: factOrNull(stamp(at), fields.due_by),
      created: factOrNull('0', integerOf(object.created) ?? at),
      charge: factOrNull('0', charge),
      payment_intent: factOrNull('0', intent),
    }),
  }
}
