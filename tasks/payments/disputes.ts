import { type Change, facts, known, stamp } from './facts.ts'
import { idOf, idsOf, objectOf, type ProviderObject, textOf, wholeOf } from './reading.ts'

// The provider's states in the order in which a dispute goes through them, and ours.
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

/** A dispute as of `at`, in seconds; null without an id. An unknown state counts as `needs_response`. */
export function disputeChange(dispute: ProviderObject, eventType: string, at: number): Change | null {
  const [rank, status] = STATES[textOf(dispute.status) ?? ''] ?? STATES.needs_response!
  const due = wholeOf(objectOf(dispute.evidence_details).due_by)
  return change(dispute, at, {
    state: [stamp(at, Math.max(0, TYPES.indexOf(eventType)), rank), { status, event_type: eventType, at }],
    reason: textOf(dispute.reason),
    due_by: due === 0 ? null : due,
  })
}

/** An early fraud warning: it has no amount, and its own kind of reason. */
export function warningChange(warning: ProviderObject, eventType: string, at: number): Change | null {
  return change(warning, at, {
    state: [stamp(at), { status: 'warning_issued', event_type: eventType, at }],
    reason: textOf(warning.fraud_type),
    due_by: null,
  })
}

function change(
  said: ProviderObject,
  at: number,
  given: { state: readonly [string, unknown]; reason: string | null; due_by: number | null },
): Change | null {
  const id = idOf(said.id)
  if (id === null) return null
  const [charge, intent] = [idOf(said.charge), idOf(said.payment_intent)]
  const amount = wholeOf(said.amount)
  const currency = textOf(said.currency)
  const money = amount === null || currency === null ? null : { amount, currency: currency.toLowerCase() }
  return {
    kind: 'dispute',
    id,
    ids: idsOf(charge, intent),
    facts: facts({
      state: given.state,
      reason: known(stamp(at), given.reason),
      money: known(stamp(at), money),
      due_by: known(stamp(at), given.due_by),
      created: known('0', wholeOf(said.created) ?? at),
      charge: known('0', charge),
      payment_intent: known('0', intent),
    }),
  }
}
