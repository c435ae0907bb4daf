import { after, describe, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import {
  applyChanges,
  findLastReport,
  findRunningSubscription,
  listRunningSubscriptions,
  listUnlinkedInvoices,
  listUnsettledRefunds,
} from '../../sql/payments/changes.ts'
import {
  readDispute,
  readDisputeAsAdmin,
  readDisputes,
  readDisputesAsAdmin,
  readRevenue,
  readSubscriptions,
  readSubscriptionsAsAdmin,
  readSummary,
  readTransaction,
  readTransactionAsAdmin,
  readTransactions,
  readTransactionsAsAdmin,
} from '../../sql/payments/payments.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { assertWriteByIndex, planRead, testReads } from './plans-help.ts'

/** Queries of payments use an index, in tables of at least 1000 rows. */

const { query, url } = await createTestDatabase()
await query(
  'truncate payment_customer, payment_transaction, payment_subscription, payment_dispute, payment_reference',
)
await query(
  `insert into account (email, password_hash) select 'b' || n || '@example.com', 'x' from generate_series(1, 1000) n`,
)
await query(
  `insert into payment_customer (user_id, provider_customer_id) select id, 'cus_' || id from account`,
)
await query(`insert into payment_transaction (customer_id, facts) select c.id, jsonb_build_object('money', '["", {"amount": 5, "currency": "usd"}]'::jsonb,
    'outcome', jsonb_build_array('', case when part = 0 then 'failed' else 'succeeded' end), 'created', jsonb_build_array('', 1700000000 + part), 'payment_intent', jsonb_build_array('', 'pi' || c.id || '_' || n))
    from payment_customer c, generate_series(1, 3) n, lateral (select (c.id + n) % 10 as part) parts`)
await query(
  `insert into payment_subscription (customer_id, provider_subscription_id, facts) select id, 'sub_' || id || '_' || n, '{"status": ["", "active"]}' from payment_customer, generate_series(1, 3) n`,
)
await query(`insert into payment_dispute (transaction_id, provider_dispute_id, facts) select id, 'du_' || id,
    format('{"state": ["", {"status": "%s", "event_type": "x", "at": 1}], "created": ["", 1]}',
      case when id % 20 = 0 then 'needs_response' when id % 3 = 0 then 'lost' else 'won' end)::jsonb
    from payment_transaction where id % 2 = 0`)
await vacuumAnalyze(query)
const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())
const owner = (await query('select max(user_id) as id from payment_customer'))[0]!.id as number
const id = (await query('select max(id)::int as id from payment_transaction'))[0]!.id as number

const planLists = (by: 'created_at' | 'amount', from: string | null, to: string | null) =>
  (['asc', 'desc'] as const).flatMap((way) =>
    [null, 'failed'].flatMap((status) => {
      const what = `transactions by ${by}, ${way}, ${from}, ${status}`
      const { own, all } = readTransactions[by][way]
      return [
        planRead(`own ${what}`, own, owner, status, from, to, null, 0, 20),
        planRead(what, all, null, status, from, to, null, 0, 20),
      ]
    }),
  )

const reads = [
  ...planLists('created_at', null, null),
  ...planLists('created_at', '2023-11-14T22:13:21Z', '2023-11-14T22:13:25Z'),
  ...planLists('amount', null, null),
  planRead('an own transaction', readTransaction.own, owner, id),
  planRead('a transaction', readTransaction.all, null, id),
  planRead(
    'transactions of admins',
    readTransactionsAsAdmin.created_at.desc.all,
    null,
    null,
    null,
    null,
    null,
    0,
    20,
  ),
  planRead(
    "an account's transactions of admins",
    ...([readTransactionsAsAdmin.created_at.desc.own, owner, null, null, null, null, 0, 20] as const),
  ),
  planRead('a transaction of admins', readTransactionAsAdmin.all, null, id),
  planRead('subscriptions of admins', readSubscriptionsAsAdmin.own, owner, 'unpaid', null, 0, 20),
  planRead('disputes of admins', readDisputesAsAdmin.all, null, 'open', null, 0, 20),
  planRead('a dispute of admins', readDisputeAsAdmin.all, null, 5),
  planRead('own subscriptions', readSubscriptions.own, owner, null, null, 0, 20),
  planRead('own subscriptions of a status', readSubscriptions.own, owner, 'unpaid', null, 0, 20),
  planRead('own disputes', readDisputes.own, owner, null, null, 0, 20),
  planRead('own disputes of a status', readDisputes.own, owner, 'won', null, 0, 20),
  planRead('own open disputes', readDisputes.own, owner, 'open', null, 0, 20),
  planRead('open disputes', readDisputes.all, null, 'open', null, 0, 20),
  planRead('an own dispute', readDispute.own, owner, 5),
  planRead('an own summary', readSummary.own, owner, true, true),
  planRead('an own series', readRevenue.own, owner, 30, null),
  planRead('a summary', readSummary.all, null, true, true),
  planRead('a series', readRevenue.all, null, 30, null),
]

describe('reads by index', () => testReads(client, reads))

test('writes that change sums', async () => {
  let n = 0
  const money = ['1', { amount: 7, currency: 'usd' }]
  const paid = () => {
    const facts = {
      money,
      created: ['1', 1_700_000_000],
      outcome: ['1', 'succeeded'],
      customer: ['1', 'cus_5'],
    }
    return applyChanges([
      { kind: 'transaction', ids: [`pi_new_${++n}`], facts },
      { kind: 'refund', id: `re_${n}`, ids: [`pi_new_${n}`], request: null, facts },
      {
        kind: 'subscription',
        id: `sub_5_${n}`,
        facts: { status: ['1', 'active'], customer: ['1', 'cus_5'] },
      },
    ])
  }
  await assertWriteByIndex(client, paid, 'payment_s', 'payment_t')
  await assertWriteByIndex(client, () => listRunningSubscriptions(owner))
  await assertWriteByIndex(client, () => findRunningSubscription(owner, 'price_1'))
  await assertWriteByIndex(client, () => listUnsettledRefunds(300, 500))
  await assertWriteByIndex(client, () => listUnlinkedInvoices(500))
  await assertWriteByIndex(client, () => findLastReport('sub_5_1'))
})
