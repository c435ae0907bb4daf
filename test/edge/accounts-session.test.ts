import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { type Account, type Answered, createEmail, getSharedEdge, PASSWORD, startEdge } from './harness.ts'

const { api: other, url, query } = await getSharedEdge()
const api = await startEdge(url, { realPasswords: true })
const UNKNOWN_EMAIL = createEmail('nobody')
const registerAccount = (): Promise<Account> => api.register(createEmail())
const logIn = (username: string, password = PASSWORD) =>
  api.post('/api/v1/auth/token', { form: { username, password } })
const refreshSession = (token: string, edge = api) =>
  edge.post('/api/v1/auth/refresh', { headers: { cookie: `millrace_refresh=${token}` } })
const digest = (token: string) => createHash('sha256').update(token).digest()

function assertRefreshRejected(answer: Answered): void {
  assert.equal(answer.status, 401)
  assert.deepEqual(answer.json, {
    detail: 'The refresh token is missing, expired or revoked',
    code: 'auth.refresh',
  })
  assert.equal(answer.headers['www-authenticate'], 'Bearer realm="Millrace"')
  assert.equal(answer.cookies.length, 0)
}

test('a login returns a bearer token and sets both cookies', async () => {
  const { email, id } = await registerAccount()
  const answer = await logIn(email)
  assert.equal(answer.status, 200)
  assert.deepEqual(Object.keys(answer.json).sort(), ['access_token', 'token_type'])
  assert.equal(answer.json.token_type, 'bearer')
  assert.match(answer.cookies[0]!, /^millrace_session=[^;]+; Path=\/; Max-Age=900; HttpOnly; SameSite=Lax$/)
  assert.match(
    answer.cookies[1]!,
    /^millrace_refresh=[\w-]{43}; Path=\/api\/v1\/auth; Max-Age=1209600; HttpOnly; SameSite=Strict$/,
  )
  assert.equal(answer.cookie('millrace_session'), answer.json.access_token)
  assert.equal(answer.headers['cache-control'], 'no-store')
  assert.equal((await api.get('/api/v1/auth/me', { token: answer.json.access_token })).json.id, id)
})

test('a login ignores the case of the address and records its time', async () => {
  const { email } = await registerAccount()
  const { json } = await logIn(` ${email.toUpperCase()} `)
  const me = await api.get('/api/v1/auth/me', { token: json.access_token })
  assert.ok(Math.abs(Date.parse(me.json.last_login) - Date.now()) < 60_000)
})

test('a wrong password and an unknown address give the same 401', async () => {
  const { email } = await registerAccount()
  const answers = [
    await logIn(email, 'wrong password'),
    await logIn(UNKNOWN_EMAIL),
    await logIn(email, PASSWORD.toUpperCase()),
  ]
  for (const answer of answers) {
    assert.deepEqual(
      [answer.status, answer.json],
      [401, { detail: 'Incorrect email or password', code: 'auth.credentials' }],
    )
    assert.equal(answer.headers['www-authenticate'], 'Bearer realm="Millrace"')
    assert.deepEqual(answer.cookies, [])
  }
})

test('an unknown address costs as much CPU time as a wrong password', async () => {
  const { email } = await registerAccount()
  const runs: [number[], number[]] = [[], []]
  // Measure the CPU time of this process and its threads, which excludes other processes of the machine.
  for (let i = 0; i < 32; i++) {
    const before = process.cpuUsage()
    await logIn(i % 2 ? UNKNOWN_EMAIL : email, 'wrong password')
    const { user, system } = process.cpuUsage(before)
    // Linux measures only the sum exactly and samples the split between user and system time.
    runs[i % 2]!.push((user + system) / 1000)
  }
  // Other work of this process only adds time. Without the hash, a login takes less than a quarter of it.
  const [known, unknown] = runs.map((times) => Math.min(...times)) as [number, number]
  assert.ok(unknown > known / 3 && unknown < known * 3, `${known} ms and ${unknown} ms`)
})

