import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startEdge } from '../edge/harness.ts'
import type { Person } from '../edge/orgs-help.ts'
import {
  buildCharge,
  buildIntent,
  buildInvoice,
  buildRefund,
  buildSession,
  buildSubscription,
  buildWarning,
  createEvent,
  signEvent,
  type TestEvent,
} from '../payment-events.ts'
import { startPaymentsWorld } from '../payments-world.ts'
import { until } from '../until.ts'

/** Payments whose state changes after the first report, and events that change nothing. */

const world = await startPaymentsWorld()
const { api, call, createPayment, env, link, people, query, send, stripe, transaction, url } = world
const open = await startEdge(url, { env: { ...env, AUTH_LEVEL: 'none' } })
const PATH = '/api/v1/payment/webhook'
const ACKNOWLEDGEMENT = { received: 'true' }
let names = 0

/** Returns a new name, with an account that owns its payments. */
async function createOwnName(): Promise<string> {
  const name = `later${++names}x`
  const [who] = await people(1)
  await link(who!, name)
  owners.set(name, who!)
  return name
}
const owners = new Map<string, Person>()
const ownerOf = (name: string) => owners.get(name)!
const readSummary = async (name: string) => (await call(ownerOf(name), 'GET', '/status')).json
const listTransactions = async (name: string): Promise<Record<string, unknown>[]> =>
  (await call(ownerOf(name), 'GET', '/transactions?page_size=200')).json.transactions
const refundFrom = (name: string, more: object): Record<string, unknown> => ({
  ...buildRefund(name, 1, 2000, Math.floor(Date.now() / 1000)),
  ...more,
})

describe('a refund', () => {
  for (const type of ['refund.failed', 'refund.updated', 'charge.refund.updated'])
    test(`that fails later returns its amount: ${type}`, async () => {
      const name = await createOwnName()
      const id = await createPayment(name)
      const who = ownerOf(name)
      const { json: refund } = await call(who, 'POST', `/refund/${id}`, {})
      await send(createEvent('charge.refunded', buildCharge({ name }, 2000)))
      assert.equal((await transaction(who, id)).status, 'refunded')
      assert.equal((await readSummary(name)).total_revenue_cents, 0)
      const failed = { id: refund.provider_transaction_id, status: 'failed' }
      stripe.account.refunds.find((one) => one.id === failed.id)!.status = 'failed'
      await send(createEvent(type, refundFrom(name, failed)))
      assert.equal((await transaction(who, refund.id)).status, 'failed')
      assert.equal((await transaction(who, id)).status, 'succeeded')
      assert.equal((await readSummary(name)).total_revenue_cents, 2000)
      const again = await call(who, 'POST', `/refund/${id}`, {})
      assert.equal(again.status, 200, again.text)
      assert.equal((await transaction(who, id)).status, 'refunded')
    })

  test('has the states of the provider, in any order, even before its payment', async () => {
    for (const [theirs, ours, charge] of [
      ['pending', 'pending', 'refunded'],
      ['requires_action', 'pending', 'refunded'],
      ['succeeded', 'succeeded', 'refunded'],
      ['failed', 'failed', 'succeeded'],
      ['canceled', 'canceled', 'succeeded'],
    ] as const) {
      const name = await createOwnName()
      await send(createEvent('refund.created', refundFrom(name, { status: theirs })))
      await send(createEvent('charge.refund.updated', refundFrom(name, { status: 'pending' })))
      const id = await createPayment(name)
      const rows = await listTransactions(name)
      assert.deepEqual(
        rows.map(({ type, status }) => [type, status]).sort(),
        [
          ['charge', charge],
          ['refund', ours],
        ],
        theirs,
      )
      assert.equal((await transaction(ownerOf(name), id)).status, charge)
    }
  })

  test('that failed in part leaves the other refunds', async () => {
    const name = await createOwnName()
    const id = await createPayment(name)
    const at = Math.floor(Date.now() / 1000)
    const [first, second] = [buildRefund(name, 1, 300, at), buildRefund(name, 2, 500, at)]
    await send(createEvent('refund.failed', { ...first, status: 'failed' }, { created: at + 9 }))
    await send(createEvent('refund.created', second, { created: at }))
    await send(createEvent('charge.refunded', buildCharge({ name }, 800), { created: at }))
    assert.equal((await transaction(ownerOf(name), id)).status, 'partially_refunded')
    assert.equal((await readSummary(name)).total_revenue_cents, 1500)
  })
})

