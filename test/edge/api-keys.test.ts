import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { createApiKey } from '../../tasks/accounts/api-keys.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { Client } from '../service.ts'
import { until } from '../until.ts'
import { assertRefused, getMe, getSharedCast, KEY_INVALID, TOKEN_INVALID } from './accounts-help.ts'
import { createKey, deleteKey, KEYS, requestKey } from './api-keys-help.ts'
import { PASSWORD, startEdge } from './harness.ts'
import { createLedger } from './ledger.ts'
import { createSlug } from './orgs-help.ts'

/** Tests the creation, one-time display, use and immediate revocation of API keys. */

const { api, admin, newcomer, ...database } = await getSharedCast()
const { query, url } = database
const ledger = createLedger(database)
const otherEdge = await startEdge(url)
const KEY_REJECTED = [401, KEY_INVALID] as const
const KEY_MISSING = [404, 'API key not found'] as const

describe('a new key', () => {
  test('is shown once and stored as a digest', async () => {
    const account = await newcomer()
    const answer = await requestKey(api, account, {
      name: ' nightly import ',
      scopes: ['jobs:read', 'documents:write'],
    })
    assert.equal(answer.status, 201, answer.text)
    assert.equal(answer.headers['cache-control'], 'no-store')
    const { key, ...shown } = answer.json
    assert.match(key, /^mill_live_[0-9A-Za-z]{49}$/)
    const { id, created_at } = shown
    assert.deepEqual(shown, {
      ...{ id, account_id: account.id, organization_id: null, name: 'nightly import', hint: key.slice(-4) },
      ...{ scopes: ['documents:write', 'jobs:read'], created_at, expires_at: null, last_used_at: null },
      budget: { day_tokens: null, day_cost: null, month_tokens: null, month_cost: null },
    })
    const list = await api.get(KEYS, { token: account.token })
    assert.deepEqual([list.status, list.json], [200, [shown]])
    const [row] = await query('select * from api_key where id = $1', [id])
    assert.deepEqual(row!.digest, digestOf(key))
    assert.ok(!JSON.stringify(row).includes(key.slice(10)))
  })

  test('is returned again for the same Idempotency-Key', async () => {
    const account = await newcomer()
    const headers = { 'idempotency-key': randomUUID() }
    const [first, second] = [
      await requestKey(api, account, {}, headers),
      await requestKey(otherEdge, account, {}, headers),
    ]
    assert.equal(first.status, 201)
    assert.equal(second.text, first.text)
    assert.equal((await api.get(KEYS, { token: account.token })).json.length, 1)
    const [kept] = await query('select body from idempotency_key where key = $1', [
      headers['idempotency-key'],
    ])
    assert.ok(!JSON.stringify(kept).includes('mill_live_'))
  })

  test('requires a sign-in within the last 10 minutes, or the password', async () => {
    const account = await newcomer()
    await query(`update session set created_at = now() - interval '11 minutes' where account_id = $1`, [
      account.id,
    ])
    const detail =
      'This requires the password (and a one-time code, if enabled) or a sign-in within the last 10 minutes'
    assertRefused(await requestKey(api, account), 403, detail)
    const withPassword = (password: string) =>
      api.post(KEYS, { token: account.token, json: { name: 'k', scopes: ['jobs:read'], password } })
    assertRefused(await withPassword('not it'), 400, 'The password or the code is incorrect')
    assert.equal((await withPassword(PASSWORD)).status, 201)
    assert.equal((await query('select from api_key where account_id = $1', [account.id])).length, 1)
    const notices = await query(
      `select payload - 'account_id' as payload from job where name = 'accounts.notice' and payload -> 'account_id' = to_jsonb($1::int)`,
      [account.id],
    )
    assert.deepEqual(notices, [{ payload: { what: 'key_created', name: 'k' } }])
  })

  test('is rejected with the reasons if invalid', async () => {
    const account = await newcomer()
    const cases: readonly [object, string][] = [
      [{ name: ' ' }, 'name'],
      [{ name: 'n'.repeat(101) }, 'name'],
      [{ scopes: [] }, 'scopes'],
      [{ scopes: ['documents'] }, 'scopes.0'],
      [{ scopes: ['jobs:read', 'nothing:read'] }, 'scopes.1'],
      [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
      [{ expires_at: 'tomorrow' }, 'expires_at'],
      [{ organization_id: 0 }, 'organization_id'],
      [{ role: 'admin' }, 'body'],
    ]
    for (const [fields, where] of cases) {
      const answer = await requestKey(api, account, fields)
      assert.equal(answer.status, 422, answer.text)
      assert.equal(answer.json.errors[0].loc.join('.').replace(/^body\./, ''), where)
    }
  })

  test('is rejected if the account has 100 keys', async () => {
    const account = await newcomer()
    await query(
      `insert into api_key (id, account_id, name, digest, hint, scopes)
       select gen_random_uuid(), $1, 'n', sha256(gen_random_uuid()::text::bytea), 'hint', '{jobs:read}' from generate_series(1, 99) n`,
      [account.id],
    )
    const made = await Promise.all([requestKey(api, account), requestKey(otherEdge, account)])
    assert.deepEqual(made.map(({ status }) => status).sort(), [201, 429])
    const refused = await requestKey(api, account)
    assert.equal(refused.status, 429)
    assert.deepEqual(
      [refused.json.code, /100 API keys \(QUOTA_KEYS\)/.test(refused.json.detail)],
      ['quota.keys', true],
    )
    const page = await api.get(`${KEYS}?limit=60`, { token: account.token })
    assert.equal(page.json.length, 60)
    const next = /^<(.+)>; rel="next"$/.exec(String(page.headers.link))![1]!
    assert.equal((await api.get(next, { token: account.token })).json.length, 40)
  })
})

describe('an API key authenticates', () => {
  test('on every edge, immediately after its creation', async () => {
    const account = await newcomer()
    // Fill the account cache of the other edge before the key exists.
    assert.equal((await getMe(otherEdge, account.token)).status, 200)
    const { key } = await createKey(api, account)
    for (const edge of [otherEdge, api, otherEdge]) {
      const answer = await getMe(edge, key)
      assert.deepEqual([answer.status, answer.json.id], [200, account.id])
    }
  })

  test('streams, uploads and jobs, which the account itself can then use', async () => {
    const account = await newcomer()
    const { key } = await createKey(api, account, { scopes: ['documents:write', 'jobs:read'] })
    const uploaded = await api.upload(key, 'some text')
    assert.equal(uploaded.status, 201, uploaded.text)
    const read = await api.get(`/api/v1/documents/${uploaded.json.id}`, { token: account.token })
    assert.equal(read.status, 200)
    const job = await ledger.add(account.id)
    const client = Object.assign(new Client(otherEdge.port), { token: key })
    const stream = await client.stream(`/api/v1/jobs/${job}/events`)
    await stream.until('the first frame', (frames) => frames.length > 0)
    stream.close()
  })

  test('with the current role of the account', async () => {
    const account = await newcomer()
    const { key } = await createKey(api, account)
    const users = () => api.get('/api/v1/auth/users', { token: key })
    assertRefused(await users(), 403, 'This requires the role moderator or admin')
    await api.call('PATCH', `/api/v1/auth/users/${account.id}/role?role=moderator`, { token: admin.token })
    assert.equal((await users()).status, 200)
  })

  test('unless it is forged or malformed', async () => {
    const account = await newcomer()
    const { id, key } = await createKey(api, account)
    const forged = [
      key.slice(0, -1),
      `${key}0`,
      key.toLowerCase(),
      `mill_live_${'0'.repeat(49)}`,
      'mill_live_',
      // A key without a row.
      createApiKey(),
    ]
    for (const text of forged) assertRefused(await getMe(api, text), ...KEY_REJECTED, text)
    assertRefused(await getMe(api, id), 401, TOKEN_INVALID)
    assert.equal((await getMe(api, key)).status, 200)
  })
})

describe('an API key becomes invalid immediately, on every edge', () => {
  test('when it is deleted, which also ends its streams', async () => {
    const account = await newcomer()
    const { id, key } = await createKey(api, account)
    const kept = await createKey(api, account)
    for (const edge of [api, otherEdge]) assert.equal((await getMe(edge, key)).status, 200)
    const client = Object.assign(new Client(otherEdge.port), { token: key })
    const stream = await client.stream(`/api/v1/jobs/${await ledger.add(account.id)}/events`)
    await stream.until('the first frame', (frames) => frames.length > 0)
    assert.equal((await deleteKey(api, account, id)).status, 204)
    assertRefused(await getMe(api, key), ...KEY_REJECTED)
    await until('the other edge rejects it', async () => (await getMe(otherEdge, key)).status === 401)
    await stream.waitForEnd(10_000)
    assert.equal((await getMe(otherEdge, kept.key)).status, 200)
    assertRefused(await deleteKey(api, account, id), ...KEY_MISSING)
  })

  test('while its account is deactivated', async () => {
    const account = await newcomer()
    const { key } = await createKey(api, account)
    const change = (what: string) =>
      api.call('PATCH', `/api/v1/auth/users/${account.id}/${what}`, { token: admin.token })
    await change('deactivate')
    assertRefused(await getMe(api, key), ...KEY_REJECTED)
    await change('activate')
    assert.equal((await getMe(api, key)).status, 200)
  })

  test('when its account is deleted', async () => {
    const account = await newcomer()
    const { key } = await createKey(api, account)
    await api.call('DELETE', `/api/v1/auth/users/${account.id}`, { token: admin.token })
    assertRefused(await getMe(api, key), ...KEY_REJECTED)
  })

  test("when it expires, by the database's clock", async () => {
    const account = await newcomer()
    const expires_at = new Date(Date.now() + 3_600_000).toISOString()
    const { id, key } = await createKey(api, account, { expires_at })
    assert.equal((await getMe(api, key)).status, 200)
    await query(`update api_key set expires_at = now() + interval '50 ms' where id = $1`, [id])
    api.serving.edge.authenticator.forget(account.id)
    await until('the key has expired', async () => (await getMe(api, key)).status === 401)
    // An expired key stays in the list until its deletion.
    assert.equal((await api.get(KEYS, { token: account.token })).json.length, 1)
  })

  test('but not when the password changes, which ends sessions', async () => {
    const account = await newcomer()
    const { key } = await createKey(api, account)
    const json = { current_password: PASSWORD, new_password: 'another password' }
    await api.post('/api/v1/auth/change-password', { token: account.token, json })
    assert.equal((await getMe(api, key)).status, 200)
  })
})

test('a key can be deleted by its account and by admins; others get 404', async () => {
  const [account, stranger] = [await newcomer(), await newcomer()]
  const [one, two] = [await createKey(api, account), await createKey(api, account)]
  for (const id of [one.id, randomUUID(), 'nonsense', '1'])
    assertRefused(await deleteKey(api, stranger, id), ...KEY_MISSING)
  assert.equal((await deleteKey(api, account, one.id)).status, 204)
  assert.equal((await deleteKey(api, admin, two.id)).status, 204)
})

test('the last use is recorded within a minute', async () => {
  const account = await newcomer()
  const edge = await startEdge(url)
  const { key } = await createKey(edge, account)
  assert.equal((await getMe(edge, key)).status, 200)
  const used = async () => (await api.get(KEYS, { token: account.token })).json[0].last_used_at
  assert.equal(await used(), null)
  // Stopping the edge flushes pending usage times.
  await edge.serving.stop()
  assert.ok(Math.abs(Date.parse(await used()) - Date.now()) < 60_000)
})

test('audit events of requests with a key name the key', async () => {
  const account = await newcomer()
  const { id, key } = await createKey(api, account, { scopes: ['*:write'] })
  const json = { name: 'Mill', slug: createSlug('mill') }
  const created = await api.post('/api/v1/orgs', { token: key, json })
  assert.equal(created.status, 201, created.text)
  await deleteKey(api, account, id)
  const audit = await api.get(`/api/v1/auth/audit?account_id=${account.id}`, { token: admin.token })
  const events = audit.json.events.map(({ kind, data }: { kind: string; data: object }) => ({ kind, data }))
  const of = (kind: string) => events.find((event: { kind: string }) => event.kind === kind)?.data
  const described = { key: id, name: 'a program', scopes: ['*:write'], expires_at: null }
  assert.deepEqual(of('key.created'), described)
  assert.deepEqual(of('key.deleted'), described)
  assert.equal(of('organization.created').api_key, id)
})
