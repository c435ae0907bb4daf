import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { CHAT_PATH, startChatService } from './ai-help.ts'
import { createKey, KEYS } from './api-keys-help.ts'
import { type Account, type Answered, createEmail } from './harness.ts'

/** Tests budgets of AI usage over HTTP: refusals, reservations of running turns, and the limits of accounts and keys. */

// An answer of the stand-in uses 17 tokens: two answers spend this budget.
const { api, query, models } = await startChatService({ AI_BUDGET_DAY_TOKENS: '30', WORKER_MAX_TRIES: '1' })
const admin = await api.register(createEmail('admin'))
await query(`update account set role = 'admin' where id = $1`, [admin.id])
const register = (): Promise<Account> => api.register(createEmail())
const ask = (token: string, more: object = {}, headers = {}): Promise<Answered> =>
  api.post(CHAT_PATH, { token, json: { message: 'Hello?', ...more }, headers })
const BUDGET = '/api/v1/ai/usage/budget'

async function readBudget(token: string, search = '') {
  const answer = await api.get(`${BUDGET}${search}`, { token })
  assert.equal(answer.status, 200, answer.text)
  type Use = {
    kind: string
    limit: number | null
    own: number | null
    used: number
    left: number | null
    [name: string]: unknown
  }
  const byKind = (uses: Use[] | null) => new Map((uses ?? []).map((use) => [use.kind, use]))
  return { ...answer.json, account: byKind(answer.json.account), key: byKind(answer.json.key) }
}
async function setBudget({ id }: Pick<Account, 'id'>, json: object): Promise<void> {
  const answer = await api.call('PATCH', `${BUDGET}/${id}`, { token: admin.token, json })
  assert.equal(answer.status, 204, answer.text)
}
const countTurns = async ({ id }: Account): Promise<unknown> =>
  (
    await query(
      `select (select count(*)::int from job where owner_id = $1) as jobs,
      (select count(*)::int from ai_conversation where owner_id = $1) as conversations,
      (select count(*)::int from ai_budget_hold where account_id = $1) as held`,
      [id],
    )
  )[0]

describe('a budget from the settings', () => {
  test('refuses a question once it is spent, with the amount left and the time of the reset', async () => {
    const account = await register()
    for (let n = 0; n < 2; n++) assert.equal((await ask(account.token)).status, 200)
    const before = await countTurns(account)
    const refused = await ask(account.token)
    assert.deepEqual([refused.status, refused.json.code], [429, 'quota.ai_budget'], refused.text)
    const midnight = new Date()
    midnight.setUTCHours(24, 0, 0, 0)
    const { resets_in_seconds, ...budget } = refused.json.budget
    assert.deepEqual(budget, {
      ...{ holder: 'account', kind: 'day_tokens', limit: 30, used: 34, reserved: 0, left: 0 },
      resets_at: midnight.toISOString(),
    })
    const { headers } = refused
    assert.equal(headers['retry-after'], String(resets_in_seconds))
    assert.ok(Math.abs(resets_in_seconds - (midnight.getTime() - Date.now()) / 1000) < 60)
    assert.deepEqual(
      [
        headers['ai-budget'],
        headers['ai-budget-limit'],
        headers['ai-budget-remaining'],
        headers['ai-budget-reset'],
      ],
      ['account.day_tokens', '30', '0', String(resets_in_seconds)],
    )
    assert.match(refused.json.detail, /30 tokens per day \(AI_BUDGET_DAY_TOKENS\): 34 used/)
    assert.deepEqual(await countTurns(account), before)
    const streamed = await api.post(`${CHAT_PATH}/stream`, { token: account.token, json: { message: 'Hm?' } })
    assert.equal(streamed.status, 429)
  })

  test('does not apply to other accounts, to admins, and to callers without an account', async () => {
    for (const token of [admin.token, undefined]) {
      for (let n = 0; n < 3; n++)
        assert.equal(
          (await api.post(CHAT_PATH, { json: { message: 'Hm?' }, ...(token && { token }) })).status,
          200,
        )
    }
    assert.equal((await api.get(`${BUDGET}?user_id=999999`, { token: admin.token })).json.account, null)
    const none = await api.get(BUDGET)
    assert.deepEqual(none.json, { account_id: null, account: null, key_id: null, key: null })
    assert.equal((await readBudget(admin.token)).account.get('day_tokens')!.limit, null)
  })

  test('is shown with its use', async () => {
    const account = await register()
    await ask(account.token)
    const { account: shown, account_id, key_id } = await readBudget(account.token)
    assert.deepEqual([account_id, key_id], [account.id, null])
    const { resets_at, ...day } = shown.get('day_tokens')!
    assert.deepEqual(day, {
      kind: 'day_tokens',
      limit: 30,
      own: null,
      used: 17,
      reserved: 0,
      left: 13,
      unpriced_requests: 0,
    })
    const cost = shown.get('month_cost')!
    assert.deepEqual([cost.limit, cost.left], [null, null])
    assert.ok(cost.used > 0)
    const other = await register()
    assert.equal((await api.get(`${BUDGET}?user_id=${account.id}`, { token: other.token })).status, 403)
    assert.equal(
      (await readBudget(admin.token, `?user_id=${account.id}`)).account.get('day_tokens')!.used,
      17,
    )
  })
})

