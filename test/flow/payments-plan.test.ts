import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertRefused } from '../edge/orgs-help.ts'
import { buildSubscription, createEvent } from '../payment-events.ts'
import { getSharedPaymentsWorld } from '../payments-world.ts'

const { call, link, people, query, send, stripe, unconfigured } = await getSharedPaymentsWorld()

const createPrice = (id: string, more: object = {}) => ({
  ...{ id, object: 'price', active: true, type: 'recurring', currency: 'usd', nickname: `The ${id}` },
  ...more,
})
stripe.account.prices.push(
  createPrice('price_gold'),
  createPrice('price_old', { active: false }),
  createPrice('price_once', { type: 'one_time' }),
  createPrice('price_euro', { currency: 'eur' }),
)

let names = 0
/** Adds an account with a subscription, both in the database and at the provider. */
async function addSubscription(more: object = {}, known: object = {}) {
  const [who] = await people(1)
  const name = `plan${++names}x`
  const object = buildSubscription({ name }, { currency: 'usd', ...more })
  await link(who!, name)
  stripe.account.subscriptions.set(`sub_${name}`, { ...object, ...known } as never)
  await send(createEvent('customer.subscription.created', object, { created: 1_700_000_000 }))
  const [row] = await query('select id::int from payment_subscription where provider_subscription_id = $1', [
    `sub_${name}`,
  ])
  const id = row!.id as number
  return {
    ...{ who: who!, id, name },
    change: (json: object, headers = {}) => call(who!, 'POST', `/subscriptions/${id}/plan`, json, headers),
    resume: () => call(who!, 'POST', `/subscriptions/${id}/resume`),
    read: async () => (await call(who!, 'GET', '/subscriptions')).json.subscriptions[0],
    atProvider: () => stripe.account.subscriptions.get(`sub_${name}`)!,
    countUpdates: () =>
      stripe.asked.filter(({ method, path }) => method === 'POST' && path === `/v1/subscriptions/sub_${name}`)
        .length,
  }
}

describe('a change of plan', () => {
  test('happens at the provider and then here, with the requested proration', async () => {
    for (const proration of [undefined, 'none', 'always_invoice'] as const) {
      const { change, id, name, read } = await addSubscription()
      const answer = await change({ price_id: 'price_gold', ...(proration && { proration }) })
      assert.equal(answer.status, 200, answer.text)
      assert.deepEqual([answer.json.id, answer.json.plan_name], [id, 'The price_gold'])
      assert.deepEqual(await read(), answer.json)
      const { fields, idempotencyKey } = stripe.asked.filter(({ method }) => method === 'POST').at(-1)!
      assert.deepEqual(fields, {
        'items[0][id]': `si_${name}`,
        'items[0][price]': 'price_gold',
        proration_behavior: proration ?? 'create_prorations',
      })
      assert.match(idempotencyKey, /:plan$/)
    }
  })

  test('happens once, however often it is requested or its answer is lost', async () => {
    const { change, countUpdates } = await addSubscription()
    stripe.faults.push(null, null, 'cut', 'cut')
    for (let n = 0; n < 2; n++) assert.equal((await change({ price_id: 'price_gold' })).status, 200)
    // The SDK itself repeats the first request. Then the subscription has the price already.
    assert.equal(countUpdates(), 2)
  })

  for (const [what, price, state, reason] of [
    ['an unknown price', 'price_none', {}, 'there is no such price'],
    ['an inactive price', 'price_old', {}, 'the price is not active'],
    ['a single payment', 'price_once', {}, 'the price is not recurring'],
    ['another currency', 'price_euro', {}, 'the price is in eur, and the subscription in usd'],
    ['a schedule', 'price_gold', { schedule: 'sub_sched_plan' }, 'a schedule manages it'],
    ['an open first payment', 'price_gold', { status: 'incomplete' }, 'its first payment is open'],
    ['several prices', 'price_gold', { items: { data: [{}, {}] } }, 'it does not have exactly one price'],
  ] as const)
    test(`is refused for ${what}, with the reason`, async () => {
      const { change, countUpdates } = await addSubscription({}, state)
      assertRefused(await change({ price_id: price }), 409, `The subscription cannot be changed: ${reason}`)
      assert.equal(countUpdates(), 0)
    })

  test('is refused to a price that the account has already, unless a second one is wanted', async () => {
    const { change, name, who } = await addSubscription()
    const other = buildSubscription(
      { name: `${name}other`, customer: `cus_${name}` },
      { items: { data: [{ id: 'si_o', price: { id: 'price_gold' } }] } },
    )
    await send(createEvent('customer.subscription.created', other))
    assertRefused(await change({ price_id: 'price_gold' }), 409, /already has subscription \d+ of this price/)
    assert.equal((await change({ price_id: 'price_gold', allow_second: true })).status, 200)
    assert.equal((await call(who, 'GET', '/subscriptions')).json.total, 2)
  })

  test('is refused for invalid input', async () => {
    const { change } = await addSubscription()
    for (const json of [{}, { price_id: '' }, { price_id: 'price_gold', proration: 'all' }])
      assertRefused(await change(json), 422)
  })
})

describe('a resumption', () => {
  for (const [what, end] of [
    ['its period', { cancel_at_period_end: true, cancel_at: 1_702_592_000 }],
    ['a set time', { cancel_at: 1_702_592_000 }],
  ] as const)
    test(`of a subscription that ends with ${what} removes the end, and again has no effect`, async () => {
      const { atProvider, countUpdates, read, resume } = await addSubscription(end)
      assert.equal((await read()).cancel_at_period_end, true)
      for (let n = 0; n < 2; n++) {
        const answer = await resume()
        assert.equal(answer.status, 200, answer.text)
        assert.deepEqual([answer.json.cancel_at_period_end, answer.json.cancel_at], [false, null])
      }
      const { cancel_at, cancel_at_period_end } = atProvider()
      assert.deepEqual([cancel_at, cancel_at_period_end, countUpdates()], [null, false, 1])
    })

  test('releases a subscription from its schedule', async () => {
    const { atProvider, resume } = await addSubscription({
      cancel_at: 1_702_592_000,
      schedule: 'sub_sched_end',
    })
    assert.equal((await resume()).status, 200)
    assert.deepEqual([atProvider().schedule, atProvider().cancel_at], [null, null])
  })

  test('of a subscription that has ended at the provider is refused', async () => {
    const { resume, who } = await addSubscription({ cancel_at_period_end: true }, { status: 'canceled' })
    assertRefused(await resume(), 400, 'The subscription is already canceled')
    const ended = await addSubscription({ status: 'canceled' })
    assertRefused(await ended.resume(), 400, 'The subscription is already canceled')
    assertRefused(await ended.change({ price_id: 'price_gold' }), 400)
    assertRefused(await call(who, 'POST', `/subscriptions/${ended.id}/resume`), 404, 'Subscription not found')
  })
})

test('changes require a provider and the caller’s own subscription', async () => {
  const { id, who } = await addSubscription()
  const [other] = await people(1)
  for (const [path, json] of [
    ['plan', { price_id: 'price_gold' }],
    ['resume', undefined],
  ] as const) {
    assertRefused(
      await call(other!, 'POST', `/subscriptions/${id}/${path}`, json),
      404,
      'Subscription not found',
    )
    const options = { token: who.token, ...(json && { json }) }
    assertRefused(await unconfigured.post(`/api/v1/payment/subscriptions/${id}/${path}`, options), 503)
  }
})
