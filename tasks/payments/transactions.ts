import {
  type Change,
  createEarliestStamp,
  createFact,
  createStamp,
  type Fact,
  omitUnknownFacts,
} from './facts.ts'
import { distinctIds, idOf, integerOf, itemsOf, objectOf, type ProviderObject, textOf } from './reading.ts'
import { toReportedRefund } from './refunds.ts'

/**
 * Derives changes of payments from the provider's objects. A payment may have a session, an invoice, a payment intent
 * and a charge, and each of these objects names some of the others. `at` is the time of the report, in seconds since
 * the epoch.
 */

type Outcome = 'pending' | 'failed' | 'canceled' | 'succeeded'

// Success is final: a failure that is reported later belongs to an earlier payment attempt.
const OUTCOME_RANK: Readonly<Record<Outcome, number>> = { pending: 0, failed: 1, canceled: 2, succeeded: 3 }

// Ranks sources by the reliability of their amount. Several payments may pay an invoice, and a session has only the
// requested amount.
const SOURCE_RANK = { session: 1, intent: 2, charge: 3, payments: 4, invoice: 5 } as const

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
  readonly facts?: Readonly<Record<string, Fact | null>>
  /** Further ids of the payment. */
  readonly others?: readonly string[]
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
    ids: distinctIds(charge, intent, invoice, session, ...(report.others ?? [])),
    facts: omitUnknownFacts({
      outcome: [createStamp(OUTCOME_RANK[report.outcome]), report.outcome],
      // The amount that was paid wins over one that is due.
      money: createFact(createStamp(succeeded, report.source, report.at), money),
      created: report.created === null ? null : [createEarliestStamp(report.created), report.created],
      description: createFact(createStamp(report.source, report.at), report.description),
      customer: createFact(at, report.customer),
      charge: createFact(at, charge),
      payment_intent: createFact(at, intent),
      invoice: createFact(at, invoice),
      session: createFact(at, session),
      subscription: createFact(at, report.subscription),
      ...report.facts,
    }),
  }
}

/**
 * Returns the change for a completed session, whose payment may succeed or fail later. Null if the session has no
 * payment of its own, for example because it starts a trial.
 */
export function toSessionChange(
  session: ProviderObject,
  at: number,
  outcome: Outcome = session.payment_status === 'unpaid' ? 'pending' : 'succeeded',
): Change | null {
  const intent = idOf(session.payment_intent)
  const amount = integerOf(session.amount_total)
  if (session.mode === 'setup' || (amount === 0 && intent === null)) return null
  return toTransactionChange({
    source: SOURCE_RANK.session,
    at,
    outcome,
    amount,
    currency: textOf(session.currency),
    created: integerOf(session.created) ?? at,
    description: null,
    customer: idOf(session.customer),
    session: idOf(session.id),
    intent,
    invoice: idOf(session.invoice),
    subscription: idOf(session.subscription),
    facts: { unlinked: isPaidByInvoice(session) ? createDoubt(outcome) : null },
  })
}

/** True if a session names an invoice, but not the payment of it. */
export function isPaidByInvoice(session: ProviderObject): boolean {
  return idOf(session.invoice) !== null && idOf(session.payment_intent) === null
}

// Values of the fact `unlinked`: a paid invoice does not count while its payments are unknown, because they may count
// already.
const createDoubt = (outcome: Outcome): Fact | null => (outcome === 'succeeded' ? ['0', true] : null)
const CERTAINTY: Fact = ['1', false]

/** Returns the change for a payment intent that ended or whose payment failed. */
export function toIntentChange(
  intent: ProviderObject,
  outcome: 'succeeded' | 'failed' | 'canceled',
  at: number,
): Change {
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
  const payments = itemsOf(invoice.payments).map(toInvoicePayment)
  const known = createPaymentsFacts(payments, at)
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
    intent: idOf(invoice.payment_intent) ?? payments.find(({ intent }) => intent !== null)?.intent ?? null,
    invoice: idOf(invoice.id),
    subscription: subscriptionOf(invoice),
    others: idsOfPayments(payments),
    facts: {
      payments: known.payments ?? null,
      unlinked: lacksPayments(invoice) ? createDoubt(outcome) : CERTAINTY,
    },
  })
}