describe('a budget of one account', () => {
  test('overrides the setting; 0 means unlimited, null restores the setting', async () => {
    const account = await register()
    await setBudget(account, { day_tokens: 0 })
    for (let n = 0; n < 3; n++) assert.equal((await ask(account.token)).status, 200)
    await setBudget(account, { day_tokens: 60 })
    const { limit, own, left } = (await readBudget(account.token)).account.get('day_tokens')!
    assert.deepEqual({ limit, own, left }, { limit: 60, own: 60, left: 9 })
    assert.equal((await ask(account.token)).status, 200)
    assert.equal((await ask(account.token)).status, 429)
    await setBudget(account, { day_tokens: null })
    assert.equal((await ask(account.token)).json.budget.limit, 30)
    const [event] = await query(
      `select data from audit_event where kind = 'account.budget_changed' order by id limit 1`,
    )
    assert.deepEqual(event!.data, { day_tokens: 0 })
  })

  test('limits the cost; usage without a known price costs 0', async () => {
    const account = await register()
    await setBudget(account, { day_tokens: 0, month_cost: 0.000005 })
    // 12 tokens at $0.15 and 5 at $0.60 per million cost $0.0000048.
    for (let n = 0; n < 2; n++) assert.equal((await ask(account.token)).status, 200)
    const refused = await ask(account.token)
    assert.equal(refused.status, 429)
    const { kind, limit, used, left } = refused.json.budget
    assert.deepEqual(
      { kind, limit, used, left },
      { kind: 'month_cost', limit: 0.000005, used: 0.0000096, left: 0 },
    )
    await query(
      `insert into ai_agent (slug, name, system_prompt, model_id) values ('unpriced', 'U', 'P', 'own-model')`,
    )
    const other = await register()
    await setBudget(other, { day_tokens: 0, month_cost: 0.000005 })
    for (let n = 0; n < 2; n++) assert.equal((await ask(other.token, { agent_slug: 'unpriced' })).status, 200)
    assert.equal((await readBudget(other.token)).account.get('month_cost')!.unpriced_requests, 2)
  })

  test('is set by admins only, within limits', async () => {
    const { token, id } = await register()
    assert.equal((await api.call('PATCH', `${BUDGET}/${id}`, { token, json: { day_cost: 1 } })).status, 403)
    for (const [path, json, status] of [
      [`${BUDGET}/999999`, { day_cost: 1 }, 404],
      [`${BUDGET}/${id}`, {}, 400],
      [`${BUDGET}/${id}`, { day_tokens: 1.5 }, 400],
      [`${BUDGET}/${id}`, { day_cost: -1 }, 400],
      [`${BUDGET}/${id}`, { week_cost: 1 }, 400],
    ] as const)
      assert.equal(
        (await api.call('PATCH', path, { token: admin.token, json })).status,
        status,
        JSON.stringify(json),
      )
  })
})

