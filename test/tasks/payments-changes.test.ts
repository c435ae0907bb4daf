import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { changesOf, findRequiredLookUp } from '../../tasks/payments/changes.ts'
import { type Change, createEarliestStamp, createStamp } from '../../tasks/payments/facts.ts'
import { JOB_METADATA_KEY } from '../../tasks/payments/provider.ts'
import { parseEvent, subjectOf } from '../../tasks/payments/provider-events.ts'
import {
  buildCharge,
  buildIntent,
  buildInvoice,
  buildRefund,
  buildSession,
  buildSubscription,
  createEvent,
} from '../payment-events.ts'

const AT = 1_700_000_000
const changesFrom = (type: string, object: object, before: object = {}): Change[] =>
  changesOf({ type, at: AT, object: object as never, before: before as never })
const changeFrom = (type: string, object: object, before: object = {}) =>
  changesFrom(type, object, before).find(({ kind }) => kind !== 'customer')!
const extractFactValues = (change: Change | undefined) =>
  Object.fromEntries(
    Object.entries('facts' in change! ? change.facts : {}).map(([key, [, value]]) => [key, value]),
  )
const extractIds = (change: Change) => ('ids' in change ? change.ids : [])

describe('stamps', () => {
  test('compare like their numbers', () => {
    const ascending = [
      createStamp(0),
      createStamp(0, 5),
      createStamp(0, 10),
      createStamp(9),
      createStamp(10, 1),
      createStamp(10, 2),
      createStamp(1_700_000_000),
    ]
    assert.deepEqual([...ascending].sort(), ascending)
    assert.ok(createEarliestStamp(5) > createEarliestStamp(6))
    assert.ok('' < createStamp(0) && '0' < createStamp(0))
  })
})

describe('a payment', () => {
  test('has all ids in its objects, expanded or not', () => {
    const intent = buildIntent(
      { name: 'x' },
      { latest_charge: { id: 'ch_1', object: 'charge' }, invoice: { id: 'in_1' } },
    )
    assert.deepEqual(extractIds(changeFrom('payment_intent.succeeded', intent)), ['ch_1', 'pi_x', 'in_1'])
    const old = { id: 'pi_old', amount: 5, currency: 'USD', charges: { data: [{ id: 'ch_old' }] } }
    assert.deepEqual(extractIds(changeFrom('payment_intent.succeeded', old)), ['ch_old', 'pi_old'])
    const today = { ...buildIntent({ name: 'y' }), payment_details: { order_reference: 'in_9' } }
    assert.deepEqual(extractIds(changeFrom('payment_intent.succeeded', today)), ['ch_y', 'pi_y', 'in_9'])
    const shop = { ...buildIntent({ name: 'y' }), payment_details: { order_reference: 'order 9' } }
    assert.deepEqual(extractIds(changeFrom('payment_intent.succeeded', shop)), ['ch_y', 'pi_y'])
    const paid = {
      id: 'in_2',
      amount_due: 5,
      amount_paid: 5,
      currency: 'usd',
      payments: { data: [{ payment: { payment_intent: 'pi_2' } }] },
    }
    assert.deepEqual(extractIds(changeFrom('invoice.paid', paid)), ['pi_2', 'in_2'])
  })

  test('belongs to a subscription if its invoice or session says so, in each version', () => {
    const parent = { parent: { subscription_details: { subscription: 'sub_1' } }, subscription: undefined }
    assert.equal(
      extractFactValues(changeFrom('invoice.paid', { ...buildInvoice({ name: 'x' }, true), ...parent }))
        .subscription,
      'sub_1',
    )
    assert.equal(
      extractFactValues(changeFrom('invoice.paid', buildInvoice({ name: 'x' }, true))).subscription,
      'sub_x',
    )
    assert.equal(
      extractFactValues(changeFrom('invoice.paid', buildInvoice({ name: 'x' }, true, { subscription: null })))
        .subscription,
      undefined,
    )
  })

  test('has the amount that was received, paid or requested', () => {
    const money = (type: string, object: object) => extractFactValues(changeFrom(type, object)).money
    assert.deepEqual(
      money(
        'payment_intent.succeeded',
        buildIntent({ name: 'x', amount: 500, currency: 'EUR' }, { amount_received: 400 }),
      ),
      { amount: 400, currency: 'eur' },
    )
    assert.deepEqual(
      money('payment_intent.payment_failed', buildIntent({ name: 'x', amount: 500 }, { amount_received: 0 })),
      { amount: 500, currency: 'usd' },
    )
    assert.deepEqual(money('invoice.payment_failed', buildInvoice({ name: 'x', amount: 7 }, false)), {
      amount: 7,
      currency: 'usd',
    })
    assert.deepEqual(
      money('charge.refunded', buildCharge({ name: 'x', amount: 9 }, 3, { amount_captured: 8 })),
      { amount: 8, currency: 'usd' },
    )
    for (const bad of [1.5, '5', null, undefined, Number.MAX_VALUE, -1])
      assert.equal(money('payment_intent.succeeded', { id: 'pi', amount: bad, currency: 'usd' }), undefined)
  })

  test('without an amount does not exist: trials, and setup sessions', () => {
    assert.deepEqual(changesFrom('checkout.session.completed', { id: 'cs', mode: 'setup' }), [])
    assert.deepEqual(
      changesFrom('checkout.session.completed', {
        id: 'cs',
        mode: 'subscription',
        amount_total: 0,
        invoice: 'in_1',
      }),
      [],
    )
    assert.deepEqual(
      changesFrom('invoice.paid', { id: 'in', amount_due: 0, amount_paid: 0, currency: 'usd' }),
      [],
    )
  })

  test('is pending until it is paid, and canceled if it was', () => {
    const outcome = (type: string, object: object) => extractFactValues(changeFrom(type, object)).outcome
    assert.equal(
      outcome('checkout.session.completed', buildSession({ name: 'x' }, { payment_status: 'unpaid' })),
      'pending',
    )
    assert.equal(outcome('checkout.session.completed', buildSession({ name: 'x' })), 'succeeded')
    assert.equal(
      outcome('payment_intent.payment_failed', buildIntent({ name: 'x' }, { status: 'canceled' })),
      'canceled',
    )
    assert.equal(
      outcome(
        'payment_intent.payment_failed',
        buildIntent({ name: 'x' }, { status: 'requires_payment_method' }),
      ),
      'failed',
    )
  })

  test('with a partial refund names the refunds in its own object', () => {
    const refunds = [
      { id: 're_1', amount: 3, currency: 'usd', status: 'succeeded' },
      { amount: 4, currency: 'usd' },
      { id: 're_2', amount: 5, currency: 'usd', status: 'requires_action' },
    ]
    for (const list of [refunds, { object: 'list', data: refunds }]) {
      const changes = changesFrom('charge.refunded', buildCharge({ name: 'x' }, 8, { refunds: list }))
      assert.deepEqual(
        changes
          .filter(({ kind }) => kind === 'refund')
          .map((change) => [extractIds(change), extractFactValues(change).outcome]),
        [
          [['ch_x'], 'succeeded'],
          [['ch_x'], 'pending'],
        ],
      )
    }
  })
})