/** True if an invoice names none of its payments, or not all. Invoices since 2025 name them only on request. */
export function lacksPayments(invoice: ProviderObject): boolean {
  const linked = idOf(invoice.payment_intent) ?? idOf(invoice.charge)
  const { data, has_more } = objectOf(invoice.payments)
  return linked === null && 'parent' in invoice && (data === undefined || has_more === true)
}

/** One of the payments of an invoice. */
export interface InvoicePayment {
  readonly intent: string | null
  readonly charge: string | null
  /** The amount paid; null if unknown. */
  readonly amount: number | null
  readonly currency: string | null
  readonly status: string | null
}

export function toInvoicePayment(object: ProviderObject): InvoicePayment {
  const payment = objectOf(object.payment)
  return {
    intent: idOf(payment.payment_intent),
    charge: idOf(payment.charge),
    amount: integerOf(object.amount_paid),
    currency: textOf(object.currency),
    status: textOf(object.status),
  }
}

/** Returns the change that makes an invoice and all its payments one transaction. */
export function toInvoiceLink(invoice: string, payments: readonly InvoicePayment[], at: number): Change {
  const first = payments.find(({ status }) => status === 'paid') ?? payments[0]
  return {
    kind: 'transaction',
    ids: [invoice, ...idsOfPayments(payments)],
    facts: omitUnknownFacts({
      invoice: ['', invoice],
      payment_intent: createFact('', first?.intent),
      charge: createFact('', first?.charge),
      unlinked: CERTAINTY,
      ...createPaymentsFacts(payments, at),
    }),
  }
}

const idsOfPayments = (payments: readonly InvoicePayment[]): string[] =>
  distinctIds(...payments.flatMap(({ intent, charge }) => [intent, charge]))

/** Returns facts about an invoice with several payments: these, because each is refunded on its own, and their sum. */
function createPaymentsFacts(payments: readonly InvoicePayment[], at: number): Record<string, Fact | null> {
  const paid = payments.filter(({ status, intent }) => status === 'paid' && intent !== null)
  if (paid.length < 2) return {}
  const currency = paid[0]!.currency?.toLowerCase() ?? null
  const amount = paid.reduce((sum, one) => sum + (one.amount ?? Number.NaN), 0)
  const money = currency === null || Number.isNaN(amount) ? null : { amount, currency }
  return {
    payments: [createStamp(at), paid.map(({ intent, amount }) => ({ intent, amount }))],
    money: createFact(createStamp(1, SOURCE_RANK.payments, at), money),
  }
}

function subscriptionOf(invoice: ProviderObject): string | null {
  return (
    idOf(invoice.subscription) ?? idOf(objectOf(objectOf(invoice.parent).subscription_details).subscription)
  )
}

/**
 * Returns the changes for a charge that was partly or fully refunded, and for the refunds that it lists. The provider
 * also reports an authorization that is released, as a refund of what was not captured.
 */
export function toChargeChanges(charge: ProviderObject, at: number): Change[] {
  const id = idOf(charge.id)
  const amount = integerOf(charge.amount)
  const captured = integerOf(charge.amount_captured) ?? amount
  const released = Math.max(0, (amount ?? 0) - (captured ?? 0))
  const refunded = integerOf(charge.amount_refunded)
  const counted = refunded === null ? null : Math.max(0, refunded - released)
  const isCaptured = charge.captured !== false
  const change = toTransactionChange({
    source: SOURCE_RANK.charge,
    at,
    outcome: isCaptured ? 'succeeded' : 'canceled',
    amount: isCaptured ? captured : amount,
    currency: textOf(charge.currency),
    created: integerOf(charge.created) ?? at,
    description: textOf(charge.description),
    customer: idOf(charge.customer),
    charge: id,
    intent: idOf(charge.payment_intent),
    invoice: idOf(charge.invoice),
    facts: {
      refunded: counted === null || !isCaptured ? null : [createStamp(at, counted), { amount: counted, at }],
    },
  })
  const refunds = isCaptured ? itemsOf(charge.refunds) : []
  return [change, ...refunds.flatMap((refund) => toReportedRefund({ ...refund, charge: id }, at) ?? [])]
}
