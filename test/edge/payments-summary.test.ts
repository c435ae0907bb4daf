import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startEdge } from './harness.ts'
import { assertRefused } from './orgs-help.ts'
import { DAY, getSharedPayments, NOW } from './payments-rows.ts'

const { admin, ann, call, eve, everything, get, query, url } = await getSharedPayments()
const unconfiguredEdge = await startEdge(url, { env: { AUTH_LEVEL: 'none', PROVIDER_SECRET_KEY: '' } })

describe('the summary', () => {
  test("counts the caller's payments in the most used currency", async () => {
    assert.deepEqual(await get(ann, '/status'), {
      provider: 'stripe',
      enabled: true,
      is_test_mode: true,
      total_transactions: 8,
      total_revenue_cents: 2500,
      active_subscriptions: 1,
      currency: 'usd',
      per_currency: [
        { currency: 'usd', revenue_cents: 2500, payments: 3 },
        { currency: 'eur', revenue_cents: 700, payments: 1 },
      ],
      ignored_events: [],
      missing_rights: [],
      unlinked_invoices: 0,
      may_refund: true,
    })
    assert.deepEqual((await get(eve, '/status')).per_currency, [])
    const all = await everything('/status')
    assert.deepEqual(
      [all.total_transactions, all.total_revenue_cents, all.active_subscriptions],
      [10, 11_550, 2],
    )
    assert.deepEqual(await get(admin, '/admin/status'), all)
    const of = (path: string) => `${path}/revenue-timeseries?days=3`
    assert.deepEqual(await get(admin, of('/admin')), await everything(of('')))
  })

  test('reports whether a provider is configured, and never its key', async () => {
    const { enabled, is_test_mode } = (await unconfiguredEdge.get('/api/v1/payment/status')).json
    assert.deepEqual([enabled, is_test_mode], [false, false])
    const live = await startEdge(url, { env: { AUTH_LEVEL: 'none', STRIPE_SECRET_KEY: 'sk_live_1' } })
    const answer = await live.get('/api/v1/payment/status')
    assert.deepEqual([answer.json.enabled, answer.json.is_test_mode], [true, false])
    assert.doesNotMatch(answer.text, /sk_live/)
  })

  test('names the rights that the key of the provider lacks, to admins', async () => {
    await query(`insert into payment_key (missing_rights) values ('{Events,Prices}')`)
    assert.deepEqual((await get(admin, '/admin/status')).missing_rights, ['Events', 'Prices'])
    assert.deepEqual((await get(ann, '/status')).missing_rights, [])
    const unconfigured = (await unconfiguredEdge.get('/api/v1/payment/status')).json
    assert.deepEqual(unconfigured.missing_rights, [])
    await query('delete from payment_key')
  })

  test('equals the sum of the daily series', async () => {
    const { points, ...rest } = await get(ann, '/revenue-timeseries')
    assert.deepEqual(rest, { currency: 'usd', days: 30 })
    assert.equal(points.length, 30)
    assert.equal(points.at(-1).date, new Date().toISOString().slice(0, 10))
    const sum = (some: { revenue_cents: number }[]) =>
      some.reduce((total, { revenue_cents }) => total + revenue_cents, 0)
    assert.equal(sum(points), 2500)
    assert.deepEqual(points.at(-4), {
      date: new Date((NOW - 3 * DAY) * 1000).toISOString().slice(0, 10),
      revenue_cents: 1000,
      payments: 1,
    })
    assert.equal(sum((await get(ann, '/revenue-timeseries?days=3&currency=EUR')).points), 700)
    assert.equal(sum((await everything('/revenue-timeseries')).points), 11_550)
    assert.deepEqual((await get(eve, '/revenue-timeseries?days=1')).points, [
      { date: points.at(-1).date, revenue_cents: 0, payments: 0 },
    ])
    for (const search of ['days=0', 'days=367', 'currency=us', 'currency=dollars'])
      assertRefused(await call(ann, 'GET', `/revenue-timeseries?${search}`), 422)
  })
})
