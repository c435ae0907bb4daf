import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertRefused } from '../edge/orgs-help.ts'
import { buildSubscription, createEvent } from '../payment-events.ts'
import { getSharedPaymentsWorld } from '../payments-world.ts'

const { call, link, open, people, query, send, stripe, unconfigured } = await getSharedPaymentsWorld()

let names = 0
/** Adds an account with a subscription, both in the database and at the provider. */
async function addSubscription(more: object = {}) {
  const [who] = await people(1)
  const name = `sub${++names}x`
  const object = buildSubscription({ name }, more)
  await link(who!, name)
  stripe.account.subscriptions.set(`sub_${name}`, object as never)
  await send(createEvent('customer.subscription.created', object, { created: 1_700_000_000 }))
  const [row] = await query('select id::int from payment_subscription where provider_subscription_id = $1', [
    `sub_${name}`,
  ])
  const id = row!.id as number
  const read = async () => (await call(who!, 'GET', '/subscriptions')).json.subscriptions[0]
  return {
    who: who!,
    id,
    name,
    read,
    cancel: (headers = {}) => call(who!, 'POST', `/subscriptions/${id}/cancel`, undefined, headers),
  }
}
const CANCELLED_SUBSCRIPTION = { status: 'active', cancel_at_period_end: 'true' }

test('cancels a subscription at the end of its period, first at the provider', async () => {
  const { cancel, id, name, read } = await addSubscription()
  const before = await read()
  assert.deepEqual(before, {
    id,
    provider_subscription_id: `sub_${name}`,
    plan_name: `Plan ${name}`,
    status: 'active',
    current_period_start: new Date(1_700_000_000_000).toISOString(),
    current_period_end: new Date(1_702_592_000_000).toISOString(),
    cancel_at_period_end: false,
    cancel_at: null,
  })
  const answer = await cancel()
  assert.deepEqual([answer.status, answer.json], [200, CANCELLED_SUBSCRIPTION])
  assert.deepEqual(await read(), { ...before, cancel_at_period_end: true })
  assert.equal(stripe.account.subscriptions.get(`sub_${name}`)!.cancel_at_period_end, true)
  assert.deepEqual((await cancel()).json, CANCELLED_SUBSCRIPTION, 'again is no other')
  await send(
    createEvent(
      'customer.subscription.deleted',
      buildSubscription({ name }, { status: 'canceled', cancel_at_period_end: true }),
    ),
  )
  assert.equal((await read()).status, 'canceled')
  assertRefused(await cancel(), 400, 'The subscription is already canceled')
})

test('cancels a subscription that a schedule manages, and an incomplete one immediately', async () => {
  const managed = await addSubscription({ schedule: 'sub_sched_1' })
  const subscription = `sub_${managed.name}`
  stripe.account.schedules.set('sub_sched_1', { id: 'sub_sched_1', status: 'active', subscription })
  const answer = await managed.cancel()
  assert.deepEqual([answer.status, answer.json], [200, CANCELLED_SUBSCRIPTION])
  assert.equal(stripe.account.schedules.get('sub_sched_1')!.status, 'released')
  const incomplete = await addSubscription({ status: 'incomplete' })
  const ended = await incomplete.cancel()
  assert.deepEqual([ended.status, ended.json.status], [200, 'canceled'])
})

test('a cancellation always waits for its result', async () => {
  const { cancel } = await addSubscription()
  assert.deepEqual((await cancel({ prefer: 'respond-async' })).json, CANCELLED_SUBSCRIPTION)
})

test("another account's subscription gives the same answer as a missing one", async () => {
  const { id, who } = await addSubscription()
  const [other] = await people(1)
  const answers = await Promise.all([
    call(other!, 'POST', `/subscriptions/${id}/cancel`),
    call(who, 'POST', '/subscriptions/2147483647/cancel'),
  ])
  for (const answer of answers) assertRefused(answer, 404, 'Subscription not found')
  assert.deepEqual(answers[0]!.bytes, answers[1]!.bytes)
  assertRefused(await call(null, 'POST', `/subscriptions/${id}/cancel`), 401)
  assert.deepEqual((await call(other!, 'GET', '/subscriptions')).json.subscriptions, [])
  const everybody = await open.post(`/api/v1/payment/subscriptions/${id}/cancel`)
  assert.deepEqual(everybody.json, CANCELLED_SUBSCRIPTION)
})

test('returns 503 without a provider, once the subscription is found', async () => {
  const { id, who } = await addSubscription()
  const ask = (path: number) =>
    unconfigured.post(`/api/v1/payment/subscriptions/${path}/cancel`, { token: who.token })
  assertRefused(await ask(id), 503, /PROVIDER_SECRET_KEY/)
  assertRefused(await ask(2_147_483_647), 404)
})

test('a refusal changes nothing, and a failure is retried with the same key', async () => {
  const { cancel, read } = await addSubscription()
  stripe.faults.push('revoked')
  assertRefused(await cancel(), 401)
  stripe.faults.push('invalid')
  assertRefused(await cancel(), 400)
  assert.equal((await read()).cancel_at_period_end, false)
  stripe.faults.push('cut', 'busy')
  assert.deepEqual((await cancel()).json, CANCELLED_SUBSCRIPTION)
  const sent = stripe.asked.filter(({ method }) => method === 'POST')
  const keys = sent.slice(-3).map(({ idempotencyKey }) => idempotencyKey)
  assert.equal(new Set(keys).size, 1)
  assert.match(keys[0]!, /:cancel$/)
})

test('an older event that arrives late does not undo the cancellation', async () => {
  const { cancel, name, read } = await addSubscription()
  await cancel()
  await send(
    createEvent('customer.subscription.updated', buildSubscription({ name }), {
      created: 1_700_000_100,
      before: { metadata: {} },
    }),
  )
  assert.equal((await read()).cancel_at_period_end, true)
  await send(
    createEvent('customer.subscription.updated', buildSubscription({ name }), {
      created: Math.floor(Date.now() / 1000) + 60,
      before: { cancel_at_period_end: true },
    }),
  )
  assert.equal((await read()).cancel_at_period_end, false, 'a later one does')
})
