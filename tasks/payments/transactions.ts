import {
  type Change,
  createEarliestStamp,
  createFact,
  createStamp,
  type Fact,
  omitUnknownFacts,
} from './facts.ts'
import { distinctIds, idOf, integerOf, itemsOf, objectOf, type ProviderObject, textOf } from './reading.ts'

/**
 * Derives changes of payments from the provider's objects. A payment may have a session, an invoice, a payment intent
 * and a charge, and each of these objects names some of the others. `at` is the time of the report, in seconds since
 * the epoch.
 */

type Outcome = 'pending' | 'failed' | 'canceled' | 'succeeded'

// Success is final: a failure that is reported later belongs to an earlier payment attempt.
const OUTCOME_RANK: Readonly<Record<Outcome, number>> = { pending: 0, failed: 1, canceled: 2, succeeded: 3 }

// Ranks sources by the reliability of their amount. Several charges may pay an invoice, and a session has only the
// requested amount.
const SOURCE_RANK = { session: 1, intent: 2, charge: 3, invoice: 4 } as const

interface PaymentReport {
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

function toTransactionChange(report: PaymentReport): Change {
  const { charge = null, intent = null, invoice = null, session = null } = report
  const succeeded = report.outcome === 'succeeded' ? 1 : 0
  const at = createStamp(succeeded, report.at)
  const money =
    report.amount === null || report.currency === null || report.amount < 0
      ? null
      : { amount: report.amount, currency: report.currency.toLowerCase() }
  return {
    kind: 'transaction',
    ids: distinctIds(charge, intent, invoice, session),
    facts: omitUnknownFacts({
      outcome: [createStamp(OUTCOME_RANK[report.outcome]), report.outcome],
      money: createFact(createStamp(report.source, succeeded, report.at), money),
      created: report.created === null ? null : [createEarliestStamp(report.created), report.created],
      description: createFact(createStamp(report.source, report.at), report.description),
      customer: createFact(at, report.customer),
      charge: createFact(at, charge),
      payment_intent: createFact(at, intent),
      invoice: createFact(at, invoice),
      session: createFact(at, session),
      subscription: createFact(at, report.subscription),
      refunded: report.refunded ?? null,
    }),
  }
}

/**
 * Returns the change for a completed session. Null if the session has no payment of its own, for example because it
 * starts a trial.
 */
export function toSessionChange(session: ProviderObject, at: number): Change | null {
  const intent = idOf(session.payment_intent)
  const amount = integerOf(session.amount_total)
  if (session.mode === 'setup' || (amount === 0 && intent === null)) return null
  return toTransactionChange({
    source: SOURCE_RANK.session,
    at,
    outcome: session.payment_status === 'unpaid' ? 'pending' : 'succeeded',
    amount,
    currency: textOf(session.currency),
    created: integerOf(session.created) ?? at,
    description: null,
    customer: idOf(session.customer),
    session: idOf(session.id),
    intent,
    invoice: idOf(session.invoice),
    subscription: idOf(session.subscription),
  })
}

/** Returns the change for a payment intent that succeeded or failed. */
export function toIntentChange(intent: ProviderObject, outcome: 'succeeded' | 'failed', at: number): Change {
  const received = integerOf(intent.amount_received)
  const failedCharge = idOf(objectOf(intent.last_payment_error).charge)
  // API versions since 2025 name the invoice only as the order reference.
  const order = textOf(objectOf(intent.payment_details).order_reference)
  return toTransactionChange({
    source: SOURCE_RANK.intent,
    at,
    outcome: outcome === 'failed' && intent.status === 'canceled' ? 'canceled' : outcome,
    amount:
      outcome === 'succeeded' && received !== null && received > 0 ? received : integerOf(intent.amount),
    currency: textOf(intent.currency),
    created: integerOf(intent.created) ?? at,
    description: textOf(intent.description),
    customer: idOf(intent.customer),
    charge: idOf(intent.latest_charge) ?? idOf(itemsOf(intent.charges)[0]) ?? failedCharge,
    intent: idOf(intent.id),
    invoice: idOf(intent.invoice) ?? (order?.startsWith('in_') ? order : null),
  })
}

/**
 * Returns the change for an invoice that was paid or whose payment failed. Null if the amount is zero, for example for
 * a trial.
 */
export function toInvoiceChange(
  invoice: ProviderObject,
  outcome: 'succeeded' | 'failed',
  at: number,
): Change | null {
  const due = integerOf(invoice.amount_due)
  const paid = integerOf(invoice.amount_paid)
  if (due === 0 && (paid ?? 0) === 0) return null
  const line = itemsOf(invoice.lines)[0]
  return toTransactionChange({
    source: SOURCE_RANK.invoice,
    at,
    outcome,
    amount: outcome === 'succeeded' && paid !== null && paid > 0 ? paid : due,
    currency: textOf(invoice.currency),
    created: integerOf(invoice.created) ?? at,
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

/** Returns the changes for a charge that was partly or fully refunded, and for the refunds that it lists. */
export function toChargeChanges(charge: ProviderObject, at: number): Change[] {
  const refunded = integerOf(charge.amount_refunded)
  const id = idOf(charge.id)
  const change = toTransactionChange({
    source: SOURCE_RANK.charge,
    at,
    outcome: 'succeeded',
    amount: integerOf(charge.amount_captured) ?? integerOf(charge.amount),
    currency: textOf(charge.currency),
    created: integerOf(charge.created) ?? at,
    description: textOf(charge.description),
    customer: idOf(charge.customer),
    charge: id,
    intent: idOf(charge.payment_intent),
    invoice: idOf(charge.invoice),
    refunded: refunded === null ? null : [createStamp(at, refunded), refunded],
  })
  return [
    change,
    ...itemsOf(charge.refunds).flatMap((refund) => toRefundChange({ ...refund, charge: id }, at) ?? []),
  ]
}

type RefundChange = Extract<Change, { kind: 'refund' }>

const REFUND_RANK: Readonly<Record<string, number>> = { pending: 0, succeeded: 1, failed: 2, canceled: 3 }

/** Key of the job's id in the metadata of a refund. It identifies a refund whose response was lost. */
export const JOB_METADATA_KEY = 'millrace_job'

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
  const reported = textOf(refund.status) ?? 'succeeded'
  const status = reported in REFUND_RANK ? reported : 'pending'
  const metadata = objectOf(refund.metadata)
  const job = textOf(metadata[JOB_METADATA_KEY])
  return {
    kind: 'refund',
    id,
    ids,
    request: job !== null && UUID_PATTERN.test(job) ? job : null,
    facts: omitUnknownFacts({
      refund: ['0', id],
      outcome: [createStamp(at, REFUND_RANK[status]!), status],
      money: [createStamp(1), { amount, currency: currency.toLowerCase() }],
      created: createFact('0', integerOf(refund.created) ?? at),
      description: createFact('0', textOf(metadata.note) ?? textOf(refund.reason)),
    }),
  }
}