test('a deactivated account gets that reason only with the right password', async () => {
  const { email, id } = await registerAccount()
  await query('update account set is_active = false where id = $1', [id])
  assert.equal((await logIn(email, 'wrong password')).status, 401)
  const answer = await logIn(email)
  assert.deepEqual(
    [answer.status, answer.json],
    [403, { detail: 'This account is deactivated', code: 'auth.inactive' }],
  )
})

test('a login accepts only form data', async () => {
  const { email } = await registerAccount()
  assert.equal(
    (await api.post('/api/v1/auth/token', { json: { username: email, password: PASSWORD } })).status,
    415,
  )
  const query = new URLSearchParams({ username: email, password: PASSWORD })
  assert.equal((await api.post(`/api/v1/auth/token?${query}`)).status, 422)
  assert.equal((await api.get('/api/v1/auth/token')).status, 405)
  const missing = await api.post('/api/v1/auth/token', { form: { username: email } })
  assert.deepEqual([missing.status, missing.json.errors[0].loc], [422, ['body', 'password']])
  const oauth = { grant_type: 'password', scope: '', client_id: 'x', username: email, password: PASSWORD }
  assert.equal(
    (await api.post('/api/v1/auth/token', { form: oauth })).status,
    200,
    'with the other fields of OAuth',
  )
})

test('/me returns the account of the caller', async () => {
  const { email, id, token } = await registerAccount()
  const answer = await api.get('/api/v1/auth/me', { token })
  assert.equal(answer.status, 200)
  const fields = [
    'created_at',
    'deletion_at',
    'email',
    'full_name',
    'id',
    'is_active',
    'is_verified',
    'last_login',
    'role',
    'updated_at',
  ]
  assert.deepEqual(Object.keys(answer.json).sort(), fields)
  assert.deepEqual([answer.json.id, answer.json.email], [id, email])
  assert.equal((await api.get('/api/v1/auth/me')).status, 401)
})

test('a refresh rotates the tokens: new ones in both cookies, the same session, the old one used', async () => {
  const account = await registerAccount()
  const answer = await refreshSession(account.refresh)
  assert.equal(answer.status, 200)
  assert.deepEqual(
    [Object.keys(answer.json).sort(), answer.json.token_type],
    [['access_token', 'token_type'], 'bearer'],
  )
  assert.equal(answer.headers['cache-control'], 'no-store')
  const next = answer.cookie('millrace_refresh')
  assert.notEqual(next, account.refresh)
  assert.equal(answer.cookie('millrace_session'), answer.json.access_token)
  assert.equal((await api.get('/api/v1/auth/me', { token: answer.json.access_token })).json.id, account.id)
  const rows = await query(
    `select digest, session_id, rotated_at is not null as used from refresh_token t join session s on s.id = t.session_id
     where s.account_id = $1 order by t.created_at`,
    [account.id],
  )
  assert.deepEqual(
    rows.map(({ used }) => used),
    [true, false],
  )
  assert.equal(rows[0]!.session_id, rows[1]!.session_id)
  assert.deepEqual(rows[1]!.digest, digest(next))
})

test('a refreshed token has the full lifetime of a new one', async () => {
  const account = await registerAccount()
  await query(`update refresh_token set expires_at = now() + interval '1 minute' where digest = $1`, [
    digest(account.refresh),
  ])
  const next = (await refreshSession(account.refresh)).cookie('millrace_refresh')
  const [row] = await query(
    `select expires_at > now() + interval '13 days 23 hours' as slid from refresh_token where digest = $1`,
    [digest(next)],
  )
  assert.equal(row!.slid, true)
})

test('a replay revokes the whole token family, including later tokens', async () => {
  const account = await registerAccount()
  const second = (await refreshSession(account.refresh)).cookie('millrace_refresh')
  const third = (await refreshSession(second)).cookie('millrace_refresh')
  assertRefreshRejected(await refreshSession(account.refresh))
  for (const token of [third, second, account.refresh]) assertRefreshRejected(await refreshSession(token))
})

test('a replay does not touch other sessions of the account', async () => {
  const account = await registerAccount()
  const elsewhere = (await logIn(account.email)).cookie('millrace_refresh')
  await refreshSession(account.refresh)
  assertRefreshRejected(await refreshSession(account.refresh))
  assert.equal((await refreshSession(elsewhere)).status, 200)
})