describe('a subscription', () => {
  const state = (more: object, type = 'customer.subscription.updated', before = {}) =>
    changeFrom(type, buildSubscription({ name: 'x' }, more), before)

  test('has the provider’s states in our words', () => {
    for (const [theirs, ours] of Object.entries({
      incomplete: 'incomplete',
      trialing: 'trialing',
      active: 'active',
      past_due: 'past_due',
      unpaid: 'unpaid',
      paused: 'unpaid',
      incomplete_expired: 'canceled',
      canceled: 'canceled',
      new_one: 'incomplete',
    }))
      assert.equal(extractFactValues(state({ status: theirs })).status, ours)
    assert.equal(
      extractFactValues(state({ status: 'active' }, 'customer.subscription.deleted')).status,
      'canceled',
    )
  })

  test('has its period in each version, and the best name of its plan', () => {
    const early = {
      items: { data: [] },
      current_period_start: 1,
      current_period_end: 2,
      plan: { id: 'plan_1', name: 'Gold' },
    }
    const { period_start, period_end, plan_name } = extractFactValues(state(early))
    assert.deepEqual([period_start, period_end, plan_name], [1, 2, 'Gold'])
    assert.equal(extractFactValues(state({})).period_end, 1_702_592_000)
    const named = (price: object) => extractFactValues(state({ items: { data: [{ price }] } })).plan_name
    assert.equal(named({ id: 'price_1', nickname: null, product: { name: 'Silver' } }), 'Silver')
    assert.equal(named({ id: 'price_1', lookup_key: 'silver', product: 'prod_1' }), 'silver')
    assert.equal(named({ id: 'price_1' }), 'price_1')
  })

  test('is updated by the latest change within a second', () => {
    const stampOf = (change: Change) => ('facts' in change ? change.facts.cancel_at_period_end![0] : '')
    const changed = state({ cancel_at_period_end: false }, undefined, { cancel_at_period_end: true })
    const carried = state({ cancel_at_period_end: true }, undefined, { metadata: {} })
    assert.ok(stampOf(changed) > stampOf(carried))
  })
})

