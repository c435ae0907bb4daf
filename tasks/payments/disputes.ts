import { type Change, createFact, createStamp, omitUnknownFacts } from './facts.ts'
import { distinctIds, idOf, integerOf, objectOf, type ProviderObject, textOf } from './reading.ts'

// The state to report for each of the provider's dispute states, with its rank in the order of progress.
const DISPUTE_STATES: Readonly<Record<string, readonly [rank: number, ours: string]>> = {
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

const DISPUTE_EVENT_TYPES = ['charge.dispute.created', 'charge.dispute.updated', 'charge.dispute.closed']

/**
 * Returns the change with a dispute's state at `at`, in seconds; null without an id. Unknown states become
 * `needs_response`.
 */
export function toDisputeChange(dispute: ProviderObject, eventType: string, at: number): Change | null {
  const [rank, status] = DISPUTE_STATES[textOf(dispute.status) ?? ''] ?? DISPUTE_STATES.needs_response!
  const due = integerOf(objectOf(dispute.evidence_details).due_by)
  return buildDisputeChange(dispute, at, {
    state: [
      createStamp(at, Math.max(0, DISPUTE_EVENT_TYPES.indexOf(eventType)), rank),
      { status, event_type: eventType, at },
    ],
    reason: textOf(dispute.reason),
    due_by: due === 0 ? null : due,
  })
}

/**
 * Returns the change for an early fraud warning, which has no amount. `fraud_type` is its reason. It ends once it is
 * not actionable, because the payment was refunded or disputed, and never becomes actionable again.
 */
export function toWarningChange(warning: ProviderObject, eventType: string, at: number): Change | null {
  const isClosed = warning.actionable === false
  const status = isClosed ? 'warning_closed' : 'warning_issued'
  return buildDisputeChange(warning, at, {
    state: [createStamp(isClosed ? 1 : 0, at), { status, event_type: eventType, at }],
    reason: textOf(warning.fraud_type),
    due_by: null,
  })
}

function buildDisputeChange(
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
    facts: omitUnknownFacts({
      state: fields.state,
      reason: createFact(createStamp(at), fields.reason),
      money: createFact(createStamp(at), money),
      due_by: createFact(createStamp(at), fields.due_by),
      created: createFact('0', integerOf(object.created) ?? at),
      charge: createFact('0', charge),
      payment_intent: createFact('0', intent),
    }),
  }
}
