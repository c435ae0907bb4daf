import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import {
  assertRefused,
  getMe,
  getSharedCast,
  logIn,
  refreshSession,
  sessionIdOf,
  TOKEN_INVALID,
} from './accounts-help.ts'
import { type Answered, PASSWORD, startEdge } from './harness.ts'

/** Tests how an account lists and revokes its own sessions and changes its password. */

const { api, query, url, admin, newcomer } = await getSharedCast()
const SESSIONS = '/api/v1/auth/sessions'
const list = (token: string) => api.get(SESSIONS, { token })
const endSession = (id: string, token: string) => api.call('DELETE', `${SESSIONS}/${id}`, { token })
const change = (token: string, current_password: string, new_password: string) =>
  api.post('/api/v1/auth/change-password', { token, json: { current_password, new_password } })
const SESSION_MISSING = 'Session not found'

test("lists the caller's sessions with origin, start and a marker for the current one", async () => {
  const { email, token } = await newcomer()
  await api.post('/api/v1/auth/token', {
    form: { username: email, password: PASSWORD },
    headers: { 'user-agent': 'a phone' },
  })
  const answer = await list(token)
  assert.equal(answer.status, 200)
  const [phone, own] = answer.json
  const nowhere = { place: null, last_place: null, address: '127.0.0.1', last_address: '127.0.0.1' }
  const { id, created_at, expires_at, last_used_at, ...rest } = phone
  assert.deepEqual(rest, { ...nowhere, user_agent: 'a phone', device: null, is_current: false })
  assert.ok(id !== own.id && created_at === last_used_at && expires_at > created_at)
  assert.deepEqual([own.user_agent, own.is_current, own.id], [null, true, sessionIdOf(token)])
  assert.ok(Date.parse(own.expires_at) - Date.parse(own.created_at) > 13 * 86_400_000)
})

test('lists only live sessions of the caller, newest first, in pages', async () => {
  const account = await newcomer()
  const logins = [await logIn(api, account.email), await logIn(api, account.email)]
  await api.post('/api/v1/auth/logout', { token: logins[0]!.json.access_token })
  const idsOf = (answer: Answered): string[] => answer.json.map(({ id }: { id: string }) => id)
  const ids = async () => idsOf(await list(account.token))
  const [first, last] = [sessionIdOf(account.token), sessionIdOf(logins[1]!.json.access_token)]
  assert.deepEqual(await ids(), [last, first])
  const page = await api.get(`${SESSIONS}?limit=1`, { token: account.token })
  assert.deepEqual(idsOf(page), [last])
  const next = /^<(.+)>; rel="next"$/.exec(String(page.headers.link))![1]!
  const second = await api.get(next, { token: account.token })
  assert.deepEqual([idsOf(second), second.headers.link], [[first], undefined])
  await refreshSession(api, account.refresh)
  assert.deepEqual(await ids(), [last, first])
  await query(`update refresh_token set expires_at = now() where session_id = $1`, [last])
  assert.deepEqual(await ids(), [first])
})

test('truncates a long user agent', async () => {
  const { email, token } = await newcomer()
  const form = { username: email, password: PASSWORD }
  await api.post('/api/v1/auth/token', { form, headers: { 'user-agent': 'x'.repeat(2000) } })
  assert.equal((await list(token)).json[0].user_agent, 'x'.repeat(300))
})