test('a partial capture counts what was captured; a canceled or released authorization counts nothing', async () => {
  const name = await createOwnName()
  const captured = { amount: 2000, amount_received: 1500 }
  await send(createEvent('payment_intent.succeeded', buildIntent({ name }, captured)))
  const release = { ...buildRefund(name, 1, 500, 1_700_000_000), balance_transaction: null }
  await send(
    createEvent(
      'charge.refunded',
      buildCharge({ name }, 500, { amount_captured: 1500, captured: true, refunds: { data: [release] } }),
    ),
  )
  await send(createEvent('refund.created', release))
  assert.deepEqual(
    (await listTransactions(name)).map(({ type, status, amount }) => [type, status, amount]),
    [['charge', 'succeeded', 1500]],
  )
  assert.equal((await readSummary(name)).total_revenue_cents, 1500)

  const other = await createOwnName()
  const uncaptured = { amount_captured: 0, captured: false, refunds: { data: [] } }
  await send(createEvent('charge.refunded', buildCharge({ name: other }, 2000, uncaptured)))
  await send(
    createEvent(
      'payment_intent.canceled',
      buildIntent({ name: other }, { amount_received: 0, status: 'canceled' }),
    ),
  )
  assert.deepEqual(
    (await listTransactions(other)).map(({ status, amount }) => [status, amount]),
    [['canceled', 2000]],
  )
  assert.equal((await readSummary(other)).total_revenue_cents, 0)
})

test('a session that is paid later is pending until its payment succeeds or fails', async () => {
  for (const [type, status] of [
    ['checkout.session.async_payment_succeeded', 'succeeded'],
    ['checkout.session.async_payment_failed', 'failed'],
  ] as const) {
    const name = await createOwnName()
    await send(
      createEvent('checkout.session.completed', buildSession({ name }, { payment_status: 'unpaid' })),
    )
    assert.equal((await listTransactions(name))[0]!.status, 'pending')
    const paid = { payment_status: status === 'succeeded' ? 'paid' : 'unpaid' }
    await send(createEvent(type, buildSession({ name }, paid)))
    assert.equal((await listTransactions(name))[0]!.status, status)
  }
})

