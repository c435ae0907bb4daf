import assert from 'node:assert/strict'
import net from 'node:net'
import { test } from 'node:test'
import { insertMailedToken } from '../../sql/accounts/accounts.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { mailedTokenOf } from '../keys.ts'
import { until } from '../until.ts'
import { assertRefused, createCast, sessionIdOf } from './accounts-help.ts'
import { type Account, type Answered, PASSWORD, SECRET, startEdge, startEdgeAndDatabase } from './harness.ts'

/** Audit events must have an actor, kind, account, time and address, and must never contain a secret. */

const { api, url, db, query } = await startEdgeAndDatabase({ env: { LOGIN_MAX_FAILURES: '2' } })
const proxiedEdge = await startEdge(url, { env: { TRUST_PROXY: 'true' } })
const noAuthEdge = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
const { admin, moderator, user, newcomer } = await createCast(api)
const AUDIT_PATH = '/api/v1/auth/audit'

interface Event {
  readonly id: number
  readonly at: string
  readonly kind: string
  readonly actor_id: number | null
  readonly account_id: number | null
  readonly organization_id: number | null
  readonly address: string | null
  readonly request_id: string | null
  readonly data: Readonly<Record<string, unknown>>
}

const readPage = async (search: string): Promise<{ events: Event[]; total: number }> => {
  const answer = await api.get(`${AUDIT_PATH}?${search}`, { token: admin.token })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

/** Returns the events of one request, oldest first. Asserts that each has a time and an address. */
async function readEvents(
  requestId: string,
): Promise<Pick<Event, 'kind' | 'actor_id' | 'account_id' | 'data'>[]> {
  const { events } = await readPage('page_size=200')
  return events
    .filter((event) => event.request_id === requestId)
    .reverse()
    .map(({ at, address, organization_id, kind, actor_id, account_id, data }) => {
      assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000, at)
      assert.deepEqual([address, organization_id], ['127.0.0.1', null])
      return { kind, actor_id, account_id, data }
    })
}

let count = 0
const secrets = new Set<string>([PASSWORD, 'another password', 'a wrong guess', SECRET])
const rememberSecrets = (answer: Answered): Answered => {
  for (const cookie of answer.cookies) {
    const value = /=([^;]*)/.exec(cookie)![1]!
    if (value !== '') secrets.add(value).add(digestOf(value).toString('hex'))
  }
  return answer
}
const rememberTokens = ({ token, refresh }: Account): void => void secrets.add(token).add(refresh)

/** Makes a call with a new request id and returns its events. */
async function recordEvents(
  status: number,
  call: (headers: Record<string, string>) => Promise<Answered>,
): ReturnType<typeof readEvents> {
  const id = `audit-${++count}`
  const answer = rememberSecrets(await call({ 'x-request-id': id }))
  assert.equal(answer.status, status, answer.text)
  return readEvents(id)
}

const post = (path: string, json: object, token?: string) => (headers: Record<string, string>) =>
  api.post(`/api/v1/auth/${path}`, { headers, json, ...(token === undefined ? {} : { token }) })
const act = (method: string, path: string, token: string) => (headers: Record<string, string>) =>
  api.call(method, `/api/v1/auth/${path}`, { headers, token })
const signIn = (username: string, password: string) => (headers: Record<string, string>) =>
  api.post('/api/v1/auth/token', { headers, form: { username, password } })
const createMailedToken = async (kind: 'reset' | 'verify', accountId: number): Promise<string> => {
  const id = uuidv7()
  const token = mailedTokenOf(kind, id)
  await db.one(insertMailedToken(id, accountId, kind, digestOf(token), 60))
  secrets.add(token).add(digestOf(token).toString('hex'))
  return token
}

test('records a registration with the new account as actor', async () => {
  const json = { email: 'told@example.com', password: PASSWORD }
  const [event, ...more] = await recordEvents(200, post('register', json))
  const [row] = await query(`select id from account where email = 'told@example.com'`)
  assert.deepEqual(event, { kind: 'account.registered', actor_id: row!.id, account_id: row!.id, data: {} })
  assert.deepEqual(more, [])
  assert.deepEqual(await recordEvents(400, post('register', json)), [], 'what failed has not happened')
})

test('records sign-ins, failures without an actor, and the lock that follows, also for unknown addresses', async () => {
  const { id, email } = await newcomer()
  const who = { actor_id: id, account_id: id }
  const [signed] = await recordEvents(200, signIn(email, PASSWORD))
  assert.deepEqual(
    { ...signed, data: Object.keys(signed!.data) },
    { kind: 'account.signed_in', ...who, data: ['session'] },
  )
  const unknown = { actor_id: null, account_id: id }
  const failed = (outcome: string) => ({ kind: 'account.sign_in_failed', ...unknown, data: { outcome } })
  assert.deepEqual(await recordEvents(401, signIn(email, 'a wrong guess')), [failed('wrong')])
  assert.deepEqual(await recordEvents(401, signIn(email, 'a wrong guess')), [
    failed('wrong, now locked'),
    { kind: 'account.locked', ...unknown, data: {} },
  ])
  assert.deepEqual(await recordEvents(403, signIn(email, PASSWORD)), [failed('locked')])
  const nobody = {
    kind: 'account.sign_in_failed',
    actor_id: null,
    account_id: null,
    data: { outcome: 'wrong' },
  }
  assert.deepEqual(await recordEvents(401, signIn('nobody@example.com', 'a wrong guess')), [nobody])
})