describe('events', () => {
  test('without content change nothing', () => {
    for (const type of [
      'payment_intent.succeeded',
      'invoice.paid',
      'charge.refunded',
      'checkout.session.completed',
      'customer.subscription.updated',
      'charge.dispute.created',
      'radar.early_fraud_warning.created',
      'x',
      'toString',
    ])
      assert.deepEqual(changesFrom(type, {}), [])
  })

  test('of a refund without money change nothing, unless this service requested it', () => {
    const refund = { ...buildRefund('x', 1, 500, AT), balance_transaction: null }
    const kinds = (object: object) => changesFrom('refund.updated', object).map(({ kind }) => kind)
    assert.deepEqual(kinds(refund), [])
    assert.deepEqual(kinds({ ...refund, status: 'failed' }), ['transaction', 'refund'])
    const metadata = { [JOB_METADATA_KEY]: '018f0000-0000-7000-8000-000000000001' }
    assert.deepEqual(kinds({ ...refund, metadata }), ['transaction', 'refund'])
  })

  test('require a request only if their version lacks data', () => {
    const lookUpFrom = (type: string, object: object) =>
      findRequiredLookUp({ type, at: AT, object: object as never, before: {} })
    assert.deepEqual(lookUpFrom('charge.refunded', { id: 'ch_1' }), { what: 'charge', id: 'ch_1' })
    assert.equal(lookUpFrom('charge.refunded', { id: 'ch_1', refunds: { data: [{ id: 're_1' }] } }), null)
    assert.deepEqual(lookUpFrom('invoice.paid', { id: 'in_1', parent: null }), {
      what: 'invoice',
      id: 'in_1',
    })
    assert.equal(lookUpFrom('invoice.paid', { id: 'in_1', charge: null }), null)
    assert.equal(lookUpFrom('invoice.paid', { id: 'in_1', parent: null, payment_intent: 'pi_1' }), null)
    assert.equal(lookUpFrom('payment_intent.succeeded', { id: 'pi_1' }), null)
    const list = (has_more: boolean) => ({ data: [{ id: 're_1' }], has_more })
    assert.equal(lookUpFrom('charge.refunded', { id: 'ch_1', refunds: list(false) }), null)
    assert.equal(lookUpFrom('charge.refunded', { id: 'ch_1', refunds: list(true) })?.what, 'charge')
    assert.equal(lookUpFrom('charge.refunded', { id: 'ch_1', captured: false }), null)
    assert.equal(lookUpFrom('invoice.paid', { id: 'in_1', parent: null, payments: list(false) }), null)
    assert.equal(
      lookUpFrom('invoice.paid', { id: 'in_1', parent: null, payments: list(true) })?.what,
      'invoice',
    )
    const session = {
      id: 'cs_1',
      mode: 'subscription',
      amount_total: 5,
      invoice: 'in_1',
      payment_intent: null,
    }
    assert.deepEqual(lookUpFrom('checkout.session.completed', session), { what: 'invoice', id: 'in_1' })
    assert.equal(lookUpFrom('checkout.session.completed', { ...session, amount_total: 0 }), null)
    assert.equal(lookUpFrom('checkout.session.completed', { ...session, payment_intent: 'pi_1' }), null)
  })

  test('of one payment have one subject', () => {
    const subject = (object: Record<string, unknown>) => subjectOf({ type: 'x', at: AT, object, before: {} })
    assert.equal(subject(buildIntent({ name: 'x' })), 'pi_x')
    assert.equal(subject(buildCharge({ name: 'x' }, 1)), 'pi_x')
    assert.equal(subject({ id: 'in_1', subscription: 'sub_1' }), 'sub_1')
    assert.equal(subject({}), 'unknown')
  })

  test('are parsed only if they are valid', () => {
    const good = createEvent('x', { id: 'y' }, { id: 'evt_1', created: 5 })
    assert.deepEqual(parseEvent(good), {
      id: 'evt_1',
      type: 'x',
      created: 5,
      data: { object: { id: 'y' }, previous_attributes: {} },
    })
    for (const bad of [
      null,
      5,
      'x',
      [],
      {},
      { ...good, id: '' },
      { ...good, created: -1 },
      { ...good, created: 1e15 },
      { ...good, data: null },
    ])
      assert.equal(parseEvent(bad), null)
  })
})
