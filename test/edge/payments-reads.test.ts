import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AuditEvent } from '../../sql/audit/audit.ts'
import { deleteAndPurge } from '../../tasks/accounts/deletion.ts'
import { createJobSettings } from '../job-settings.ts'
import { buildCharge, buildSubscription, createEvent } from '../payment-events.ts'
import { runPurge } from '../purge.ts'
import { assertChallenge, TOKEN_INVALID } from './accounts-help.ts'
import { startEdge } from './harness.ts'
import { assertRefused } from './orgs-help.ts'
import { createPaidEvent, createPayments, DAY, NOW } from './payments-rows.ts'

const { admin, ann, api, bob, call, db, env, eve, everything, get, link, people, query, tell, url } =
  await createPayments()
const basicEdge = await startEdge(url, { env: { ...env, AUTH_LEVEL: 'basic' } })

const createDeletionEvent = (email: string): AuditEvent => ({
  kind: 'account.deleted',
  actorId: null,
  accountId: null,
  address: null,
  requestId: null,
  data: { email },
})

const EMPTY_PAGE = { total: 0, total_is_exact: true, next: null, page: 1, page_size: 20 }

for (const list of ['transactions', 'subscriptions', 'disputes', 'disputes?status=open'])
  test(`${list} can be followed by page and by cursor`, async () => {
    const [name] = list.split('?')
    const path = (more: string) => `/${list}${list.includes('?') ? '&' : '?'}page_size=1${more}`
    const all = (await get(ann, `/${list}`))[name!]
    const [byNumber, byCursor] = [[] as unknown[], [] as unknown[]]
    let cursor = ''
    for (let page = 1; cursor !== null; page++) {
      const followed = await get(ann, path(cursor))
      byCursor.push(...followed[name!])
      byNumber.push(...(await get(ann, path(`&page=${page}`)))[name!])
      assert.deepEqual([followed.total, followed.page, followed.page_size], [all.length, 1, 1])
      cursor = followed.next && `&cursor=${followed.next}`
    }
    assert.deepEqual([byNumber, byCursor], [all, all])
    assert.equal((await get(ann, path('&page=10001'))).total, all.length)
    assertRefused(await call(ann, 'GET', path('&page=10002')), 422)
  })

describe('transactions', () => {
  test("are the caller's own, newest first", async () => {
    const { transactions, ...rest } = await get(ann, '/transactions')
    assert.deepEqual(rest, { total: 8, total_is_exact: true, page: 1, page_size: 20, next: null })
    const seen = transactions.map((one: Record<string, unknown>) => [
      one.provider_transaction_id,
      one.type,
      one.status,
      one.amount,
      one.currency,
    ])
    assert.deepEqual(seen, [
      ['in_a7', 'subscription', 'succeeded', 700, 'eur'],
      ['re_a2_1', 'refund', 'succeeded', 500, 'usd'],
      ['pi_a3', 'charge', 'refunded', 3000, 'usd'],
      ['pi_a2', 'charge', 'partially_refunded', 2000, 'usd'],
      ['pi_a1', 'charge', 'succeeded', 1000, 'usd'],
      ['pi_a4', 'charge', 'failed', 2000, 'usd'],
      ['pi_a5', 'charge', 'canceled', 2000, 'usd'],
      ['pi_a6', 'charge', 'pending', 600, 'usd'],
    ])
    assert.equal(transactions[4].description, 'Order a1')
    assert.equal(transactions[4].created_at, new Date((NOW - 3 * DAY) * 1000).toISOString())
    for (const one of transactions) assert.deepEqual(await get(ann, `/transactions/${one.id}`), one)
  })

  test('have pages and a status filter', async () => {
    const all = (await get(ann, '/transactions')).transactions
    const pages = []
    for (const page of [1, 2, 3])
      pages.push(...(await get(ann, `/transactions?page_size=3&page=${page}`)).transactions)
    assert.deepEqual(pages, all)
    assert.deepEqual(await get(ann, '/transactions?page=9'), {
      transactions: [],
      total: 8,
      total_is_exact: true,
      next: null,
      page: 9,
      page_size: 20,
    })
    for (const [status, count] of [
      ['succeeded', 3],
      ['pending', 1],
      ['failed', 1],
      ['refunded', 1],
      ['partially_refunded', 1],
      ['canceled', 1],
    ] as const) {
      const { transactions, total } = await get(ann, `/transactions?status=${status}`)
      assert.deepEqual(
        [total, transactions.length, new Set(transactions.map((one: { status: string }) => one.status))],
        [count, count, new Set([status])],
      )
    }
  })

  test('of guests and other accounts are hidden; without authentication all are visible', async () => {
    assert.equal((await get(bob, '/transactions')).total, 1)
    for (const who of [eve, admin])
      assert.deepEqual(await get(who, '/transactions'), { transactions: [], ...EMPTY_PAGE })
    assert.equal((await everything('/transactions')).total, 10)
  })

  test('reject values out of range', async () => {
    for (const search of ['page=0', 'page=x', 'page_size=0', 'page_size=201', 'status=open', 'page_size='])
      assertRefused(await call(ann, 'GET', `/transactions?${search}`), 422)
    assert.equal((await get(ann, '/transactions?page_size=200')).page_size, 200)
  })
})

describe('subscriptions', () => {
  test("are the caller's own, filtered by status", async () => {
    const { subscriptions, total } = await get(ann, '/subscriptions')
    assert.deepEqual(
      [total, subscriptions.map((one: { status: string }) => one.status)],
      [2, ['past_due', 'active']],
    )
    assert.equal((await get(ann, '/subscriptions?status=active')).total, 1)
    assert.deepEqual(await get(ann, '/subscriptions?status=canceled'), { subscriptions: [], ...EMPTY_PAGE })
    assert.equal((await everything('/subscriptions?status=trialing')).total, 1)
    assertRefused(await call(ann, 'GET', '/subscriptions?status=paused'), 422)
  })
})