describe('an invoice with several payments', () => {
  const splitInvoice = (name: string, more: object = {}): Record<string, unknown> => {
    const {
      payment_intent: _,
      charge: __,
      subscription: ___,
      ...rest
    } = buildInvoice({ name, amount: 5000 }, true)
    return { ...rest, parent: { subscription_details: { subscription: `sub_${name}` } }, ...more }
  }
  const pay = async (name: string, part: string): Promise<void> => {
    const ids = { name: `${name}${part}`, customer: `cus_${name}`, amount: 2500 }
    stripe.account.charges.set(`ch_${ids.name}`, {
      ...{ id: `ch_${ids.name}`, payment_intent: `pi_${ids.name}`, amount: 2500, currency: 'usd' },
    })
    await send(createEvent('payment_intent.succeeded', buildIntent(ids)))
  }
  const waitUntilLinked = (name: string): Promise<unknown> =>
    until('the payments are one transaction', async () => (await listTransactions(name)).length === 1)

  test('counts once, and each payment is refunded on its own', async () => {
    const name = await createOwnName()
    stripe.account.invoices.set(`in_${name}`, { [`pi_${name}a`]: 2500, [`pi_${name}b`]: 2500 })
    await pay(name, 'a')
    await send(createEvent('invoice.paid', splitInvoice(name)))
    await pay(name, 'b')
    await waitUntilLinked(name)
    const [row] = await listTransactions(name)
    assert.deepEqual([row!.amount, row!.type, row!.status], [5000, 'subscription', 'succeeded'])
    assert.equal((await readSummary(name)).total_revenue_cents, 5000)
    const refuse = await call(ownerOf(name), 'POST', `/refund/${row!.id}`, {})
    assert.equal(refuse.status, 400)
    assert.match(refuse.json.detail, /at most 2500 can be refunded in one request/)
    for (const amount of [2000, 2500]) {
      const answer = await call(ownerOf(name), 'POST', `/refund/${row!.id}`, { amount })
      assert.equal(answer.status, 200, answer.text)
    }
    assert.equal((await readSummary(name)).total_revenue_cents, 500)
  })

  test('counts once if its event lists them', async () => {
    const name = await createOwnName()
    for (const part of ['a', 'b']) await pay(name, part)
    const data = ['a', 'b'].map((part) => ({
      ...{ status: 'paid', amount_paid: 2500, currency: 'usd' },
      payment: { type: 'payment_intent', payment_intent: `pi_${name}${part}` },
    }))
    await send(createEvent('invoice.paid', splitInvoice(name, { payments: { data } })))
    assert.equal((await listTransactions(name)).length, 1)
    assert.equal((await readSummary(name)).total_revenue_cents, 5000)
  })

  test('counts once if only its session and its payment are known', async () => {
    const name = await createOwnName()
    stripe.account.invoices.set(`in_${name}`, `pi_${name}`)
    const links = { mode: 'subscription', invoice: `in_${name}`, payment_intent: null }
    await send(createEvent('payment_intent.succeeded', buildIntent({ name })))
    await send(createEvent('checkout.session.completed', buildSession({ name }, links)))
    await waitUntilLinked(name)
    assert.equal((await readSummary(name)).total_revenue_cents, 2000)
  })

  test('counts what was paid while it is open', async () => {
    const name = await createOwnName()
    await pay(name, 'a')
    const data = [{ status: 'paid', amount_paid: 2500, payment: { payment_intent: `pi_${name}a` } }]
    const unpaid = splitInvoice(name, { amount_paid: 0, payments: { data } })
    await send(createEvent('invoice.payment_failed', unpaid))
    assert.equal((await readSummary(name)).total_revenue_cents, 2500)
  })

  test('does not count until its payments are known, which the status reports', async () => {
    const name = await createOwnName()
    stripe.account.invoices.set(`in_${name}`, { [`pi_${name}a`]: 2500, [`pi_${name}b`]: 2500 })
    await pay(name, 'a')
    stripe.faults.push('forbidden')
    await send(createEvent('invoice.paid', splitInvoice(name)))
    const { total_revenue_cents, unlinked_invoices } = await readSummary(name)
    assert.deepEqual([total_revenue_cents, unlinked_invoices], [2500, 1])
  })
})

describe('a subscription', () => {
  const readOne = async (name: string) =>
    (await call(ownerOf(name), 'GET', '/subscriptions')).json.subscriptions[0]
  const END = 1_702_592_000

  test('with an end has it, however the provider says so', async () => {
    for (const [given, ends, at] of [
      [{ cancel_at: END }, true, '2023-12-14T22:13:20.000Z'],
      [{ cancel_at: END - 5 }, true, '2023-12-14T22:13:15.000Z'],
      [{ cancel_at: END + 86_400 }, false, '2023-12-15T22:13:20.000Z'],
      [{ cancel_at_period_end: true, cancel_at: null }, true, null],
      [{ cancel_at: null }, false, null],
    ] as const) {
      const name = await createOwnName()
      await send(createEvent('customer.subscription.updated', buildSubscription({ name }, given)))
      const one = await readOne(name)
      assert.deepEqual(
        [one.cancel_at_period_end, one.cancel_at === null ? null : new Date(one.cancel_at).toISOString()],
        [ends, at],
      )
    }
  })

  test('whose end is taken back runs on', async () => {
    const name = await createOwnName()
    const at = 1_700_000_000
    const tell = (cancelAt: number | null, created: number) =>
      send(
        createEvent('customer.subscription.updated', buildSubscription({ name }, { cancel_at: cancelAt }), {
          created,
        }),
      )
    await tell(END, at)
    assert.equal((await readOne(name)).cancel_at_period_end, true)
    await tell(null, at + 5)
    await tell(END, at)
    assert.deepEqual(
      [(await readOne(name)).cancel_at_period_end, (await readOne(name)).cancel_at],
      [false, null],
    )
  })

  test('pauses, resumes and ends by the events of each', async () => {
    const name = await createOwnName()
    const states = [
      ['created', 'trialing', 'trialing'],
      ['trial_will_end', 'trialing', 'trialing'],
      ['paused', 'paused', 'unpaid'],
      ['resumed', 'active', 'active'],
      ['updated', 'incomplete_expired', 'canceled'],
    ] as const
    for (const [n, [event, theirs, ours]] of states.entries()) {
      const object = buildSubscription({ name }, { status: theirs })
      await send(createEvent(`customer.subscription.${event}`, object, { created: 1_700_000_000 + n }))
      assert.equal((await readOne(name)).status, ours, event)
    }
  })

  test('with two events in one second has the state that the provider has', async () => {
    const name = await createOwnName()
    const created = 1_700_000_000
    stripe.account.subscriptions.set(`sub_${name}`, buildSubscription({ name }) as never)
    const past = buildSubscription({ name }, { status: 'past_due' })
    await send(createEvent('customer.subscription.updated', buildSubscription({ name }), { created }))
    await send(createEvent('customer.subscription.updated', past, { created }))
    await until('the subscription is active', async () => (await readOne(name)).status === 'active')
  })
})

