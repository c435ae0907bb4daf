import type { Chance } from './chance.ts'
import {
  buildCharge,
  buildDispute,
  buildIntent,
  buildInvoice,
  buildSubscription,
  buildWarning,
  createEvent,
  type TestEvent,
} from './payment-events.ts'

/**
 * A small model of Stripe: a subscription, its invoice with one or two payments, their refunds, a dispute and a
 * warning. Random steps change them and emit Stripe's events.
 */

type Status = 'pending' | 'requires_action' | 'succeeded' | 'failed' | 'canceled'

interface Refund {
  readonly id: string
  readonly part: number
  readonly amount: number
  readonly created: number
  status: Status
}

/** The rows that the service shows at the end of a life. */
export interface ExpectedRows {
  /** Null before the first report about the invoice. */
  readonly payment: { readonly status: string; readonly amount: number; readonly refunded: number } | null
  /** Sorted. */
  readonly refunds: readonly (readonly [amount: number, status: string])[]
  readonly revenue: number
  readonly subscription: { readonly status: string; readonly ends: boolean; readonly cancelAt: number | null }
  /** Sorted. */
  readonly disputes: readonly string[]
}

const PART_AMOUNT = 2500
const PERIOD_SECONDS = 2_592_000
const NEXT_REFUND_STATES: Readonly<Record<Status, readonly Status[]>> = {
  requires_action: ['pending', 'canceled', 'failed'],
  pending: ['succeeded', 'failed', 'canceled'],
  succeeded: ['failed'],
  failed: [],
  canceled: [],
}
const NEXT_SUBSCRIPTION_STATES: Readonly<Record<string, readonly string[]>> = {
  incomplete: ['active', 'trialing', 'incomplete_expired'],
  trialing: ['active', 'paused', 'canceled'],
  active: ['past_due', 'canceled'],
  past_due: ['active', 'unpaid', 'canceled'],
  unpaid: ['active', 'canceled'],
  paused: ['active', 'canceled'],
  incomplete_expired: [],
  canceled: [],
}
const SHOWN_STATUSES: Readonly<Record<string, string>> = {
  paused: 'unpaid',
  incomplete_expired: 'canceled',
  requires_action: 'pending',
}
const show = (status: string): string => SHOWN_STATUSES[status] ?? status
const isAlive = ({ status }: Refund): boolean => status !== 'failed' && status !== 'canceled'
const sumOf = (refunds: readonly Refund[]): number => refunds.reduce((sum, { amount }) => sum + amount, 0)

