import { type Change, createEarliestStamp, createFact, createStamp, omitUnknownFacts } from './facts.ts'
import { JOB_METADATA_KEY } from './provider.ts'
import { distinctIds, idOf, integerOf, objectOf, type ProviderObject, textOf } from './reading.ts'

/** Derives changes of refunds from the provider's objects. `at` is the time of the report in seconds. */

type RefundChange = Extract<Change, { kind: 'refund' }>

// The status to report for each of the provider's refund states, with its rank. A refund never moves to a lower rank,
// but one that succeeded may still fail at the bank, even weeks later.
const REFUND_STATES: Readonly<Record<string, readonly [rank: number, ours: string]>> = {
  pending: [0, 'pending'],
  requires_action: [0, 'pending'],
  succeeded: [1, 'succeeded'],
  canceled: [2, 'canceled'],
  failed: [3, 'failed'],
}
const FIRST_RANK_WITHOUT_MONEY = 2

const UUID_PATTERN = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Returns the change for a refund; null if the refund lacks an id (old API versions), a payment, an amount or a
 * currency.
 */
export function toRefundChange(refund: ProviderObject, at: number): RefundChange | null {
  const id = idOf(refund.id)
  const ids = distinctIds(idOf(refund.charge), idOf(refund.payment_intent))
  const amount = integerOf(refund.amount)
  const currency = textOf(refund.currency)
  if (id === null || ids.length === 0 || amount === null || currency === null) return null
  const [rank, status] = REFUND_STATES[textOf(refund.status) ?? 'succeeded'] ?? REFUND_STATES.pending!
  const metadata = objectOf(refund.metadata)
  const job = textOf(metadata[JOB_METADATA_KEY])
  return {
    kind: 'refund',
    id,
    ids,
    request: job !== null && UUID_PATTERN.test(job) ? job : null,
    facts: omitUnknownFacts({
      refund: ['0', id],
      outcome: [createStamp(rank, at), status],
      returned_at: rank < FIRST_RANK_WITHOUT_MONEY ? null : [createEarliestStamp(at), at],
      money: [createStamp(1), { amount, currency: currency.toLowerCase() }],
      created: createFact('0', integerOf(refund.created) ?? at),
      description: createFact('0', textOf(metadata.note) ?? textOf(refund.reason)),
    }),
  }
}

/**
 * Returns the change for a refund that the provider reports; null like `toRefundChange`. Also null for the release of an
 * amount that was never captured, which moves no money.
 */
export function toReportedRefund(refund: ProviderObject, at: number): RefundChange | null {
  const change = toRefundChange(refund, at)
  const isRelease = refund.status === 'succeeded' && refund.balance_transaction === null
  // A refund that this service requested is no release.
  return isRelease && change?.request === null ? null : change
}

/** Returns the changes for a refund, whose payment may be unknown yet. */
export function toRefundChanges(refund: ProviderObject, at: number): Change[] {
  const change = toReportedRefund(refund, at)
  if (change === null) return []
  const facts = omitUnknownFacts({
    charge: createFact('', idOf(refund.charge)),
    payment_intent: createFact('', idOf(refund.payment_intent)),
  })
  return [{ kind: 'transaction', ids: change.ids, facts }, change]
}