test('an early fraud warning ends when it is not actionable', async () => {
  const name = await createOwnName()
  await createPayment(name)
  const readOne = async () => (await call(ownerOf(name), 'GET', '/disputes')).json.disputes[0]
  await send(createEvent('radar.early_fraud_warning.created', buildWarning({ name })))
  assert.equal((await readOne()).status, 'warning_issued')
  await send(createEvent('radar.early_fraud_warning.updated', buildWarning({ name }, { actionable: false })))
  const { status, event_type } = await readOne()
  assert.deepEqual([status, event_type], ['warning_closed', 'radar.early_fraud_warning.updated'])
  assert.deepEqual((await call(ownerOf(name), 'GET', '/disputes?status=open')).json.disputes, [])
})

describe('an event that is not for this account', () => {
  const postSigned = (value: unknown) => {
    const body = JSON.stringify(value)
    return api.post(PATH, { body, headers: { 'stripe-signature': signEvent(body) } })
  }
  const event: TestEvent = createEvent('payment_intent.succeeded', buildIntent({ name: 'foreign' }))

  test('is acknowledged in every form', async () => {
    const deep = JSON.parse(`${'{"a":'.repeat(100)}1${'}'.repeat(100)}`)
    for (const given of [
      { id: 'evt_1', object: 'v2.core.event', type: 'v1.invoice.paid', created: '2026-01-01T00:00:00.000Z' },
      { id: 'evt_2', object: 'v2.core.event', type: 'invoice.paid', created: '2026-01-01T00:00:00.000Z' },
      { type: 'something.new', data: {} },
      { type: '' },
      { type: 'toString', id: 5, created: -1, data: deep },
    ]) {
      const answer = await postSigned(given)
      assert.deepEqual([answer.status, answer.json], [200, ACKNOWLEDGEMENT])
    }
    assert.deepEqual(await query(`select from payment_event where id in ('evt_1', 'evt_2')`), [])
  })

  test('of a connected account or the other mode is counted, and changes nothing', async () => {
    for (const given of [
      { ...event, account: 'acct_1' },
      { ...event, account: 'acct_1', livemode: true },
      { ...event, livemode: true },
      { type: 'charge.refunded', livemode: true },
    ])
      assert.deepEqual((await postSigned(given)).json, ACKNOWLEDGEMENT)
    await postSigned({ ...event, type: 'customer.created', account: 'acct_1' })
    const { ignored_events } = (await open.get('/api/v1/payment/status')).json
    assert.deepEqual(
      ignored_events.map(({ last_received_at, ...rest }: { last_received_at: string }) => {
        assert.ok(Date.parse(last_received_at) > 0)
        return rest
      }),
      [
        { reason: 'connected_account', events: 2, last_type: 'payment_intent.succeeded' },
        { reason: 'other_mode', events: 2, last_type: 'charge.refunded' },
      ],
    )
    assert.deepEqual(await query(`select from payment_reference where provider_id = 'pi_foreign'`), [])
    assert.deepEqual(await query('select from payment_event where id = $1', [event.id]), [])
  })
})
