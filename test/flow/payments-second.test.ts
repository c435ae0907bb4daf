import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertRefused, type Person } from '../edge/orgs-help.ts'
import { buildSubscription, createEvent } from '../payment-events.ts'
import { getSharedPaymentsWorld } from '../payments-world.ts'

const { call, link, people, query, send, stripe } = await getSharedPaymentsWorld()

let names = 0
/** Adds an account that is a customer, with a name for its objects. */
async function addCustomer() {
  const [who] = await people(1)
  const name = `second${++names}x`
  await link(who!, name)
  return { who: who!, name, price: `price_${name}` }
}

const buy = (who: Person, price_id: string, more: object = {}) =>
  call(who, 'POST', '/checkout', { price_id, mode: 'subscription', ...more })

const listOpenSessions = (price: string) =>
  stripe.account.sessions.filter((one) => one.price === price && one.status === 'open')

async function findId(name: string): Promise<number> {
  const [row] = await query('select id::int from payment_subscription where provider_subscription_id = $1', [
    `sub_${name}`,
  ])
  return row!.id as number
}

test('a second subscription of a price is refused while one runs, and the refusal names it', async () => {
  const { who, name, price } = await addCustomer()
  await send(createEvent('customer.subscription.created', buildSubscription({ name })))
  const before = stripe.account.sessions.length
  const answer = await buy(who, price)
  assertRefused(answer, 409, new RegExp(`already has subscription ${await findId(name)} of this price`))
  assert.equal(answer.json.code, 'subscription.running')
  assert.equal(stripe.account.sessions.length, before)
  assert.equal((await buy(who, `${price}_other`)).status, 200)
  assert.equal((await buy(who, price, { mode: 'payment' })).status, 200)
  assert.equal((await buy(who, price, { allow_second: true })).status, 200)
  const [other] = await people(1)
  assert.equal((await buy(other!, price)).status, 200, 'another account has its own')
})

test('a subscription that ends later still runs; one that has ended or was never paid does not', async () => {
  for (const [state, status] of [
    [{ cancel_at_period_end: true }, 409],
    [{ status: 'past_due' }, 409],
    [{ status: 'trialing' }, 409],
    [{ status: 'unpaid' }, 409],
    [{ status: 'paused' }, 409],
    [{ status: 'incomplete' }, 200],
    [{ status: 'incomplete_expired' }, 200],
    [{ status: 'canceled' }, 200],
  ] as const) {
    const { who, name, price } = await addCustomer()
    await send(createEvent('customer.subscription.created', buildSubscription({ name }, state)))
    assert.equal((await buy(who, price)).status, status, JSON.stringify(state))
  }
})

test('a subscription whose event is still to come is found at the provider', async () => {
  const { who, name, price } = await addCustomer()
  stripe.account.subscriptions.set(`sub_${name}`, buildSubscription({ name }) as never)
  assertRefused(await buy(who, price), 409, /already has subscription \d+ of this price/)
  const { subscriptions } = (await call(who, 'GET', '/subscriptions')).json
  assert.deepEqual(
    subscriptions.map((one: { provider_subscription_id: string }) => one.provider_subscription_id),
    [`sub_${name}`],
  )
})

test('of several checkouts of a price, only the last can be paid', async () => {
  const { who, price } = await addCustomer()
  const answers = await Promise.all(Array.from({ length: 4 }, () => buy(who, price)))
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200],
  )
  assert.equal(listOpenSessions(price).length, 1)
  await buy(who, `${price}_other`)
  assert.equal(listOpenSessions(price).length, 1, 'a checkout of another price stays open')
  await buy(who, price, { allow_second: true })
  assert.equal(listOpenSessions(price).length, 2)
})

test('a checkout whose answer was lost is repeated with the same session', async () => {
  const { who, price } = await addCustomer()
  // Reads of open sessions and subscriptions, then the session. The SDK itself retries once.
  stripe.faults.push(null, null, 'cut', 'cut')
  const answer = await buy(who, price)
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(
    listOpenSessions(price).map(({ id }) => id),
    [answer.json.session_id],
  )
})
