import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Failure } from '../../sql/errors.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createPayments } from '../../workers/providers/payments/payments.ts'
import { createEvent } from '../payment-events.ts'
import { type Fault, KEY, startStripe } from '../stripe.ts'

/** Tests payments through Stripe's SDK against a stand-in server: requests, and the failure that each fault causes. */

const stripe = await startStripe()
const createSettings = (given: Record<string, string> = {}) =>
  parseSettings({ PROVIDER_SECRET_KEY: KEY, PROVIDER_API_BASE_URL: stripe.url, ...given })
const provider = createPayments(createSettings())
// Tests of a hanging provider use a short timeout. The default is long enough for a busy machine.
const hastyProvider = createPayments(createSettings(), 300)
const { signal } = new AbortController()
const customer = { email: 'a@example.com', name: null, userId: 7 }
let keys = 0
const createRequestOptions = () => ({ key: `key-${++keys}`, signal })

const expectFailure = async (work: Promise<unknown>): Promise<Failure> => {
  const error = await work.then(
    () => null,
    (thrown) => thrown,
  )
  assert.ok(error instanceof Failure, String(error))
  return error
}

describe('a failure', () => {
  const table: readonly [Fault, code: string, detail: RegExp, retryable: boolean][] = [
    ['declined', 'payment.declined', /^Your card was declined\.$/, false],
    ['invalid', 'payment.rejected', /^The price is not available\. Contact \*\*\*\.$/, false],
    ['revoked', 'payment.key', /invalid or revoked$/, false],
    ['forbidden', 'payment.key', /lacks a permission$/, false],
    ['busy', 'payment.failed', /too many requests$/, true],
    ['broken', 'payment.failed', /status 500$/, true],
    ['garbage', 'payment.failed', /no answer$/, true],
    ['hang', 'payment.failed', /no answer$/, true],
    ['hang-after', 'payment.failed', /no answer$/, true],
  ]
  for (const [fault, code, detail, retryable] of table)
    test(`${fault}: ${code}`, async () => {
      stripe.faults.push(fault)
      const asking = fault.startsWith('hang') ? hastyProvider : provider
      const error = await expectFailure(asking.createCustomer(customer, createRequestOptions()))
      assert.deepEqual([error.code, error.retryable], [code, retryable])
      assert.match(error.detail, detail)
      assert.doesNotMatch(JSON.stringify(error.detail), /[sr]k_/)
    })

  test('tells how long the provider asks to wait', async () => {
    for (const [fault, seconds] of [
      ['paused', 120],
      ['broken', undefined],
    ] as const) {
      stripe.faults.push(fault)
      const error = await expectFailure(provider.createCustomer(customer, createRequestOptions()))
      assert.equal(error.retryAfter, seconds)
    }
  })

  test('of the connection is retried once with the same key', async () => {
    for (const fault of ['refuse', 'cut'] as const) {
      const [before, key] = [stripe.account.customers.length, createRequestOptions()]
      stripe.faults.push(fault)
      await provider.createCustomer(customer, key)
      assert.equal(stripe.account.customers.length, before + 1)
      assert.deepEqual(
        stripe.asked.slice(-2).map(({ idempotencyKey }) => idempotencyKey),
        [key.key, key.key],
      )
    }
  })

  test('is temporary if no server listens', async () => {
    const away = createPayments(createSettings({ PROVIDER_API_BASE_URL: 'http://127.0.0.1:1' }), 300)
    assert.equal((await expectFailure(away.listPrices(signal))).code, 'payment.failed')
  })

  test('caused by missing settings is reported without a request', async () => {
    const none = createPayments(parseSettings({}))
    const before = stripe.asked.length
    for (const work of [
      none.createCustomer(customer, createRequestOptions()),
      none.listPrices(signal),
      none.cancelSubscription('sub_1', createRequestOptions()),
    ])
      assert.equal((await expectFailure(work)).code, 'payment.not_configured')
    assert.equal(stripe.asked.length, before)
    const wrong = createPayments(createSettings({ PROVIDER_SECRET_KEY: 'sk_test_wrong' }))
    assert.equal((await expectFailure(wrong.listPrices(signal))).code, 'payment.key')
  })

  test('caused by a reused idempotency key is not a rejection', async () => {
    const key = createRequestOptions()
    await provider.createCustomer(customer, key)
    assert.equal(
      (await expectFailure(provider.createCustomer({ ...customer, email: 'b@example.com' }, key))).code,
      'payment.failed',
    )
  })
})

test('an aborted call ends immediately, with the reason', async () => {
  const abort = new AbortController()
  stripe.faults.push('hang')
  const asked = stripe.asked.length
  const call = provider.createCustomer(customer, { key: 'aborted', signal: abort.signal })
  const reason = new Error('cancelled')
  while (stripe.asked.length === asked) await new Promise((resolve) => setImmediate(resolve))
  abort.abort(reason)
  await assert.rejects(call, reason)
  await assert.rejects(provider.listPrices(abort.signal), reason)
})

test('a customer that the provider deleted has no open sessions or subscriptions', async () => {
  stripe.account.deleted.add('cus_gone')
  stripe.account.sessions.push({ id: 'cs_gone', customer: 'cus_gone', status: 'open' })
  stripe.account.subscriptions.set('sub_gone', { id: 'sub_gone', customer: 'cus_gone', status: 'active' })
  await provider.expireCheckouts('cus_gone', signal)
  assert.deepEqual(await provider.listRenewingSubscriptions('cus_gone', signal), [])
})