test('records a sign-out', async () => {
  const { id, token } = await newcomer()
  const data = { session: sessionIdOf(token) }
  const event = { kind: 'account.signed_out', actor_id: id, account_id: id, data }
  assert.deepEqual(await recordEvents(200, act('POST', 'logout', token)), [event])
  assert.deepEqual(await recordEvents(200, act('POST', 'logout', token)), [], 'once')
})

test('records no refresh, but its replay, because the token was stolen', async () => {
  const account = await newcomer()
  rememberTokens(account)
  const { id, token, refresh } = account
  const call = (headers: Record<string, string>) =>
    api.post('/api/v1/auth/refresh', { headers: { ...headers, cookie: `millrace_refresh=${refresh}` } })
  assert.deepEqual(await recordEvents(200, call), [])
  const data = { session: sessionIdOf(token) }
  assert.deepEqual(await recordEvents(401, call), [
    { kind: 'session.replayed', actor_id: null, account_id: id, data },
  ])
})

test('records the end of a session', async () => {
  const { id, token } = await newcomer()
  const data = { session: sessionIdOf(token) }
  const event = { kind: 'session.ended', actor_id: id, account_id: id, data }
  assert.deepEqual(await recordEvents(204, act('DELETE', `sessions/${data.session}`, token)), [event])
})

test('records a password change and a failed one', async () => {
  const { id, token } = await newcomer()
  const who = { actor_id: id, account_id: id }
  const change = (current_password: string) =>
    post('change-password', { current_password, new_password: 'another password' }, token)
  const failed = { kind: 'account.sign_in_failed', ...who, data: { outcome: 'wrong' } }
  assert.deepEqual(await recordEvents(400, change('a wrong guess')), [failed])
  assert.deepEqual(await recordEvents(200, change(PASSWORD)), [
    { kind: 'account.password_changed', ...who, data: {} },
  ])
})

test('records password resets and verifications without revealing whether an account exists', async () => {
  const { id, email } = await newcomer()
  const asked = { kind: 'account.password_reset_requested', actor_id: null, account_id: null, data: {} }
  for (const address of [email, 'nobody@example.com'])
    assert.deepEqual(await recordEvents(200, post('password-reset/request', { email: address })), [asked])
  const who = { actor_id: id, account_id: id, data: {} }
  const reset = { token: await createMailedToken('reset', id), new_password: 'another password' }
  const verified = { kind: 'account.verified', ...who }
  const done = [{ kind: 'account.password_reset', ...who }, verified]
  assert.deepEqual(await recordEvents(200, post('password-reset/confirm', reset)), done)
  assert.deepEqual(await recordEvents(400, post('password-reset/confirm', reset)), [])
  const verify = { token: await createMailedToken('verify', id) }
  assert.deepEqual(await recordEvents(200, post('verify-email', verify)), [verified])
})

test('records changes that admins make to others and users to themselves', async () => {
  const { id, token } = await newcomer()
  const by = (actor_id: number | null, kind: string, data = {}) => [
    { kind: `account.${kind}`, actor_id, account_id: id, data },
  ]
  const patch = (what: string, by = admin.token) => act('PATCH', `users/${id}${what}`, by)
  assert.deepEqual(await recordEvents(200, patch('?full_name=Ada', token)), by(id, 'updated'))
  assert.deepEqual(await recordEvents(200, patch('?full_name=Eve')), by(admin.id, 'updated'))
  const role = by(admin.id, 'role_changed', { from: 'user', to: 'moderator' })
  assert.deepEqual(await recordEvents(200, patch('/role?role=moderator')), role)
  assert.deepEqual(await recordEvents(200, patch('/deactivate')), by(admin.id, 'deactivated'))
  assert.deepEqual(await recordEvents(200, patch('/activate')), by(admin.id, 'activated'))
  assert.deepEqual(await recordEvents(403, patch('/activate', user.token)), [])
  assert.deepEqual(await recordEvents(404, act('PATCH', 'users/4711/activate', admin.token)), [])
  const alone = act('PATCH', `users/${admin.id}/deactivate`, admin.token)
  assert.deepEqual(await recordEvents(409, alone), [])
  const nobody = (headers: Record<string, string>) =>
    noAuthEdge.call('PATCH', `/api/v1/auth/users/${id}/activate`, { headers })
  assert.deepEqual(await recordEvents(200, nobody), by(null, 'activated'), 'without authentication')
  const email = (await api.get(`/api/v1/auth/users/${id}`, { token: admin.token })).json.email
  const gone = by(admin.id, 'deleted', { email })
  assert.deepEqual(await recordEvents(204, act('DELETE', `users/${id}`, admin.token)), gone)
  const { events } = await readPage(`account_id=${id}`)
  assert.ok(events.length >= 7, 'the trail outlives the account')
})

