import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEdge } from '../edge/harness.ts'
import { assertRefused } from '../edge/orgs-help.ts'
import { getSharedPaymentsWorld } from '../payments-world.ts'

const { call, env, link, open, people, stripe, unconfigured, url } = await getSharedPaymentsWorld()
const crossing = await startEdge(url, { env: { ...env, CORS_ORIGINS: 'https://app.example.com' } })

let names = 0
async function addCustomer() {
  const [who] = await people(1)
  const name = `portal${++names}x`
  await link(who!, name)
  return { who: who!, customer: `cus_${name}` }
}
const findRequest = () => stripe.asked.filter(({ path }) => path === '/v1/billing_portal/sessions').at(-1)!

test('a portal session is that of the caller’s customer, and leads back to this service', async () => {
  const { who, customer } = await addCustomer()
  const answer = await call(who, 'POST', '/portal')
  assert.equal(answer.status, 200, answer.text)
  assert.match(answer.json.portal_url, /^https:\/\/billing\.example\/bps_/)
  assert.deepEqual(findRequest().fields, { customer, return_url: 'https://mill.example.com' })
  assert.match(findRequest().idempotencyKey, /^[0-9a-f-]{36}:portal$/)
  for (const [given, sent] of [
    ['/me?x=1', 'https://mill.example.com/me?x=1'],
    ['https://mill.example.com/plans', 'https://mill.example.com/plans'],
  ]) {
    assert.equal((await call(who, 'POST', '/portal', { return_url: given })).status, 200)
    assert.equal(findRequest().fields.return_url, sent)
  }
})

test('the link back may lead to an origin of CORS_ORIGINS, and to no other', async () => {
  const { who } = await addCustomer()
  const ask = (return_url: unknown) =>
    crossing.post('/api/v1/payment/portal', { token: who.token, json: { return_url } })
  assert.equal((await ask('https://app.example.com/me')).status, 200)
  for (const bad of [
    'https://evil.example',
    'https://app.example.com.evil.example/',
    'https://app.example.com@evil.example/',
    'https://x@app.example.com/',
    'http://app.example.com/',
    '//evil.example',
    'javascript:alert(1)',
    '',
    7,
  ])
    assertRefused(await ask(bad), 422, /return_url/)
})

test('an account that is no customer gets 409, and one without a provider 503', async () => {
  const [nobody] = await people(1)
  const missing = /no customer of the payment provider yet/
  assertRefused(await call(nobody!, 'POST', '/portal'), 409, missing)
  assertRefused(await open.post('/api/v1/payment/portal'), 409, missing)
  const { who, customer } = await addCustomer()
  assertRefused(await unconfigured.post('/api/v1/payment/portal', { token: who.token }), 503)
  assertRefused(await call(null, 'POST', '/portal'), 401)
  stripe.account.deleted.add(customer)
  assertRefused(await call(who, 'POST', '/portal'), 409, missing)
})
