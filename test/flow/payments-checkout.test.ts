import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { chooseRedirectUrl } from '../../edge/routes/payments/checkout.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { startEdge } from '../edge/harness.ts'
import { assertRefused } from '../edge/orgs-help.ts'
import { createEvent } from '../payment-events.ts'
import { getSharedPaymentsWorld } from '../payments-world.ts'

const world = await getSharedPaymentsWorld()
const { call, open, people, stripe, query, url } = world
const unconfiguredEdge = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
const CHECKOUT = { price_id: 'price_1', mode: 'payment' }
const findLastSession = () => stripe.account.sessions.at(-1)!

describe('a checkout', () => {
  test('requires a price and a mode, and returns the payment page', async () => {
    const [who] = await people(1)
    const answer = await call(who!, 'POST', '/checkout', CHECKOUT)
    assert.equal(answer.status, 200, answer.text)
    const session = findLastSession()
    assert.deepEqual(answer.json, {
      session_id: session.id,
      checkout_url: session.url,
      provider_key: 'stripe',
    })
    assert.equal(
      session.success_url,
      'https://mill.example.com/payment/success?session_id={CHECKOUT_SESSION_ID}',
    )
    assert.equal(session.cancel_url, 'https://mill.example.com/payment/cancel')
    const { fields, idempotencyKey } = stripe.asked.at(-1)!
    assert.equal(fields['line_items[0][quantity]'], '1')
    assert.match(idempotencyKey, /^[0-9a-f-]{36}:session:cus_\d+$/)
  })

  test('creates one customer per account, even for concurrent checkouts', async () => {
    const [who] = await people(1)
    const before = stripe.account.customers.length
    const buy = { ...CHECKOUT, mode: 'subscription', quantity: 3 }
    const answers = await Promise.all(Array.from({ length: 5 }, () => call(who!, 'POST', '/checkout', buy)))
    for (const answer of answers) assert.equal(answer.status, 200, answer.text)
    const [customer] = stripe.account.customers.slice(before)
    assert.equal(stripe.account.customers.length, before + 1)
    assert.deepEqual([customer!.email, customer!.metadata], [who!.email, { user_id: String(who!.id) }])
    assert.deepEqual(
      await query('select provider_customer_id from payment_customer where user_id = $1', [who!.id]),
      [{ provider_customer_id: customer!.id }],
    )
    assert.deepEqual(
      new Set(stripe.account.sessions.slice(-5).map((session) => session.customer)),
      new Set([customer!.id]),
    )
    assert.equal(stripe.asked.at(-1)!.fields['line_items[0][quantity]'], '3')
  })

  test('works after the customer was deleted at the provider, and keeps earlier payments', async () => {
    const [who] = await people(1)
    await world.link(who!, 'gone')
    const id = await world.createPayment('gone', 500, { customer: 'cus_gone' })
    stripe.account.deleted.add('cus_gone')
    for (let i = 0; i < 2; i++) {
      const answer = await call(who!, 'POST', '/checkout', CHECKOUT)
      assert.equal(answer.status, 200, answer.text)
      assert.equal(findLastSession().customer, stripe.account.customers.at(-1)!.id)
    }
    const made = stripe.account.customers.filter(({ email }) => email === who!.email)
    assert.equal(made.length, 1)
    const { amount, currency } = { amount: 500, currency: 'usd' }
    const refunded = { id: 'ch_gone', payment_intent: 'pi_gone', amount, currency, amount_refunded: 500 }
    await world.send(createEvent('charge.refunded', { object: 'charge', ...refunded, customer: 'cus_gone' }))
    assert.equal((await world.transaction(who!, id)).status, 'refunded')
  })

  test('always waits for its result', async () => {
    const [who] = await people(1)
    assert.equal((await call(who!, 'POST', '/checkout', CHECKOUT, { prefer: 'respond-async' })).status, 200)
    assert.equal((await call(who!, 'POST', '/checkout?background=true', CHECKOUT, {})).status, 422)
  })

  test('happens once per Idempotency-Key', async () => {
    const [who] = await people(1)
    const headers = { 'idempotency-key': 'the same' }
    const first = await call(who!, 'POST', '/checkout', CHECKOUT, headers)
    const count = stripe.account.sessions.length
    assert.deepEqual((await call(who!, 'POST', '/checkout', CHECKOUT, headers)).json, first.json)
    assert.equal(stripe.account.sessions.length, count)
  })

  test('without authentication, the provider creates the customer', async () => {
    const before = stripe.account.customers.length
    for (const mode of ['payment', 'subscription']) {
      const answer = await open.post('/api/v1/payment/checkout', { json: { ...CHECKOUT, mode } })
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual(
        [
          findLastSession().customer,
          findLastSession().customer_creation,
          findLastSession().client_reference_id,
        ],
        [null, mode === 'payment' ? 'always' : null, null],
      )
    }
    assert.equal(stripe.account.customers.length, before)
  })
})

