import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEdge } from './harness.ts'
import { assertRefused } from './orgs-help.ts'
import { createPayments } from './payments-rows.ts'

const { admin, ann, api, bob, call, env, query, url } = await createPayments()
const impatient = await startEdge(url, { env: { ...env, REQUEST_WAIT_SECONDS: '0' } })

const findPayment = async (name: string): Promise<number> => {
  const [row] = await query(
    'select transaction_id::int as id from payment_reference where provider_id = $1',
    [`pi_${name}`],
  )
  return row!.id as number
}
const findSubscription = async (name: string): Promise<number> => {
  const [row] = await query('select id::int from payment_subscription where provider_subscription_id = $1', [
    `sub_${name}`,
  ])
  return row!.id as number
}
/** Returns the audit events of a kind, newest first, as an admin reads them. */
const readEvents = async (kind: string) =>
  (await api.get(`/api/v1/auth/audit?kind=${kind}`, { token: admin.token })).json.events

const BACKGROUND = { prefer: 'respond-async' }

test('a refund is audited with its caller, its client and the amounts before and after', async () => {
  const id = await findPayment('a1')
  assert.equal(
    (await call(ann, 'POST', `/refund/${id}`, { amount: 300, reason: 'late' }, BACKGROUND)).status,
    202,
  )
  assert.equal((await call(admin, 'POST', `/admin/refund/${id}`, { amount: 200 }, BACKGROUND)).status, 202)
  const [second, first] = await readEvents('payment.refund_requested')
  const { data, address, request_id, ...who } = first
  assert.deepEqual([who.actor_id, who.account_id], [ann.id, ann.id])
  assert.ok(address !== null && request_id !== null)
  const { refund_id, ...rest } = data
  assert.ok(Number.isInteger(refund_id))
  assert.deepEqual(rest, {
    transaction_id: id,
    amount: 300,
    currency: 'usd',
    reason: 'late',
    before: { status: 'succeeded', refundable: 1000 },
    after: { refundable: 700 },
  })
  assert.deepEqual([second.actor_id, second.account_id], [admin.id, ann.id])
  assert.deepEqual([second.data.before.refundable, second.data.after.refundable], [700, 500])
})

test('a request that is refused or repeated adds no event', async () => {
  const id = await findPayment('b1')
  const before = (await readEvents('payment.refund_requested')).length
  assertRefused(await call(bob, 'POST', `/refund/${id}`, { amount: 9001 }), 400)
  assertRefused(await call(ann, 'POST', `/refund/${id}`, { amount: 1 }), 404)
  for (let n = 0; n < 2; n++)
    await call(bob, 'POST', `/refund/${id}`, { amount: 1 }, { ...BACKGROUND, 'idempotency-key': 'once' })
  assert.equal((await readEvents('payment.refund_requested')).length, before + 1)
})

/** Sends a request that waits for its job, which no worker runs, and returns its event. */
async function findEventOf(kind: string, path: string, json?: object) {
  const before = (await readEvents(kind)).length
  const answer = await impatient.post(`/api/v1/payment${path}`, { token: ann.token, ...(json && { json }) })
  assert.equal(answer.status, 202, answer.text)
  const events = await readEvents(kind)
  assert.equal(events.length, before + 1)
  assert.deepEqual([events[0].actor_id, events[0].account_id], [ann.id, ann.id])
  return events[0].data
}

test('a checkout, a portal session and a cancellation are audited', async () => {
  const opened = { return_url: 'https://mill.example.com/me' }
  assert.deepEqual(await findEventOf('payment.portal_requested', '/portal', { return_url: '/me' }), opened)
  const bought = { price_id: 'price_1', mode: 'payment', quantity: 2 }
  assert.deepEqual(await findEventOf('payment.checkout_requested', '/checkout', bought), bought)
  const id = await findSubscription('a8')
  assert.deepEqual(await findEventOf('subscription.cancel_requested', `/subscriptions/${id}/cancel`), {
    subscription_id: id,
    provider_subscription_id: 'sub_a8',
    before: { status: 'active', cancel_at_period_end: false },
    after: { cancel_at_period_end: true },
  })
})

test('a change of plan and a resumption are audited', async () => {
  const id = await findSubscription('a9')
  const before = { status: 'past_due', cancel_at_period_end: false }
  const ids = { subscription_id: id, provider_subscription_id: 'sub_a9' }
  const plan = { price_id: 'price_gold', proration: 'none' }
  assert.deepEqual(
    await findEventOf('subscription.plan_change_requested', `/subscriptions/${id}/plan`, plan),
    { ...ids, before: { ...before, plan_name: 'Plan a9' }, after: plan },
  )
  assert.deepEqual(await findEventOf('subscription.resume_requested', `/subscriptions/${id}/resume`), {
    ...ids,
    before,
    after: { cancel_at_period_end: false },
  })
})