describe('disputes', () => {
  test("are those of the caller's payments, and `open` selects those that need a response", async () => {
    const states = async (search: string) =>
      (await get(ann, `/disputes${search}`)).disputes.map((one: { status: string }) => one.status)
    assert.deepEqual(await states(''), ['warning_issued', 'won', 'under_review', 'needs_response'])
    assert.deepEqual(await states('?status=open'), ['warning_issued', 'under_review', 'needs_response'])
    assert.deepEqual(await states('?status=won'), ['won'])
    assert.deepEqual(await get(ann, '/disputes?status=lost'), { disputes: [], ...EMPTY_PAGE })
    assert.equal((await get(bob, '/disputes?status=lost')).total, 1)
    assertRefused(await call(ann, 'GET', '/disputes?status=closed'), 422)
  })

  test('include their payment and the due date of evidence', async () => {
    const { disputes } = await get(ann, '/disputes?status=needs_response')
    const [payment] = await query(
      `select transaction_id::int from payment_reference where provider_id = 'pi_a1'`,
    )
    const { id, created_at, updated_at, ...rest } = disputes[0]
    assert.deepEqual(rest, {
      transaction_id: payment!.transaction_id,
      provider_dispute_id: 'du_a1',
      status: 'needs_response',
      reason: 'fraudulent',
      amount: 2000,
      currency: 'usd',
      evidence_due_by: new Date(1_700_864_000_000).toISOString(),
      event_type: 'charge.dispute.created',
    })
    assert.ok(created_at <= updated_at)
    assert.deepEqual(await get(ann, `/disputes/${id}`), disputes[0])
  })

  test('of an unknown payment are visible only without authentication', async () => {
    const { disputes } = await everything('/disputes')
    assert.equal(disputes.length, 6)
    const unknown = disputes.find((one: { transaction_id: number | null }) => one.transaction_id === null)
    assert.equal(unknown.provider_dispute_id, 'du_unknown')
    for (const who of [ann, eve, admin])
      assertRefused(await call(who, 'GET', `/disputes/${unknown.id}`), 404, 'Dispute not found')
  })
})

test("another account's payment is byte for byte the same as a missing one", async () => {
  const missing = 2_147_483_647
  for (const [path, table, detail] of [
    ['/transactions', 'payment_transaction', 'Transaction not found'],
    ['/disputes', 'payment_dispute', 'Dispute not found'],
  ] as const) {
    for (const { id } of (await query(`select id from ${table} order by id`)) as { id: number }[]) {
      const [own, none] = await Promise.all([
        call(eve, 'GET', `${path}/${id}`),
        call(eve, 'GET', `${path}/${missing}`),
      ])
      assertRefused(own, 404, detail)
      assert.deepEqual(own.bytes, none.bytes)
      const names = ({ headers }: typeof own) => Object.keys(headers).sort()
      assert.deepEqual(names(own), names(none))
    }
  }
})

test('everything except the webhook requires an active account, at every level', async () => {
  const routes = [
    ['GET', '/transactions'],
    ['GET', '/transactions/1'],
    ['POST', '/refund/1'],
    ['GET', '/subscriptions'],
    ['POST', '/subscriptions/1/cancel'],
    ['POST', '/subscriptions/1/resume'],
    ['POST', '/subscriptions/1/plan'],
    ['GET', '/disputes'],
    ['GET', '/disputes/1'],
    ['GET', '/status'],
    ['POST', '/checkout'],
    ['POST', '/portal'],
    ['GET', '/catalog'],
    ['GET', '/revenue-timeseries'],
  ] as const
  const [gone] = await people(1)
  await query('update account set is_active = false where id = $1', [gone!.id])
  for (const edge of [api, basicEdge]) {
    for (const [method, path] of routes) {
      for (const token of [undefined, 'forged', gone!.token]) {
        const answer = await edge.call(method, `/api/v1/payment${path}`, token === undefined ? {} : { token })
        assertRefused(answer, 401, token === undefined ? 'Not authenticated' : TOKEN_INVALID)
        assertChallenge(answer)
      }
    }
    assertRefused(await edge.post('/api/v1/payment/webhook', { body: '{}' }), 400, 'Invalid payload')
  }
  assert.equal((await basicEdge.get('/api/v1/payment/transactions', { token: ann.token })).json.total, 8)
})

test('payments of a deleted account stay without an owner', async () => {
  const [who] = await people(1)
  await link(who!, 'leaver')
  await tell(
    createPaidEvent('leaving', 'leaver'),
    createEvent(
      'customer.subscription.created',
      buildSubscription({ name: 'leaving', customer: 'cus_leaver' }, { status: 'canceled' }),
    ),
  )
  assert.equal((await get(who!, '/transactions')).total, 1)
  const before = await everything('/transactions')
  // Delete the account as the deletion job does after its call to the provider.
  await db.transaction((tx) =>
    deleteAndPurge(tx, who!.id, createDeletionEvent, { requestId: null, settings: createJobSettings(1) }),
  )
  await runPurge(db)
  assert.deepEqual(await query('select from account where id = $1', [who!.id]), [])
  assert.deepEqual(await everything('/transactions'), before)
  assert.deepEqual(
    await query(`select user_id from payment_customer where provider_customer_id = 'cus_leaver'`),
    [{ user_id: null }],
  )
  await tell(createEvent('charge.refunded', buildCharge({ name: 'leaving', customer: 'cus_leaver' }, 100)))
  assert.equal((await everything('/transactions?status=partially_refunded')).total, 2)
})
