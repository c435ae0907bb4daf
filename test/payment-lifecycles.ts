import {
  buildCharge,
  buildDispute,
  buildIntent,
  buildInvoice,
  buildRefund,
  buildSession,
  buildSubscription,
  buildWarning,
  createEvent,
  type TestEvent,
} from './payment-events.ts'

/** Names of the payment histories. Their events are in the order in which they happened, and some share a second. */

export const LIFECYCLES = [
  'payment',
  'declined',
  'recovered',
  'subscription',
  'refunded',
  'disputed',
  'renewal',
] as const
export type Lifecycle = (typeof LIFECYCLES)[number]

/** Returns the events of a history. All ids contain `name`, so that histories never overlap. */
export function buildLifecycleEvents(life: Lifecycle, name: string, at = 1_700_000_000): TestEvent[] {
  let n = 0
  const emit = (
    seconds: number,
    type: string,
    object: Record<string, unknown>,
    before?: object,
  ): TestEvent => {
    const id = `evt_${name}_${++n}`
    return createEvent(type, object, {
      id,
      created: at + seconds,
      ...(before === undefined ? {} : { before }),
    })
  }
  return BUILDERS[life](name, at, emit)
}

type Emit = (seconds: number, type: string, object: Record<string, unknown>, before?: object) => TestEvent