test('at most one of many concurrent refreshes of one token succeeds, across two processes', async () => {
  for (let round = 0; round < 3; round++) {
    const account = await registerAccount()
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => refreshSession(account.refresh, i % 2 ? api : other)),
    )
    const won = answers.filter(({ status }) => status === 200)
    assert.ok(won.length <= 1, `${won.length} won`)
    assert.deepEqual(
      answers.filter(({ status }) => status !== 200 && status !== 401),
      [],
    )
    const [row] = await query(
      `select count(*)::int as current from refresh_token t join session s on s.id = t.session_id
       where s.account_id = $1 and t.rotated_at is null and s.revoked_at is null`,
      [account.id],
    )
    assert.equal(row!.current, 0, 'and the family is revoked')
  }
})

test('a refresh with a missing, unknown or malformed cookie is 401', async () => {
  assertRefreshRejected(await api.post('/api/v1/auth/refresh'))
  for (const token of ['', 'x', 'A'.repeat(43), '%00', 'a'.repeat(2000)])
    assertRefreshRejected(await refreshSession(token))
})

test('the refresh token is accepted from its cookie only', async () => {
  const account = await registerAccount()
  assertRefreshRejected(await api.post('/api/v1/auth/refresh', { token: account.refresh }))
  assertRefreshRejected(await api.post('/api/v1/auth/refresh', { token: account.token }))
  assertRefreshRejected(await api.post('/api/v1/auth/refresh', { json: { refresh_token: account.refresh } }))
  assert.equal((await refreshSession(account.refresh)).status, 200, 'and none of that used it up')
})

test('an expired refresh token is 401 and stays unchanged', async () => {
  const account = await registerAccount()
  await query(`update refresh_token set expires_at = now() - interval '1 second' where digest = $1`, [
    digest(account.refresh),
  ])
  assertRefreshRejected(await refreshSession(account.refresh))
})

test('a deactivated account cannot refresh', async () => {
  const account = await registerAccount()
  await query('update account set is_active = false where id = $1', [account.id])
  assertRefreshRejected(await refreshSession(account.refresh))
})

test('a new token has the current role of the account', async () => {
  const account = await registerAccount()
  await query(`update account set role = 'moderator' where id = $1`, [account.id])
  const { access_token } = (await refreshSession(account.refresh)).json
  assert.equal(JSON.parse(Buffer.from(access_token.split('.')[1], 'base64url').toString()).role, 'moderator')
})

test('with the setting a session has an absolute expiry, which its access tokens do not exceed', async () => {
  const limited = await startEdge(url, { env: { SESSION_MAX_DAYS: '1', ACCESS_TOKEN_MINUTES: '60' } })
  const expiryOf = (token: string): number =>
    JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()).exp
  const account = await limited.register(createEmail())
  const age = (hours: number) =>
    query(
      `update session set created_at = created_at - make_interval(hours => $2), last_used_at = now() where account_id = $1`,
      [account.id, hours],
    )
  const exchange = (token: string) =>
    limited.post('/api/v1/auth/refresh', { headers: { cookie: `millrace_refresh=${token}` } })
  const [{ until }] = (await query(
    `select extract(epoch from expires_at - now()) as until from refresh_token
    where session_id in (select id from session where account_id = $1)`,
    [account.id],
  )) as [{ until: string }]
  assert.ok(Number(until) <= 86_400, 'no refresh token is for later')
  await age(22)
  const first = await exchange(account.refresh)
  assert.ok(expiryOf(first.json.access_token) - Date.now() / 1000 > 3000)
  await query(`update session set created_at = created_at - interval '110 min' where account_id = $1`, [
    account.id,
  ])
  const second = await exchange(first.cookie('millrace_refresh'))
  assert.equal(second.status, 200)
  assert.ok(expiryOf(second.json.access_token) - Date.now() / 1000 <= 601)
  await age(1)
  assertRefreshRejected(await exchange(second.cookie('millrace_refresh')))
  const [{ live }] = (await query('select revoked_at is null as live from session where account_id = $1', [
    account.id,
  ])) as [{ live: boolean }]
  assert.equal(live, true, 'it was refused for its age alone')
})
