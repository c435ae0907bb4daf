import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'

/** Budgets count the usage of an account and of an API key by UTC day and month. */

const { query } = await createTestDatabase()
const KEY = '01a20118-fb9f-7aa1-9d1c-0a3c51b27b1e'
await query(
  `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 500) n`,
)

/** Adds usage at a time of SQL; each row has 10 tokens and costs $0.1. */
const addUsage = (
  at: string,
  { owner = 1, key = null as string | null, cost = '0.1' as string | null } = {},
) =>
  query(
    `insert into ai_usage (user_id, owner_id, key_id, action, vendor, model, input_tokens, output_tokens, cost, estimated, success, created_at)
    values ($1::text, $1::int, $2, 'chat', 'v', 'm', 7, 3, $3, false, true, ${at})`,
    [owner, key, cost],
  )
const readState = async (account: number | null, key: string | null) =>
  Object.fromEntries(
    (
      await query(
        `select holder || '.' || kind as name, amount::float8 as amount, used::float8 as used, unpriced::int as unpriced
        from ai_budget_state($1, $2, '{30, 0, 300, 0}')`,
        [account, key],
      )
    ).map(({ name, ...state }) => [name, state]),
  )

const TODAY = `date_trunc('day', now() at time zone 'utc') at time zone 'utc'`
const MONTH = `date_trunc('month', now() at time zone 'utc') at time zone 'utc'`

test('a day and a month begin at midnight UTC, and usage of the last microsecond before does not count', async () => {
  await addUsage(TODAY)
  await addUsage(`${TODAY} + interval '1 hour'`, { cost: null, key: KEY })
  const isFirst = (await query(`select ${TODAY} = ${MONTH} as is_first`))[0]!.is_first
  await addUsage(MONTH)
  await addUsage(`${MONTH} - interval '1 microsecond'`, { key: KEY })
  const inMonth = 3
  const inDay = isFirst ? 3 : 2
  const state = await readState(1, KEY)
  assert.deepEqual(state['account.day_tokens'], { amount: 30, used: 10 * inDay, unpriced: 1 })
  assert.deepEqual(state['account.month_tokens'], { amount: 300, used: 10 * inMonth, unpriced: 1 })
  assert.equal(state['account.month_cost'].amount, null)
  assert.ok(Math.abs(state['account.month_cost'].used - 0.1 * (inMonth - 1)) < 1e-9)
  assert.deepEqual(state['key.month_tokens'], { amount: null, used: 10, unpriced: 1 })
  assert.deepEqual(
    Object.keys(await readState(1, null)).every((name) => name.startsWith('account.')),
    true,
  )
  assert.equal((await readState(2, null))['account.day_tokens'].used, 0)
})

test('the resets are the next midnight and the first of the next month, in UTC', async () => {
  const rows = await query(`select kind, resets_at at time zone 'utc' as at,
      (now() at time zone 'utc')::date + 1 = (resets_at at time zone 'utc') as is_tomorrow,
      extract(day from resets_at at time zone 'utc')::int as day, resets_at > now() as is_later
    from ai_budget_state(1, null, '{1, 1, 1, 1}')`)
  for (const { kind, is_tomorrow, day, is_later } of rows) {
    assert.ok(is_later)
    assert.ok(String(kind).startsWith('day') ? is_tomorrow : day === 1, String(kind))
  }
})

test('the check reads a few pages, however much usage others have', async () => {
  await query(
    `insert into ai_usage (user_id, owner_id, key_id, action, vendor, model, input_tokens, output_tokens, cost, estimated, success, created_at)
    select o::text, o, gen_random_uuid(), 'chat', 'v', 'm' || d % 3, 1, 1, 0.1, false, true, now() - d * interval '1 day'
    from generate_series(2, 500) o, generate_series(0, 39) d`,
  )
  await vacuumAnalyze(query)
  for (const statement of [
    `select * from ai_budget_lock(7, '${KEY}', '{30, 0, 0, 0}')`,
    `select * from ai_budget_state(7, '${KEY}', '{0, 0, 0, 0}')`,
  ]) {
    await query(statement)
    const [row] = await query(`explain (analyze, buffers, format json) ${statement}`)
    const { Plan: plan } = (row!['QUERY PLAN'] as [{ Plan: Record<string, number> }])[0]
    const blocks = plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
    assert.ok(blocks < 150, `${blocks} blocks`)
  }
})

test('an account without any budget is not locked', async () => {
  await query(`update account set role = 'user' where id = 7`)
  assert.deepEqual(await query(`select * from ai_budget_lock(7, null, '{0, 0, 0, 0}')`), [])
})
