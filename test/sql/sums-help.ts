import { randomUUID } from 'node:crypto'
import type { Client } from '../../sql/connections/driver.ts'
import type { Query } from '../../sql/db.ts'
import type { TestDatabase } from '../database.ts'

/** Compares the tables of stored sums with sums computed from the rows. */

const selectOwnerAndTotal = (column: string): string =>
  `(select 0 as whose union all select ${column} where ${column} is not null)`
const CREATED_DAY = `(created_at at time zone 'utc')::date`

/** Key, sums, and the query that computes them from the rows, for each table of sums. */
const SUMS: Readonly<Record<string, readonly [key: string, sums: readonly string[], rows: string]>> = {
  ai_conversation_count: [
    'day',
    ['conversations'],
    `select ${CREATED_DAY}, count(*) from ai_conversation group by 1`,
  ],
  ai_sentiment_sum: [
    'owner_id, sentiment, performance',
    ['scores', 'score'],
    `select whose, sentiment, performance, count(*), sum(score::numeric)
     from ai_sentiment s join ai_conversation c on c.id = s.conversation_id
     cross join lateral ${selectOwnerAndTotal('c.owner_id')} w group by 1, 2, 3`,
  ],
  ai_usage_sum: [
    'user_id, owner_id, day, vendor, model',
    [
      'requests',
      'successes',
      'input_tokens',
      'output_tokens',
      'audio_seconds',
      'unpriced',
      'estimated',
      'cost',
    ],
    `select user_id, owner_id, day, vendor, model, count(*), count(*) filter (where success), sum(input_tokens),
       sum(output_tokens), sum(audio_seconds), count(*) filter (where cost is null), count(*) filter (where estimated), coalesce(sum(cost), 0)
     from (
       select '' as user_id, 0 as owner_id, ${CREATED_DAY} as day, vendor, model, success, input_tokens, output_tokens, audio_seconds, cost, estimated
       from ai_usage
       union all
       select user_id, coalesce(owner_id, 0), ${CREATED_DAY}, vendor, model, success, input_tokens, output_tokens, audio_seconds, cost, estimated
       from ai_usage) each group by 1, 2, 3, 4, 5`,
  ],
  ai_key_sum: [
    'key_id, day',
    ['tokens', 'cost', 'unpriced'],
    `select key_id, ${CREATED_DAY}, sum(input_tokens + output_tokens), coalesce(sum(cost), 0), count(*) filter (where cost is null)
     from ai_usage where key_id is not null group by 1, 2`,
  ],
  blog_post_count: ['status', ['posts'], 'select status, count(*) from blog_post group by 1'],
  comms_send_count: [
    'day, channel, outcome',
    ['sends'],
    `select ${CREATED_DAY}, channel, case when status in ('scheduled', 'queued', 'sending') then 'waiting' else status end, count(*)
     from comms_send group by 1, 2, 3`,
  ],
  document_sum: [
    'owner_id',
    ['documents', 'bytes', 'pages'],
    `select owner_id, count(*), sum(byte_size), sum(coalesce(page_count, 0)) from document
     where owner_id is not null and pruned_at is null group by 1`,
  ],
  document_tag_count: [
    'owner_id, label',
    ['documents', 'superseded'],
    `select coalesce(owner_id, 0), label, count(*), count(superseded_by_id) from document, unnest(tags) label
     where deleted_at is null group by 1, 2`,
  ],
  webhook_pending_sum: [
    'account_id',
    ['deliveries'],
    'select account_id, count(*) from webhook_delivery where due_at is not null group by 1',
  ],
  payment_subscription_count: [
    'customer_id',
    ['subscriptions'],
    `select whose, count(*) from payment_subscription, lateral ${selectOwnerAndTotal('customer_id')} w
     where status in ('active', 'trialing') group by 1`,
  ],
  payment_sum: [
    'customer_id, currency, day',
    ['transactions', 'payments', 'revenue'],
    `select whose, currency, ${CREATED_DAY}, count(*), count(*) filter (where paid),
       coalesce(sum(amount - least(refunded, amount)) filter (where paid), 0)
     from (select *, charge_id is null and not unlinked and status in ('succeeded', 'refunded', 'partially_refunded') as paid
       from payment_transaction where shown) t, lateral ${selectOwnerAndTotal('customer_id')} w group by 1, 2, 3`,
  ],
}

export const SUM_TABLES = Object.keys(SUMS)

/** Returns the differences between stored and computed sums, by table. */
export async function findDifferences(query: TestDatabase['query']): Promise<Record<string, unknown[]>> {
  const found: Record<string, unknown[]> = {}
  for (const [table, [key, sums, rows]] of Object.entries(SUMS)) {
    const kept = `select ${key}, ${sums.map((name) => `sum(${name})`)} from ${table} group by ${key}
      having ${sums.map((name) => `sum(${name}) <> 0`).join(' or ')}`
    const wrong = await query(`(${kept} except ${rows}) union all ((${rows}) except ${kept})`)
    if (wrong.length > 0) found[table] = wrong
  }
  return found
}

/** Runs a query of the service, or plain SQL. */
export async function runQuery(
  client: Client,
  query: Query<unknown> | string,
): Promise<Record<string, unknown>[]> {
  if (typeof query === 'string') return (await client.query<Record<string, unknown>>(query)).rows
  const text = query.sql.replaceAll('$slonik_', '$')
  return (await client.query<Record<string, unknown>>({ text, values: query.values as unknown[] })).rows
}

/** Adds a row to each table that has sums; each call adds to the same sums. */
export async function addRowToEachSum(client: Client): Promise<void> {
  const name = randomUUID()
  const fact = (value: unknown): readonly unknown[] => ['', value]
  const paid = { money: fact({ amount: 5, currency: 'usd' }), created: fact(0), outcome: fact('succeeded') }
  await client.query(
    `insert into ai_conversation (id, user_id, title, provider, model) values ($1, 'u', 'T', 'p', 'm')`,
    [name],
  )
  await client.query(
    `insert into ai_sentiment (conversation_id, sentiment, performance, score) values ($1, 'neutral', 'good', 0.5)`,
    [name],
  )
  await client.query(`insert into ai_usage (user_id, key_id, action, vendor, model, input_tokens, output_tokens, estimated, success)
    values ('u', '00000000-0000-7000-8000-000000000001', 'chat', 'v', 'm', 1, 1, false, true)`)
  await client.query(`insert into blog_post (title, slug) values ('T', $1)`, [name])
  await client.query(
    `insert into comms_send (id, channel, job_id, recipients, message) values ($1, 'sms', $1, '{r}', '{}')`,
    [name],
  )
  await client.query(
    `insert into document (title, media_type, byte_size, sha256, tags) values ('T', 'text/plain', 1, sha256($1), '{t}')`,
    [Buffer.from(name)],
  )
  await client.query('insert into payment_subscription (provider_subscription_id, facts) values ($1, $2)', [
    name,
    { status: fact('active') },
  ])
  await client.query('insert into payment_transaction (facts) values ($1)', [paid])
}