describe('the redirect URLs of a checkout', () => {
  const PLACEHOLDER = 'https://shop.example/ok/{CHECKOUT_SESSION_ID}?a={CHECKOUT_SESSION_ID}'
  const settings = (given: Record<string, string> = {}) =>
    parseSettings({ PUBLIC_BASE_URL: 'https://mill.example', ...given })

  test('come from the request, then the settings, then the built-in pages', () => {
    const set = settings({
      PAYMENT_SUCCESS_URL: '/thanks?s={CHECKOUT_SESSION_ID}',
      PAYMENT_CANCEL_URL: 'https://shop.example/no',
    })
    assert.equal(chooseRedirectUrl(set, 'success', PLACEHOLDER), PLACEHOLDER)
    assert.equal(
      chooseRedirectUrl(set, 'success', undefined),
      'https://mill.example/thanks?s={CHECKOUT_SESSION_ID}',
    )
    assert.equal(chooseRedirectUrl(set, 'cancel', undefined), 'https://shop.example/no')
    assert.equal(chooseRedirectUrl(set, 'cancel', '/left'), 'https://mill.example/left')
    assert.equal(chooseRedirectUrl(settings(), 'cancel', undefined), 'https://mill.example/payment/cancel')
  })

  test('reach the provider with their placeholders unchanged', async () => {
    const [who] = await people(1)
    const urls = { success_url: PLACEHOLDER, cancel_url: '/left?x=1' }
    assert.equal((await call(who!, 'POST', '/checkout', { ...CHECKOUT, ...urls })).status, 200)
    assert.deepEqual(
      [findLastSession().success_url, findLastSession().cancel_url],
      [PLACEHOLDER, 'https://mill.example.com/left?x=1'],
    )
  })

  for (const bad of [
    '//evil.example',
    'javascript:alert(1)',
    'shop.example',
    'https://',
    'http:///x',
    '/\\evil.example',
    '',
    '/a b',
    'ftp://x.example',
  ])
    test(`reject ${JSON.stringify(bad)}`, async () => {
      const [who] = await people(1)
      const answer = await call(who!, 'POST', '/checkout', { ...CHECKOUT, success_url: bad })
      assertRefused(answer, 422, /success_url/)
      assert.throws(() => settings({ PAYMENT_CANCEL_URL: bad || ' ' }), /PAYMENT_CANCEL_URL/)
    })

  test('have built-in pages that are plain and restricted by their CSP', async () => {
    for (const path of ['/payment/success?session_id=cs_1', '/payment/cancel']) {
      const answer = await world.api.get(path)
      assert.equal(answer.status, 200)
      assert.match(answer.headers['content-type']!, /^text\/html/)
      assert.match(
        answer.headers['content-security-policy'] as string,
        /^default-src 'none'.*frame-ancestors 'none'$/,
      )
      assert.doesNotMatch(answer.text, /<script|style=/)
      assert.equal((await world.api.get('/pages/parts/base.css')).status, 200)
    }
  })
})