test('only admins read the trail: moderators and users get 403, anonymous callers 401', async () => {
  for (const { token } of [moderator, user])
    assertRefused(await api.get(AUDIT_PATH, { token }), 403, 'This requires the role admin')
  assertRefused(await api.get(AUDIT_PATH), 401, 'Not authenticated')
  assert.equal((await noAuthEdge.get(AUDIT_PATH)).status, 200)
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
    assert.equal((await api.call(method, AUDIT_PATH, { token: admin.token })).status, 405, method)
})

test('returns pages, newest first', async () => {
  const all = await readPage('page_size=200')
  const ids = all.events.map(({ id }) => id)
  assert.deepEqual(
    ids,
    [...ids].sort((a, b) => b - a),
  )
  const first = (await api.get(AUDIT_PATH, { token: admin.token })).json
  const { events, ...rest } = first
  assert.deepEqual(
    [rest, events.length],
    [{ total: all.total, total_is_exact: true, page: 1, page_size: 50, next: null }, Math.min(50, all.total)],
  )
  const parts = await Promise.all([1, 2, 3].map((n) => readPage(`page=${n}&page_size=3`)))
  assert.deepEqual(
    parts.flatMap(({ events }) => events),
    all.events.slice(0, 9),
  )
  const beyond = await readPage('page=51&page_size=200')
  assert.deepEqual([beyond.events, beyond.total], [[], all.total])
})

test('filters by kind and by account, as actor or as target', async () => {
  const { id, token } = await newcomer()
  await api.call('PATCH', `/api/v1/auth/users/${id}?full_name=Ada`, { token: admin.token })
  const kinds = (await readPage(`account_id=${id}`)).events.map(({ kind }) => kind)
  assert.deepEqual(kinds, ['account.updated', 'account.registered'])
  const updated = await readPage(`account_id=${id}&kind=account.updated`)
  assert.deepEqual([updated.total, updated.events[0]!.actor_id], [1, admin.id])
  const acted = await readPage(`account_id=${admin.id}&kind=account.updated`)
  assert.equal(acted.events[0]!.account_id, id)
  assert.equal((await readPage(`organization_id=1&account_id=${id}`)).total, 0)
  assert.equal((await api.get(AUDIT_PATH, { token })).status, 403)
})

test('rejects an invalid page, kind or id with 422', async () => {
  for (const bad of [
    'page=0',
    'page_size=0',
    'page_size=201',
    'kind=nonsense',
    'account_id=x',
    'organization_id=0',
  ]) {
    const answer = await api.get(`${AUDIT_PATH}?${bad}`, { token: admin.token })
    assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, ['query', bad.split('=')[0]]])
  }
})

test('records the client address that a trusted proxy reports', async () => {
  const headers = { 'x-request-id': 'proxied', 'x-forwarded-for': '10.0.0.1, 203.0.113.9' }
  await proxiedEdge.post('/api/v1/auth/token', {
    headers,
    form: { username: user.email, password: PASSWORD },
  })
  await api.post('/api/v1/auth/token', {
    headers: { ...headers, 'x-request-id': 'direct' },
    form: { username: user.email, password: PASSWORD },
  })
  const { events } = await readPage('kind=account.signed_in')
  const address = (id: string) => events.find(({ request_id }) => request_id === id)?.address
  assert.equal(address('proxied'), '203.0.113.9')
  assert.equal(address('direct'), '127.0.0.1', 'and otherwise the word of a client is not believed')
})

test('records the event even if the client disconnects before the answer', async () => {
  const { id, token } = await newcomer()
  const text = `PATCH /api/v1/auth/users/${id}?full_name=Gone HTTP/1.1\r\nhost: localhost\r\nx-request-id: hasty\r\nauthorization: Bearer ${token}\r\n\r\n`
  const socket = net.connect(api.port, '127.0.0.1', () => socket.end(text, () => socket.destroy()))
  const event = await until('the event', async () =>
    (await readPage('page_size=5')).events.find(({ request_id }) => request_id === 'hasty'),
  )
  assert.deepEqual([event.kind, event.actor_id, event.address], ['account.updated', id, '127.0.0.1'])
})

test('the trail contains no secrets', async () => {
  const rows = await query('select audit_event::text as text from audit_event')
  assert.ok(rows.length > 30 && secrets.size > 20)
  for (const { text } of rows) {
    for (const secret of secrets) assert.equal((text as string).includes(secret), false, text as string)
    assert.doesNotMatch(text as string, /argon2|eyJ/)
  }
})
