import { type Change, earliest, type Fact, facts, known, stamp } from './facts.ts'
import { idOf, idsOf, itemsOf, objectOf, type ProviderObject, textOf, wholeOf } from './reading.ts'

/**
 * What the provider's objects say about a payment. One payment has several: a session, an invoice, a payment intent and
 * a charge, each naming some of the others. `at` is the time of the statement, in seconds since the epoch.
 */

type Outcome = 'pending' | 'failed' | 'canceled' | 'succeeded'

// A payment that has succeeded stays so: a failure was that of an earlier attempt.
const OUTCOME_RANK: Readonly<Record<Outcome, number>> = { pending: 0, failed: 1, canceled: 2, succeeded: 3 }

// How well each knows what was paid: an invoice may be paid by several charges, a session only says what was requested.
const SOURCE = { session: 1, intent: 2, charge: 3, invoice: 4 } as const

interface Said {
  readonly source: number
  readonly at: number
  readonly outcome: Outcome
  readonly amount: number | null
  readonly currency: string | null
  readonly created: number | null
  readonly description: string | null
  readonly customer: string | null
  readonly charge?: string | null
  readonly intent?: string | null
  readonly invoice?: string | null
  readonly session?: string | null
  readonly subscription?: string | null
  readonly refunded?: Fact | null
}

function transaction(said: Said): Change {
  const { charge = null, intent = null, invoice = null, session = null } = said
  const settled = said.outcome === 'succeeded' ? 1 : 0
  const at = stamp(settled, said.at)
  const money =
    said.amount === null || said.currency === null || said.amount < 0
      ? null
      : { amount: said.amount, currency: said.currency.toLowerCase() }
  return {
    kind: 'transaction',
    ids: idsOf(charge, intent, invoice, session),
    facts: facts({
      outcome: [stamp(OUTCOME_RANK[said.outcome]), said.outcome],
      money: known(stamp(said.source, settled, said.at), money),
      created: said.created === null ? null : [earliest(said.created), said.created],
      description: known(stamp(said.source, said.at), said.description),
      customer: known(at, said.customer),
      charge: known(at, charge),
      payment_intent: known(at, intent),
      invoice: known(at, invoice),
      session: known(at, session),
      subscription: known(at, said.subscription),
      refunded: said.refunded ?? null,
    }),
  }
}

/** A completed session; null for one without a payment of its own, such as for a trial. */
export function sessionChange(session: ProviderObject, at: number): Change | null {
  const intent = idOf(session.payment_intent)
  const amount = wholeOf(session.amount_total)
  if (session.mode === 'setup' || (amount === 0 && intent === null)) return null
  return transaction({
    source: SOURCE.session,
    at,
    outcome: session.payment_status === 'unpaid' ? 'pending' : 'succeeded',
    amount,
    currency: textOf(session.currency),
    created: wholeOf(session.created) ?? at,
    description: null,
    customer: idOf(session.customer),
    session: idOf(session.id),
    intent,
    invoice: idOf(session.invoice),
    subscription: idOf(session.subscription),
  })
}

/** A payment intent that has succeeded or failed. */
export function intentChange(intent: ProviderObject, outcome: 'succeeded' | 'failed', at: number): Change {
  const received = wholeOf(intent.amount_received)
  const failedCharge = idOf(objectOf(intent.last_payment_error).charge)
  // Versions from 2025 on name the invoice only as the reference of the order.
  const order = textOf(objectOf(intent.payment_details).order_reference)
  return transaction({
    source: SOURCE.intent,
    at,
    outcome: outcome === 'failed' && intent.status === 'canceled' ? 'canceled' : outcome,
    amount: outcome === 'succeeded' && received !== null && received > 0 ? received : wholeOf(intent.amount),
    currency: textOf(intent.currency),
    created: wholeOf(intent.created) ?? at,
    description: textOf(intent.description),
    customer: idOf(intent.customer),
    charge: idOf(intent.latest_charge) ?? idOf(itemsOf(intent.charges)[0]) ?? failedCharge,
    intent: idOf(intent.id),
    invoice: idOf(intent.invoice) ?? (order?.startsWith('in_') ? order : null),
  })
}