describe('a checkout is refused', () => {
  test('for invalid input', async () => {
    const [who] = await people(1)
    for (const [json, at] of [
      [{ mode: 'payment' }, 'price_id'],
      [{ price_id: 'p' }, 'mode'],
      [{ ...CHECKOUT, mode: 'setup' }, 'mode'],
      [{ ...CHECKOUT, price_id: ' ' }, 'price_id'],
      [{ ...CHECKOUT, quantity: 0 }, 'quantity'],
      [{ ...CHECKOUT, quantity: 1.5 }, 'quantity'],
      [{ ...CHECKOUT, coupon: 'x' }, 'coupon'],
    ] as const)
      assertRefused(await call(who!, 'POST', '/checkout', json), 422, new RegExp(at))
  })

  test('with 401 without a credential, and with 503 without a provider', async () => {
    assertRefused(await call(null, 'POST', '/checkout', CHECKOUT), 401, 'Not authenticated')
    for (const [method, path] of [
      ['POST', '/checkout'],
      ['GET', '/catalog'],
    ] as const) {
      const json = method === 'POST' ? { json: CHECKOUT } : {}
      const answer = await unconfiguredEdge.call(method, `/api/v1/payment${path}`, json)
      assertRefused(answer, 503, 'Payments are not configured. Set PROVIDER_SECRET_KEY.')
    }
  })

  for (const [fault, status, detail] of [
    ['declined', 400, 'Your card was declined.'],
    ['invalid', 400, 'The price is not available. Contact ***.'],
    ['revoked', 401, 'The payment provider rejected PROVIDER_SECRET_KEY: it is invalid or revoked'],
    ['forbidden', 401, 'The payment provider rejected PROVIDER_SECRET_KEY: it lacks a permission'],
  ] as const)
    test(`by the provider: ${fault}`, async () => {
      const before = stripe.asked.length
      stripe.faults.push(fault)
      const answer = await open.post('/api/v1/payment/checkout', { json: CHECKOUT })
      assertRefused(answer, status, detail)
      assert.equal(stripe.asked.length, before + 1, 'a refusal is not tried again')
    })

  test('by the provider for an unknown price', async () => {
    const answer = await open.post('/api/v1/payment/checkout', {
      json: { ...CHECKOUT, price_id: 'price_missing' },
    })
    assertRefused(answer, 400, "No such price: 'price_missing'")
  })
})

describe('a temporary failure of the provider', () => {
  for (const fault of ['busy', 'broken', 'garbage', 'refuse', 'cut'] as const)
    test(`${fault}: is retried and creates one session`, async () => {
      const before = stripe.account.sessions.length
      stripe.faults.push(fault)
      const answer = await open.post('/api/v1/payment/checkout', { json: CHECKOUT })
      assert.equal(answer.status, 200, answer.text)
      assert.equal(stripe.account.sessions.length, before + 1)
      assert.equal(new Set(stripe.asked.slice(-2).map(({ idempotencyKey }) => idempotencyKey)).size, 1)
    })

  test('returns 502 if it persists', async () => {
    stripe.faults.push('broken', 'busy', 'broken')
    const answer = await open.post('/api/v1/payment/checkout', { json: CHECKOUT })
    assertRefused(answer, 502, 'The payment provider could not be reached or failed: status 500')
  })
})

describe('the catalog', () => {
  test('lists the available products', async () => {
    const [who] = await people(1)
    const product = { id: 'prod_1', name: 'Book', description: 'About mills', active: true }
    const price = (id: string, more: object) => ({
      id,
      object: 'price',
      currency: 'usd',
      unit_amount: 900,
      recurring: null,
      nickname: null,
      product,
      ...more,
    })
    stripe.account.prices.push(
      price('price_a', {}),
      price('price_b', {
        recurring: { interval: 'month', interval_count: 3 },
        product: { id: 'prod_2', name: 'Plan', description: null, active: true },
        currency: 'EUR',
      }),
      price('price_c', { product: { id: 'prod_3', deleted: true } }),
      price('price_d', { unit_amount: null, product: 'prod_4', nickname: 'By weight' }),
    )
    const answer = await call(who!, 'GET', '/catalog')
    assert.equal(answer.status, 200, answer.text)
    const common = {
      description: null,
      currency: 'usd',
      mode: 'payment',
      interval: null,
      interval_count: null,
    }
    assert.deepEqual(answer.json, {
      prices: [
        {
          ...common,
          price_id: 'price_a',
          product_id: 'prod_1',
          name: 'Book',
          description: 'About mills',
          amount: 900,
        },
        {
          ...common,
          price_id: 'price_b',
          product_id: 'prod_2',
          name: 'Plan',
          amount: 900,
          currency: 'eur',
          mode: 'subscription',
          interval: 'month',
          interval_count: 3,
        },
        { ...common, price_id: 'price_d', product_id: 'prod_4', name: 'By weight', amount: null },
      ],
    })
    assertRefused(await call(null, 'GET', '/catalog'), 401)
  })
})