test('all open sessions and subscriptions of a customer are found, however many', async () => {
  const ids = Array.from({ length: 120 }, (_, i) => i)
  const ours = { customer: 'cus_1' }
  for (const i of ids) {
    stripe.account.sessions.push({ id: `cs_${i}`, ...ours, status: i % 2 === 0 ? 'open' : 'complete' })
    const cancels = { cancel_at_period_end: i % 2 === 1 }
    stripe.account.subscriptions.set(`sub_of_${i}`, {
      id: `sub_of_${i}`,
      ...ours,
      status: 'active',
      ...cancels,
    })
  }
  await provider.expireCheckouts('cus_1', signal)
  const open = stripe.account.sessions.filter((one) => one.customer === 'cus_1' && one.status === 'open')
  assert.deepEqual(open, [])
  const running = await provider.listRenewingSubscriptions('cus_1', signal)
  assert.deepEqual(
    [...running].reverse(),
    ids.filter((i) => i % 2 === 0).map((i) => `sub_of_${i}`),
  )
})

test('answers include the time of the provider’s clock', async () => {
  stripe.account.subscriptions.set('sub_1', { id: 'sub_1', status: 'active' })
  const { at, object } = await provider.cancelSubscription('sub_1', createRequestOptions())
  assert.ok(Math.abs(at - Date.now() / 1000) < 60)
  assert.equal(object.cancel_at_period_end, true)
})

test('a repeated cancellation returns the current subscription, not the first answer', async () => {
  stripe.account.subscriptions.set('sub_2', { id: 'sub_2', status: 'active' })
  const key = createRequestOptions()
  await provider.cancelSubscription('sub_2', key)
  stripe.account.subscriptions.set('sub_2', { id: 'sub_2', status: 'canceled' })
  const { at, object } = await provider.cancelSubscription('sub_2', key)
  assert.equal(object.status, 'canceled')
  assert.ok(Math.abs(at - Date.now() / 1000) < 60)
})

test('a repeated refund returns the time of the first one', async () => {
  const charge = { id: 'ch_1', payment_intent: 'pi_1', amount: 100, currency: 'usd' }
  stripe.account.charges.set(charge.id, charge)
  const [refund, key] = [
    { payment: { charge: charge.id }, amount: 1, reason: null, metadata: {} },
    createRequestOptions(),
  ]
  const first = await provider.createRefund(refund, key)
  const made = Math.floor(Date.now() / 1000) - 100
  Object.assign(stripe.account.refunds.at(-1)!, { created: made })
  const again = await provider.createRefund(refund, key)
  assert.deepEqual([again.object.id, again.at], [first.object.id, made])
})

test('lists are read to the end', async () => {
  const created = 1_700_000_000
  for (let n = 0; n < 250; n++)
    stripe.account.events.push(
      createEvent(
        n % 5 === 0 ? 'customer.created' : 'invoice.paid',
        { n },
        { id: `evt_${n}`, created: created + n },
      ) as never,
    )
  const pages: number[] = []
  const ids: unknown[] = []
  for await (const page of provider.listEvents(created + 10, ['invoice.paid'], signal)) {
    pages.push(page.length)
    ids.push(...page.map(({ id }) => id))
  }
  assert.deepEqual(pages, [100, 92])
  assert.deepEqual([ids[0], ids.at(-1), new Set(ids).size], ['evt_249', 'evt_11', 192])
  for (let n = 0; n < 1100; n++) stripe.account.prices.push({ id: `price_${n}` })
  assert.equal((await provider.listPrices(signal)).length, 1000)
})

test('reading a missing object returns null', async () => {
  assert.deepEqual(await provider.listRefunds({ charge: 'ch_none' }, signal), { objects: [], at: 0 })
  assert.deepEqual((await provider.listInvoicePayments('in_none', signal)).objects, [])
  assert.equal(await provider.findSessionIntent('cs_none', signal), null)
})

test('a subscription that belongs to a schedule is released before its cancellation', async () => {
  stripe.account.subscriptions.set('sub_3', { id: 'sub_3', status: 'active', schedule: 'sub_sched_3' })
  const key = createRequestOptions()
  const { object } = await provider.cancelSubscription('sub_3', key)
  assert.deepEqual([object.cancel_at_period_end, object.schedule], [true, null])
  const again = await provider.cancelSubscription('sub_3', key)
  assert.equal(again.object.cancel_at_period_end, true)
})

test('a subscription that ends with its period or before does not renew, however the provider says so', async () => {
  const period = { items: { data: [{ current_period_end: 2000 }] } }
  const states = [
    { cancel_at: 2000 },
    { cancel_at: 2001 },
    { cancel_at: null },
    { status: 'incomplete_expired' },
    { status: 'trialing', cancel_at_period_end: true },
    { status: 'paused' },
  ]
  for (const [n, state] of states.entries())
    stripe.account.subscriptions.set(`sub_end_${n}`, {
      ...{ id: `sub_end_${n}`, customer: 'cus_ends', status: 'active', cancel_at_period_end: false },
      ...period,
      ...state,
    })
  const running = await provider.listRenewingSubscriptions('cus_ends', signal)
  assert.deepEqual([...running].sort(), ['sub_end_1', 'sub_end_2', 'sub_end_5'])
})