test('names the browser and its system, whatever else the user agent contains', async () => {
  const { email, token } = await newcomer()
  const form = { username: email, password: PASSWORD }
  const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36'
  const agents = [
    ['Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0', 'Firefox 132 on Linux'],
    [`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${chrome}`, 'Chrome 131 on macOS'],
    [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${chrome} Edg/131.0.0.0`, 'Microsoft Edge 131 on Windows'],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1',
      'Safari 18 on iOS',
    ],
    ['curl/8.5.0', null],
    ['<script>alert(1)</script>/1.0', null],
    ['Firefox/'.repeat(200), 'Firefox'],
    ['(((((((((((((((((((((((((((((('.repeat(50), null],
  ] as const
  for (const [agent, device] of agents) {
    const answer = await api.post('/api/v1/auth/token', { form, headers: { 'user-agent': agent } })
    assert.equal(answer.status, 200)
    assert.equal((await list(token)).json[0].device, device, agent)
  }
})

test('records the last use with its address, at the latest at shutdown', async () => {
  const { id, email, token } = await newcomer()
  const env = { TRUST_PROXY: 'true', GEO_HEADER: 'X-Client-Place' }
  const edge = await startEdge(url, { env })
  const from = (address: string, place: string) => ({ 'x-forwarded-for': address, 'x-client-place': place })
  const headers = from('10.0.0.1, 203.0.113.9', 'Berlin, DE')
  const signedIn = await edge.post('/api/v1/auth/token', {
    form: { username: email, password: PASSWORD },
    headers,
  })
  const began = signedIn.json.access_token
  const mine = async () =>
    (await list(token)).json.find((session: { id: string }) => session.id === sessionIdOf(began))
  const { address, place, last_address, last_place } = await mine()
  assert.deepEqual(
    [address, place, last_address, last_place],
    ['203.0.113.9', 'Berlin, DE', '203.0.113.9', 'Berlin, DE'],
  )
  await query(`update refresh_token set created_at = now() - interval '1 day'
    where session_id in (select id from session where account_id = ${id})`)
  const before = await mine()
  for (const [address, place] of [
    ['203.0.113.77', 'Paris'],
    ['203.0.113.78', 'Rome'],
  ] as const)
    assert.equal(
      (await edge.get('/api/v1/auth/me', { token: began, headers: from(address, place) })).status,
      200,
    )
  assert.deepEqual(await mine(), before, 'no request writes it')
  await edge.serving.stop()
  const after = await mine()
  assert.deepEqual(
    [after.address, after.place, after.last_address, after.last_place],
    ['203.0.113.9', 'Berlin, DE', '203.0.113.77', 'Paris'],
  )
  assert.ok(Date.parse(after.last_used_at) - Date.parse(before.last_used_at) > 86_000_000)
})

test('ignores address and location headers of the client', async () => {
  const { email, token } = await newcomer()
  const headers = { 'x-forwarded-for': '203.0.113.9', 'x-client-place': 'Berlin', 'cf-ipcountry': 'DE' }
  await api.post('/api/v1/auth/token', { form: { username: email, password: PASSWORD }, headers })
  const [{ address, place }] = (await list(token)).json
  assert.deepEqual([address, place], ['127.0.0.1', null])
  const proxied = await startEdge(url, { env: { TRUST_PROXY: 'true', GEO_HEADER: 'cf-ipcountry' } })
  const odd = [
    [{ 'x-client-place': 'Berlin' }, null],
    [{ 'cf-ipcountry': 'x'.repeat(101) }, null],
    [{ 'cf-ipcountry': '' }, null],
    [{ 'cf-ipcountry': 'T1' }, 'T1'],
  ] as const
  for (const [more, expected] of odd) {
    await proxied.post('/api/v1/auth/token', {
      form: { username: email, password: PASSWORD },
      headers: { 'x-forwarded-for': `10.0.0.1, ${'9'.repeat(200)}`, ...more },
    })
    const [session] = (await list(token)).json
    assert.deepEqual([session.place, session.address], [expected, '9'.repeat(100)])
  }
})

test('ending all other sessions takes effect immediately and keeps the current one', async () => {
  const { id, email, token } = await newcomer()
  const elsewhere = await logIn(api, email)
  const stranger = await newcomer()
  const endOthers = () => api.call('DELETE', SESSIONS, { token })
  for (const answer of [await endOthers(), await endOthers()]) assert.equal(answer.status, 204)
  assertRefused(await getMe(api, elsewhere.json.access_token), 401, TOKEN_INVALID)
  assert.equal((await refreshSession(api, elsewhere.cookie('millrace_refresh'))).status, 401)
  assert.deepEqual(
    (await list(token)).json.map((session: { id: string }) => session.id),
    [sessionIdOf(token)],
  )
  assert.equal((await getMe(api, stranger.token)).status, 200)
  const trail = await api.get(`/api/v1/auth/audit?account_id=${id}&kind=session.ended`, {
    token: admin.token,
  })
  assert.deepEqual(
    trail.json.events.map(({ data }: { data: object }) => data),
    [{ others: 1 }],
  )
})

test('ending a session invalidates its access token immediately and keeps the others', async () => {
  const { email, token } = await newcomer()
  const elsewhere = await logIn(api, email)
  const answer = await endSession(sessionIdOf(elsewhere.json.access_token), token)
  assert.deepEqual([answer.status, answer.text], [204, ''])
  assertRefused(await getMe(api, elsewhere.json.access_token), 401, TOKEN_INVALID)
  assert.equal((await refreshSession(api, elsewhere.cookie('millrace_refresh'))).status, 401)
  assert.equal((await list(token)).json.length, 1)
  assertRefused(await endSession(sessionIdOf(elsewhere.json.access_token), token), 404, SESSION_MISSING)
})

test('the current session can be ended', async () => {
  const { token } = await newcomer()
  assert.equal((await endSession(sessionIdOf(token), token)).status, 204)
  assert.equal((await list(token)).status, 401)
})

test("other accounts', unknown and invalid ids give the same 404 and change nothing", async () => {
  const [one, two] = [await newcomer(), await newcomer()]
  for (const id of [sessionIdOf(two.token), randomUUID(), 'x', '1', `${sessionIdOf(one.token)}0`]) {
    assertRefused(await endSession(id, one.token), 404, SESSION_MISSING, id)
    assertRefused(await endSession(id, admin.token), 404, SESSION_MISSING, id)
  }
  for (const { token } of [one, two]) assert.equal((await getMe(api, token)).status, 200)
})

test('is 401 without a credential', async () => {
  for (const answer of [
    await api.get(SESSIONS),
    await api.call('DELETE', SESSIONS),
    await api.call('DELETE', `${SESSIONS}/${randomUUID()}`),
    await api.post('/api/v1/auth/change-password', { json: {} }),
  ])
    assertRefused(answer, 401, 'Not authenticated')
})

test('a page of another site cannot end sessions or change passwords', async () => {
  const { token } = await newcomer()
  const headers = { cookie: `millrace_session=${token}`, origin: 'https://evil.example' }
  const ended = await api.call('DELETE', `${SESSIONS}/${sessionIdOf(token)}`, { headers })
  const json = { current_password: PASSWORD, new_password: 'another password' }
  const changed = await api.post('/api/v1/auth/change-password', { headers, json })
  assert.deepEqual([ended.status, changed.status], [403, 403])
  assert.equal((await getMe(api, token)).status, 200)
})

test('a password change requires the current one and ends all other sessions', async () => {
  const { email, token, refresh: cookie } = await newcomer()
  const elsewhere = await logIn(api, email)
  const answer = await change(token, PASSWORD, 'another password')
  assert.deepEqual([answer.status, Object.keys(answer.json)], [200, ['detail']])
  assert.equal(answer.headers['cache-control'], 'no-store')
  assert.equal((await logIn(api, email)).status, 401)
  assert.equal((await logIn(api, email, 'another password')).status, 200)
  assert.equal((await getMe(api, elsewhere.json.access_token)).status, 401)
  assert.equal((await refreshSession(api, elsewhere.cookie('millrace_refresh'))).status, 401)
  assert.equal((await getMe(api, token)).status, 200)
  assert.equal((await refreshSession(api, cookie)).status, 200, 'the one that changed it goes on')
})

test('a wrong current password is 400, an invalid new one 422, and nothing changes', async () => {
  const { email, token } = await newcomer()
  assertRefused(
    await change(token, 'wrong password', 'another password'),
    400,
    'The password or the code is incorrect',
  )
  for (const [current, next, field] of [
    [PASSWORD, '1234567', 'new_password'],
    [PASSWORD, 'x'.repeat(1025), 'new_password'],
    ['', 'another password', 'current_password'],
    ['x'.repeat(1025), 'another password', 'current_password'],
  ] as const) {
    const answer = await change(token, current, next)
    assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, ['body', field]])
  }
  assert.equal((await logIn(api, email)).status, 200)
})

test('wrong current passwords lock the account, including its login, with 403', async () => {
  const { email, token } = await newcomer()
  for (let i = 0; i < 5; i++) assert.equal((await change(token, 'a guess', 'another password')).status, 400)
  const locked = 'This account is locked after too many failed logins; try again later'
  assertRefused(await change(token, PASSWORD, 'another password'), 403, locked)
  assertRefused(await logIn(api, email), 403, locked)
  assert.equal((await getMe(api, token)).status, 200, 'who is in stays in')
})

test('one of two concurrent changes from one password succeeds', async () => {
  const { email, token } = await newcomer()
  const wanted = ['first password', 'other password']
  const answers = await Promise.all(wanted.map((next) => change(token, PASSWORD, next)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400])
  const won = wanted[answers.findIndex(({ status }) => status === 200)]!
  assert.equal((await logIn(api, email, won)).status, 200)
})