/** Lives a random life. All ids contain `name`. Returns its events in order, and the rows that they lead to. */
export function liveRandomly(
  name: string,
  chance: Chance,
): { readonly events: TestEvent[]; readonly expected: ExpectedRows } {
  const start = 1_700_000_000
  const periodEnd = start + PERIOD_SECONDS
  const partCount = chance.between(1, 2)
  const total = partCount * PART_AMOUNT
  const parts = Array.from({ length: partCount }, (_, n) => ({ name: `${name}p${n}`, isPaid: false }))
  const refunds: Refund[] = []
  const events: TestEvent[] = []
  const subscription: { status: string; cancel_at: number | null; cancel_at_period_end: boolean } = {
    ...{ status: 'incomplete', cancel_at: null, cancel_at_period_end: false },
  }
  let now = start
  let reported: 'none' | 'failed' | 'canceled' = 'none'
  let dispute: string | null = null
  let warning: boolean | null = null

  const emit = (type: string, object: Record<string, unknown>, before?: object): void => {
    const id = `evt_${name}_${events.length}`
    events.push(createEvent(type, object, { id, created: now, ...(before === undefined ? {} : { before }) }))
  }
  const idsOf = (part: number) => ({
    ...{ name: parts[part]!.name, customer: `cus_${name}`, amount: PART_AMOUNT, at: start },
  })
  const refundsOf = (part: number): Refund[] => refunds.filter((one) => one.part === part && isAlive(one))
  const paidCount = (): number => parts.filter(({ isPaid }) => isPaid).length

  const invoice = (isPaid: boolean): Record<string, unknown> => {
    const data = parts.map((part) => ({
      ...{ status: part.isPaid ? 'paid' : 'open', amount_paid: part.isPaid ? PART_AMOUNT : null },
      ...{ currency: 'usd', payment: { type: 'payment_intent', payment_intent: `pi_${part.name}` } },
    }))
    const links = { payment_intent: null, charge: null, payments: { data } }
    return buildInvoice({ name, amount: total, at: start }, isPaid, links)
  }
  const refundObject = ({ id, part, amount, created, status }: Refund): Record<string, unknown> => ({
    ...{ id, object: 'refund', amount, currency: 'usd', charge: `ch_${parts[part]!.name}`, created, status },
    ...{ payment_intent: `pi_${parts[part]!.name}`, reason: null, metadata: {} },
  })
  const emitSubscription = (event: string, before?: object): void =>
    emit(`customer.subscription.${event}`, buildSubscription({ name, at: start }, subscription), before)

  const unpaid = (): number[] => parts.flatMap(({ isPaid }, n) => (isPaid ? [] : [n]))
  const refundable = (): number[] =>
    parts.flatMap(({ isPaid }, n) => (isPaid && sumOf(refundsOf(n)) < PART_AMOUNT ? [n] : []))

  const steps: readonly (() => void)[] = [
    function failPayment() {
      const [part] = unpaid()
      if (part === undefined || reported === 'canceled') return
      emit('payment_intent.payment_failed', buildIntent(idsOf(part), { amount_received: 0 }))
      emit('invoice.payment_failed', invoice(false))
      reported = 'failed'
    },
    function pay() {
      const open = unpaid()
      if (open.length === 0 || reported === 'canceled') return
      const part = chance.pick(open)
      parts[part]!.isPaid = true
      emit('payment_intent.succeeded', buildIntent(idsOf(part)))
      if (unpaid().length === 0) emit('invoice.paid', invoice(true))
    },
    function cancelPayment() {
      if (partCount > 1 || paidCount() > 0 || reported === 'canceled' || !chance.isHit(0.2)) return
      const canceled = { amount_received: 0, status: 'canceled' }
      emit('payment_intent.canceled', buildIntent(idsOf(0), canceled))
      reported = 'canceled'
    },
    function refund() {
      const open = refundable()
      if (open.length === 0) return
      const part = chance.pick(open)
      const left = PART_AMOUNT - sumOf(refundsOf(part))
      const amount = chance.isHit(0.5) ? left : chance.between(1, left)
      const status = chance.pick(['pending', 'requires_action', 'succeeded'] as const)
      const made = { id: `re_${name}_${refunds.length}`, part, amount, created: now, status }
      refunds.push(made)
      emit('refund.created', refundObject(made))
      const list = chance.isHit(0.5) ? {} : { refunds: { data: refundsOf(part).map(refundObject) } }
      emit('charge.refunded', buildCharge(idsOf(part), sumOf(refundsOf(part)), list))
    },
    function changeRefund() {
      const open = refunds.filter(({ status }) => NEXT_REFUND_STATES[status].length > 0)
      if (open.length === 0) return
      const one = chance.pick(open)
      one.status = chance.pick(NEXT_REFUND_STATES[one.status])
      const type = one.status === 'failed' ? 'refund.failed' : 'refund.updated'
      emit(chance.pick([type, 'charge.refund.updated']), refundObject(one))
    },
    function changeSubscription() {
      const states = NEXT_SUBSCRIPTION_STATES[subscription.status]!
      if (states.length === 0) return
      const { status } = subscription
      subscription.status = chance.pick(states)
      if (subscription.status === 'canceled') return emitSubscription('deleted')
      emitSubscription('updated', { status })
      if (subscription.status === 'paused') emitSubscription('paused')
      if (status === 'paused') emitSubscription('resumed')
    },
    function changeEnd() {
      if (NEXT_SUBSCRIPTION_STATES[subscription.status]!.length === 0) return
      const { cancel_at, cancel_at_period_end } = subscription
      subscription.cancel_at = chance.pick([null, periodEnd, periodEnd + PERIOD_SECONDS])
      subscription.cancel_at_period_end = subscription.cancel_at === periodEnd && chance.isHit(0.5)
      emitSubscription('updated', { cancel_at, cancel_at_period_end })
    },
    function changeDispute() {
      if (!parts[0]!.isPaid || dispute === 'won' || dispute === 'lost') return
      const ids = { ...idsOf(0), name: parts[0]!.name }
      const [event, status] =
        dispute === null
          ? (['created', 'needs_response'] as const)
          : dispute === 'needs_response'
            ? (['updated', 'under_review'] as const)
            : (['closed', chance.pick(['won', 'lost'])] as const)
      dispute = status
      emit(`charge.dispute.${event}`, buildDispute(ids, status))
    },
    function changeWarning() {
      if (!parts[0]!.isPaid || warning === false) return
      const event = warning === null ? 'created' : 'updated'
      warning = warning === null
      emit(`radar.early_fraud_warning.${event}`, buildWarning(idsOf(0), { actionable: warning }))
    },
  ]

  emitSubscription('created')
  for (let n = chance.between(5, 25); n > 0; n--) {
    now += chance.between(1, 3)
    chance.pick(steps)()
  }

  const isSeen = paidCount() > 0 || reported !== 'none'
  const amount = paidCount() > 0 ? paidCount() * PART_AMOUNT : total
  const refunded = sumOf(refunds.filter(isAlive))
  const paidStatus = refunded === 0 ? 'succeeded' : refunded >= amount ? 'refunded' : 'partially_refunded'
  return {
    events,
    expected: {
      payment: isSeen ? { status: paidCount() > 0 ? paidStatus : reported, amount, refunded } : null,
      refunds: refunds.map(({ amount, status }) => [amount, show(status)] as const).sort(compareTexts),
      revenue: paidCount() > 0 ? amount - refunded : 0,
      subscription: {
        status: show(subscription.status),
        ends: subscription.cancel_at === periodEnd || subscription.cancel_at_period_end,
        cancelAt: subscription.cancel_at,
      },
      disputes: [
        ...(dispute === null ? [] : [dispute]),
        ...(warning === null ? [] : [warning ? 'warning_issued' : 'warning_closed']),
      ].sort(),
    },
  }
}

const compareTexts = (one: unknown, other: unknown): number => (String(one) < String(other) ? -1 : 1)