const BUILDERS: Readonly<Record<Lifecycle, (name: string, at: number, emit: Emit) => TestEvent[]>> = {
  // The first card is declined, the second succeeds; the session event arrives last.
  payment: (name, at, emit) => [
    emit(
      0,
      'payment_intent.payment_failed',
      buildIntent(
        { name, at },
        { latest_charge: `ch_${name}_0`, amount_received: 0, status: 'requires_payment_method' },
      ),
    ),
    emit(5, 'payment_intent.succeeded', buildIntent({ name, at })),
    emit(5, 'checkout.session.completed', buildSession({ name, at })),
  ],
  // Two cards are declined within a second, and no event shows which came last.
  declined: (name, at, emit) =>
    [1, 2].map((n) =>
      emit(
        0,
        'payment_intent.payment_failed',
        buildIntent(
          { name, at },
          { latest_charge: `ch_${name}_${n}`, description: `Try ${n}`, amount_received: 0 },
        ),
      ),
    ),
  // The payment of an invoice fails twice, the second time in the same second as the final attempt.
  recovered: (name, at, emit) => [
    emit(0, 'customer.subscription.created', buildSubscription({ name, at }, { status: 'incomplete' })),
    emit(1, 'invoice.payment_failed', buildInvoice({ name, at }, false, { charge: `ch_${name}_0` })),
    emit(
      1,
      'payment_intent.payment_failed',
      buildIntent({ name, at, amount: 1500 }, { invoice: `in_${name}`, latest_charge: `ch_${name}_0` }),
    ),
    emit(60, 'invoice.payment_failed', buildInvoice({ name, at }, false)),
    emit(60, 'invoice.paid', buildInvoice({ name, at }, true)),
    emit(60, 'payment_intent.succeeded', buildIntent({ name, at, amount: 1500 }, { invoice: `in_${name}` })),
    emit(60, 'customer.subscription.updated', buildSubscription({ name, at }), { status: 'incomplete' }),
  ],
  // A subscription is created, active, past due, paid, cancelled at the end of its period and deleted. Several events
  // share a second.
  subscription: (name, at, emit) => [
    emit(0, 'customer.subscription.created', buildSubscription({ name, at }, { status: 'incomplete' })),
    emit(0, 'customer.subscription.updated', buildSubscription({ name, at }), { status: 'incomplete' }),
    emit(
      0,
      'checkout.session.completed',
      buildSession(
        { name, at, amount: 1500 },
        { mode: 'subscription', payment_intent: null, invoice: `in_${name}`, subscription: `sub_${name}` },
      ),
    ),
    emit(100, 'customer.subscription.updated', buildSubscription({ name, at }, { status: 'past_due' }), {
      status: 'active',
    }),
    emit(200, 'customer.subscription.updated', buildSubscription({ name, at }), { status: 'past_due' }),
    emit(
      300,
      'customer.subscription.updated',
      buildSubscription({ name, at }, { cancel_at_period_end: true }),
      { cancel_at_period_end: false },
    ),
    emit(300, 'customer.subscription.updated', buildSubscription({ name, at }, { metadata: { a: 'b' } }), {
      metadata: {},
    }),
    emit(
      400,
      'customer.subscription.updated',
      buildSubscription({ name, at }, { status: 'canceled', cancel_at_period_end: true }),
      { status: 'active' },
    ),
    emit(
      400,
      'customer.subscription.deleted',
      buildSubscription({ name, at }, { status: 'canceled', cancel_at_period_end: true }),
    ),
  ],
  // Two refunds happen in one second, and a third refunds the rest.
  refunded: (name, at, emit) => {
    const refunds = [
      buildRefund(name, 1, 300, at + 10),
      buildRefund(name, 2, 500, at + 10),
      buildRefund(name, 3, 1200, at + 20),
    ]
    const list = (count: number) => ({ refunds: { object: 'list', data: refunds.slice(0, count) } })
    return [
      emit(0, 'payment_intent.succeeded', buildIntent({ name, at })),
      emit(1, 'checkout.session.completed', buildSession({ name, at })),
      emit(10, 'charge.refunded', buildCharge({ name, at }, 300, list(1)), { amount_refunded: 0 }),
      emit(10, 'charge.refunded', buildCharge({ name, at }, 800, list(2)), { amount_refunded: 300 }),
      emit(20, 'charge.refunded', buildCharge({ name, at }, 2000, list(3)), { amount_refunded: 800 }),
    ]
  },
  // A warning is followed by a dispute, which is opened, answered and lost.
  disputed: (name, at, emit) => [
    emit(0, 'payment_intent.succeeded', buildIntent({ name, at })),
    emit(5, 'radar.early_fraud_warning.created', buildWarning({ name, at: at + 5 })),
    emit(10, 'charge.dispute.created', buildDispute({ name, at: at + 10 }, 'needs_response')),
    emit(10, 'charge.dispute.updated', buildDispute({ name, at: at + 10 }, 'under_review'), {
      status: 'needs_response',
    }),
    emit(90, 'charge.dispute.updated', buildDispute({ name, at: at + 10 }, 'under_review'), {
      evidence: {},
    }),
    emit(90, 'charge.dispute.closed', buildDispute({ name, at: at + 10 }, 'lost')),
    emit(95, 'charge.refunded', buildCharge({ name, at }, 700), { amount_refunded: 0 }),
  ],
  // No event links all parts of this payment: the session names the invoice, the invoice the intent, and only the
  // charge the refund.
  renewal: (name, at, emit) => [
    emit(
      0,
      'checkout.session.completed',
      buildSession(
        { name, at, amount: 1500 },
        { mode: 'subscription', payment_intent: null, invoice: `in_${name}`, subscription: `sub_${name}` },
      ),
    ),
    emit(0, 'invoice.paid', buildInvoice({ name, at }, true, { charge: null })),
    emit(1, 'payment_intent.succeeded', buildIntent({ name, at, amount: 1500 })),
    emit(2, 'customer.subscription.created', buildSubscription({ name, at })),
    emit(
      50,
      'charge.refunded',
      buildCharge({ name, at, amount: 1500, customer: null }, 500, {
        payment_intent: null,
        refunds: { data: [buildRefund(name, 1, 500, at + 50)] },
      }),
    ),
    emit(
      60,
      'charge.dispute.created',
      buildDispute({ name, at: at + 60, amount: 1500 }, 'warning_needs_response'),
    ),
    emit(70, 'charge.dispute.closed', buildDispute({ name, at: at + 60, amount: 1500 }, 'warning_closed')),
  ],
}