describe('turns under way', () => {
  test('reserve their input and longest answer, so that concurrent turns exceed a budget by one turn at most', async () => {
    const account = await register()
    await setBudget(account, { day_tokens: 1500 })
    models.script = () => ({ firstMs: 60_000 })
    const background = { prefer: 'respond-async' }
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(account.token, {}, background)))
    const refused = answers.filter(({ status }) => status === 429)
    assert.deepEqual(
      [answers.length - refused.length, refused.length],
      [2, 6],
      answers.map(({ text }) => text).join('\n'),
    )
    const [{ headers, json }] = refused as [Answered]
    assert.equal(headers['retry-after'], '5')
    assert.deepEqual([json.budget.used, json.budget.left], [0, 0])
    assert.ok(json.budget.reserved > 2000 && json.budget.reserved < 2100, json.budget.reserved)
    const jobs = answers.filter(({ status }) => status === 202).map(({ json: { job_id } }) => job_id)
    for (const job of jobs)
      assert.ok((await api.call('DELETE', `/api/v1/jobs/${job}`, { token: account.token })).status < 300)
    models.script = () => ({})
    await until('nothing is reserved', async () => {
      const [row] = await query('select count(*)::int as n from ai_budget_hold where account_id = $1', [
        account.id,
      ])
      return row!.n === 0
    })
    assert.equal((await ask(account.token)).status, 200)
  })

  test('release their estimate when they fail', async () => {
    const account = await register()
    models.script = () => ({ status: 400 })
    assert.equal((await ask(account.token)).status, 502)
    models.script = () => ({})
    assert.deepEqual((await readBudget(account.token)).account.get('day_tokens')!.reserved, 0)
  })
})

test('a failed turn cannot be retried as a job, which would bypass the budget', async () => {
  const account = await register()
  models.script = () => ({ status: 400 })
  assert.equal((await ask(account.token)).status, 502)
  models.script = () => ({})
  const [job] = await query(`select id from job where owner_id = $1`, [account.id])
  const retried = await api.post(`/api/v1/jobs/${job!.id}/retry`, { token: account.token })
  assert.deepEqual([retried.status, retried.json.code], [409, 'job.not_retryable'])
})

describe('the budget of an API key', () => {
  test('is set with the key, changed by its owner, and counts the usage of the key only', async () => {
    const account = await register()
    await setBudget(account, { day_tokens: 0 })
    const limited = await createKey(api, account, { scopes: ['ai:write'], budget: { day_tokens: 17 } })
    const free = await createKey(api, account, { scopes: ['ai:write'] })
    assert.equal((await ask(limited.key)).status, 200)
    const refused = await ask(limited.key)
    assert.deepEqual([refused.status, refused.json.code], [429, 'quota.ai_key_budget'], refused.text)
    assert.equal(refused.headers['ai-budget'], 'key.day_tokens')
    assert.equal((await ask(free.key)).status, 200)
    const own = await readBudget(limited.key)
    assert.equal(own.key_id, limited.id)
    const { limit, used, left } = own.key.get('day_tokens')!
    assert.deepEqual(
      { limit, used, left, all: own.account.get('day_tokens')!.used },
      { limit: 17, used: 17, left: 0, all: 34 },
    )
    assert.equal((await readBudget(account.token, `?key_id=${limited.id}`)).key.get('day_tokens')!.used, 17)

    const change = (json: object, token = account.token) =>
      api.call('PATCH', `${KEYS}/${limited.id}`, { token, json })
    const changed = await change({ budget: { day_tokens: 40, month_cost: 2.5 } })
    assert.equal(changed.status, 200, changed.text)
    assert.deepEqual(changed.json.budget, {
      day_tokens: 40,
      day_cost: null,
      month_tokens: null,
      month_cost: 2.5,
    })
    assert.equal((await ask(limited.key)).status, 200)
    assert.equal((await change({ budget: { day_tokens: null } })).json.budget.day_tokens, null)
    const [event] = await query(
      `select data from audit_event where kind = 'key.changed' order by id desc limit 1`,
    )
    assert.deepEqual((event!.data as { budget: unknown }).budget, { day_tokens: null })
  })

  test('is refused to others, to keys and beyond its limits', async () => {
    const [account, other] = [await register(), await register()]
    const { id, key } = await createKey(api, account)
    const change = (token: string, budget: object) =>
      api.call('PATCH', `${KEYS}/${id}`, { token, json: { budget } })
    assert.equal((await change(other.token, { day_tokens: 1 })).status, 404)
    assert.equal((await change(key, { day_tokens: 1 })).status, 403)
    for (const budget of [{ day_tokens: 0 }, { day_cost: -1 }, { hour_cost: 1 }])
      assert.equal((await change(account.token, budget)).status, 422, JSON.stringify(budget))
    assert.equal((await api.get(`${BUDGET}?key_id=${id}`, { token: other.token })).status, 404)
  })
})