/** An invoice that was paid, or whose payment has failed; null for one over zero, such as for a trial. */
export function invoiceChange(
  invoice: ProviderObject,
  outcome: 'succeeded' | 'failed',
  at: number,
): Change | null {
  const due = wholeOf(invoice.amount_due)
  const paid = wholeOf(invoice.amount_paid)
  if (due === 0 && (paid ?? 0) === 0) return null
  const line = itemsOf(invoice.lines)[0]
  return transaction({
    source: SOURCE.invoice,
    at,
    outcome,
    amount: outcome === 'succeeded' && paid !== null && paid > 0 ? paid : due,
    currency: textOf(invoice.currency),
    created: wholeOf(invoice.created) ?? at,
    description: textOf(invoice.description) ?? textOf(line?.description),
    customer: idOf(invoice.customer),
    charge: idOf(invoice.charge),
    intent: idOf(invoice.payment_intent) ?? intentOfPayments(invoice),
    invoice: idOf(invoice.id),
    subscription: subscriptionOf(invoice),
  })
}

function subscriptionOf(invoice: ProviderObject): string | null {
  return (
    idOf(invoice.subscription) ?? idOf(objectOf(objectOf(invoice.parent).subscription_details).subscription)
  )
}

function intentOfPayments(invoice: ProviderObject): string | null {
  return idOf(objectOf(itemsOf(invoice.payments)[0]?.payment).payment_intent)
}

/** A charge that was refunded, at least in part, and the refunds that it lists. */
export function chargeChanges(charge: ProviderObject, at: number): Change[] {
  const refunded = wholeOf(charge.amount_refunded)
  const id = idOf(charge.id)
  const change = transaction({
    source: SOURCE.charge,
    at,
    outcome: 'succeeded',
    amount: wholeOf(charge.amount_captured) ?? wholeOf(charge.amount),
    currency: textOf(charge.currency),
    created: wholeOf(charge.created) ?? at,
    description: textOf(charge.description),
    customer: idOf(charge.customer),
    charge: id,
    intent: idOf(charge.payment_intent),
    invoice: idOf(charge.invoice),
    refunded: refunded === null ? null : [stamp(at, refunded), refunded],
  })
  return [
    change,
    ...itemsOf(charge.refunds).flatMap((refund) => refundChange({ ...refund, charge: id }, at) ?? []),
  ]
}

type RefundChange = Extract<Change, { kind: 'refund' }>

const REFUND_RANK: Readonly<Record<string, number>> = { pending: 0, succeeded: 1, failed: 2, canceled: 3 }

/** The metadata of our refunds names the job that requested them: a refund whose answer was lost is found by it. */
export const REQUEST_KEY = 'millrace_job'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** A refund; null when it has no id, as in old versions, or does not name its payment. */
export function refundChange(refund: ProviderObject, at: number): RefundChange | null {
  const id = idOf(refund.id)
  const ids = idsOf(idOf(refund.charge), idOf(refund.payment_intent))
  const amount = wholeOf(refund.amount)
  const currency = textOf(refund.currency)
  if (id === null || ids.length === 0 || amount === null || currency === null) return null
  const said = textOf(refund.status) ?? 'succeeded'
  const status = said in REFUND_RANK ? said : 'pending'
  const metadata = objectOf(refund.metadata)
  const job = textOf(metadata[REQUEST_KEY])
  return {
    kind: 'refund',
    id,
    ids,
    request: job !== null && UUID.test(job) ? job : null,
    facts: facts({
      refund: ['0', id],
      outcome: [stamp(at, REFUND_RANK[status]!), status],
      money: [stamp(1), { amount, currency: currency.toLowerCase() }],
      created: known('0', wholeOf(refund.created) ?? at),
      description: known('0', textOf(metadata.note) ?? textOf(refund.reason)),
    }),
  }
}
