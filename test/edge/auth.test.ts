import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { mock, test } from 'node:test'
import { type JWTPayload, SignJWT } from 'jose'
import { z } from 'zod'
import { area, route } from '../../edge/pipeline/route.ts'
import { until } from '../until.ts'
import { type Answered, createEmail, getSharedEdge, SECRET, startEdge } from './harness.ts'

const Caller = z.object({ id: z.int(), role: z.string() })
const createShowRoute = (auth: 'user' | 'moderator' | 'admin' | 'public', path: string) =>
  route({
    method: 'get',
    path,
    summary: 'shows the caller',
    auth,
    response: Caller.nullable(),
    handle: ({ caller }) => (caller === null ? null : { id: caller.id, role: caller.role }),
  })
const { areas } = await import('../../edge/routes/index.ts')
const whoArea = area('who', '/who', { auth: 'user' }, [
  createShowRoute('user', ''),
  createShowRoute('moderator', '/moderator'),
  createShowRoute('admin', '/admin'),
  createShowRoute('public', '/public'),
])
const { url, query, admin } = await getSharedEdge()
const api = await startEdge(url, { areas: [...areas, whoArea] })
// Stop the clock: cached accounts then change only through notifications or when a test moves the clock.
const startedAt = Math.floor(performance.now())
const frozenClock = mock.method(performance, 'now', () => startedAt)
const user = await api.register(createEmail())
const notifyChange = (id: number) => query(`select pg_notify('account_changed', $1)`, [String(id)])
const callWithHeader = (authorization: string) => api.get('/who', { headers: { authorization } })

function assertUnauthenticated(answer: Answered, what?: string): void {
  assert.equal(answer.status, 401, what)
  assert.deepEqual(answer.json, { detail: 'Not authenticated', code: 'auth.required' }, what)
  assert.equal(answer.headers['www-authenticate'], 'Bearer realm="Millrace"', what)
}

const TOKENS = {
  invalid: 'The access token is invalid, or its session has ended',
  expired: 'The access token has expired',
}

function assertToken(answer: Answered, state: 'invalid' | 'expired', what?: string): void {
  const detail = TOKENS[state]
  assert.deepEqual([answer.status, answer.json], [401, { detail, code: `auth.token_${state}` }], what)
  const challenge = `Bearer realm="Millrace", error="invalid_token", error_description="${detail}"`
  assert.equal(answer.headers['www-authenticate'], challenge, what)
}

/** Creates a token like those of the edge, with the given changes. */
function createToken(changes: {
  claims?: JWTPayload
  alg?: string
  key?: string
  issuer?: string
  audience?: string
  expires?: number | null
}) {
  const now = Math.floor(Date.now() / 1000)
  const jwt = new SignJWT({
    sid: '01900000-0000-7000-8000-000000000000',
    role: 'admin',
    sub: String(user.id),
    ...changes.claims,
  })
    .setProtectedHeader({ alg: changes.alg ?? 'HS256' })
    .setIssuer(changes.issuer ?? 'millrace')
    .setAudience(changes.audience ?? 'millrace')
    .setIssuedAt()
  if (changes.expires !== null) jwt.setExpirationTime(now + (changes.expires ?? 60))
  return jwt.sign(new TextEncoder().encode(changes.key ?? SECRET))
}

test('a bearer token authenticates its account', async () => {
  const answer = await api.get('/who', { token: user.token })
  assert.deepEqual([answer.status, answer.json], [200, { id: user.id, role: 'user' }])
  assert.equal((await callWithHeader(`bearer ${user.token}`)).status, 200, 'the scheme in any case')
})

test('the session cookie authenticates, too, wherever it is among other cookies', async () => {
  for (const cookie of [
    `millrace_session=${user.token}`,
    `a=b; millrace_session=${user.token}; c=d`,
    `x=millrace_session=1;millrace_session=${user.token}`,
  ]) {
    const answer = await api.get('/who', { headers: { cookie } })
    assert.deepEqual([answer.status, answer.json.id], [200, user.id], cookie)
  }
})

test('a token has the documented claims and is valid for 15 minutes', async () => {
  const [header, payload] = user.token
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()))
  assert.deepEqual(header, { alg: 'HS256' })
  assert.deepEqual(Object.keys(payload).sort(), ['aud', 'exp', 'iat', 'iss', 'jti', 'role', 'sid', 'sub'])
  assert.deepEqual(
    [payload.iss, payload.aud, payload.sub, payload.role],
    ['millrace', 'millrace', String(user.id), 'user'],
  )
  assert.equal(payload.exp - payload.iat, 15 * 60)
  const [session] = await query('select account_id from session where id = $1', [payload.sid])
  assert.equal(session!.account_id, user.id)
})

test('a request without a credential is 401', async () => {
  assertUnauthenticated(await api.get('/who'))
  assertUnauthenticated(await api.get('/who', { headers: { cookie: 'other=1; millrace_session' } }))
  assertUnauthenticated(await api.get('/api/v1/documents'))
})

test('the header takes precedence over the cookie, even if the header is invalid', async () => {
  const cookie = `millrace_session=${admin.token}`
  const both = await api.get('/who', { token: user.token, headers: { cookie } })
  assert.equal(both.json.id, user.id)
  assertToken(await api.get('/who', { headers: { cookie, authorization: 'Bearer nonsense' } }), 'invalid')
})

test('a malformed header is 401', async () => {
  const wrong = [
    'Bearer',
    'Bearer ',
    `Basic ${Buffer.from('a:b').toString('base64')}`,
    user.token,
    `Bearer ${user.token} x`,
    `Bearer "${user.token}"`,
  ]
  for (const value of [
    ...wrong,
    `Token ${user.token}`,
    'Bearer a.b.c',
    'Bearer ..',
    `Bearer ${user.token}x`,
  ]) {
    if (/^Bearer\b/.test(value)) assertToken(await callWithHeader(value), 'invalid', value)
    else assertUnauthenticated(await callWithHeader(value), value)
  }
})

test('an expired token is 401, even if it was cached while valid', async () => {
  assertToken(await callWithHeader(`Bearer ${await createToken({ expires: -120 })}`), 'expired')
  const brief = await createToken({ expires: 60 })
  assert.equal((await callWithHeader(`Bearer ${brief}`)).status, 200)
  const { exp } = JSON.parse(Buffer.from(brief.split('.')[1]!, 'base64url').toString())
  const endsAt = (exp + 60) * 1000
  const { healthCheck } = api.serving.edge
  const now = mock.method(healthCheck, 'now', () => endsAt - 1)
  try {
    assert.equal((await callWithHeader(`Bearer ${brief}`)).status, 200, 'clocks may be a minute apart')
    now.mock.mockImplementation(() => endsAt)
    assertToken(await callWithHeader(`Bearer ${brief}`), 'expired')
  } finally {
    now.mock.restore()
  }
})

test('a token of another secret, issuer, audience or algorithm is 401', async () => {
  assert.equal((await callWithHeader(`Bearer ${await createToken({})}`)).status, 200, 'the forger works')
  const forged = {
    secret: await createToken({ key: `${SECRET}!` }),
    issuer: await createToken({ issuer: 'other' }),
    audience: await createToken({ audience: 'other' }),
    HS384: await createToken({ alg: 'HS384', key: SECRET }),
    HS512: await createToken({ alg: 'HS512', key: SECRET.padEnd(64, '.') }),
  }
  for (const [what, value] of Object.entries(forged))
    assertToken(await callWithHeader(`Bearer ${value}`), 'invalid', what)
})

test('an unsigned or modified token is 401', async () => {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const [header, payload, signature] = user.token.split('.') as [string, string, string]
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const none = `${encode({ alg: 'none' })}.${payload}`
  const hmac = createHmac('sha256', '').update(`${header}.${payload}`).digest('base64url')
  const raised = encode({ ...claims, sub: String(admin.id) })
  const forged = [
    `${none}.`,
    `${none}.${signature}`,
    `${header}.${payload}.${hmac}`,
    `${header}.${raised}.${signature}`,
    `${header}.${payload}.`,
  ]
  for (const value of forged) assertToken(await callWithHeader(`Bearer ${value}`), 'invalid', value)
})

test('a validly signed token with unexpected claims is 401', async () => {
  for (const claims of [
    { sub: 'admin' },
    { sub: '' },
    { sub: '9999999999' },
    { sid: 1 },
    { sid: 'x' },
  ] as JWTPayload[]) {
    assertToken(
      await callWithHeader(`Bearer ${await createToken({ claims })}`),
      'invalid',
      JSON.stringify(claims),
    )
  }
  assertToken(await callWithHeader(`Bearer ${await createToken({ expires: null })}`), 'invalid', 'no end')
})

test('a token of a deleted account is 401', async () => {
  assertToken(
    await callWithHeader(`Bearer ${await createToken({ claims: { sub: '2147483647' } })}`),
    'invalid',
  )
})

test('the role in the database decides, not that in the token', async () => {
  assert.equal(
    (await callWithHeader(`Bearer ${await createToken({ claims: { role: 'admin' } })}`)).json.role,
    'user',
  )
  const refused = await api.get('/who/admin', { token: await createToken({ claims: { role: 'admin' } }) })
  assert.deepEqual(
    [refused.status, refused.json],
    [403, { detail: 'This requires the role admin', code: 'auth.forbidden' }],
  )
  await query(`update account set role = 'moderator' where id = $1`, [user.id])
  await notifyChange(user.id)
  await until(
    'the new role applies',
    async () => (await api.get('/who', { token: user.token })).json.role === 'moderator',
  )
  assert.equal((await api.get('/who/moderator', { token: user.token })).status, 200)
  assert.equal((await api.get('/who/admin', { token: user.token })).status, 403)
  await query(`update account set role = 'user' where id = $1`, [user.id])
  await notifyChange(user.id)
})

test('a role includes the lower ones', async () => {
  await until(
    'the role is user again',
    async () => (await api.get('/who/moderator', { token: user.token })).status === 403,
  )
  const refused = await api.get('/who/moderator', { token: user.token })
  assert.deepEqual(refused.json, {
    detail: 'This requires the role moderator or admin',
    code: 'auth.forbidden',
  })
  for (const path of ['', '/moderator', '/admin'])
    assert.equal((await api.get(`/who${path}`, { token: admin.token })).status, 200)
})

test('a notified deactivation makes the account 401 immediately, and an activation admits it again', async () => {
  const victim = await api.register(createEmail('victim'))
  assert.equal((await api.get('/who', { token: victim.token })).status, 200)
  await query('update account set is_active = false where id = $1', [victim.id])
  await notifyChange(victim.id)
  await until(
    'the token is rejected',
    async () => (await api.get('/who', { token: victim.token })).status === 401,
  )
  assertToken(await api.get('/who', { token: victim.token }), 'invalid')
  assertToken(await api.get('/who', { headers: { cookie: `millrace_session=${victim.token}` } }), 'invalid')
  await query('update account set is_active = true where id = $1', [victim.id])
  await notifyChange(victim.id)
  await until(
    'the token is accepted',
    async () => (await api.get('/who', { token: victim.token })).status === 200,
  )
})

test('a notification about one account leaves others cached', async () => {
  const roleOf = async ({ token }: { token: string }) => (await api.get('/who', { token })).json.role
  const [one, other] = [await api.register(createEmail('one')), await api.register(createEmail('other'))]
  assert.deepEqual([await roleOf(one), await roleOf(other)], ['user', 'user'])
  await query(`update account set role = 'moderator' where id = any($1)`, [[one.id, other.id]])
  await notifyChange(one.id)
  await until('the notified account is reread', async () => (await roleOf(one)) === 'moderator')
  assert.equal(await roleOf(other), 'user')
})

test('a deactivation without a notification applies within five seconds', async () => {
  const victim = await api.register(createEmail('unannounced'))
  assert.equal((await api.get('/who', { token: victim.token })).status, 200)
  await query('update account set is_active = false where id = $1', [victim.id])
  frozenClock.mock.mockImplementation(() => startedAt + 4_999)
  assert.equal((await api.get('/who', { token: victim.token })).status, 200, 'the cache is used')
  frozenClock.mock.mockImplementation(() => startedAt + 5_000)
  assertToken(await api.get('/who', { token: victim.token }), 'invalid')
})

test('a public route recognizes its caller and ignores an invalid credential', async () => {
  assert.equal((await api.get('/who/public', { token: user.token })).json.id, user.id)
  for (const authorization of ['Bearer nonsense', 'Basic x']) {
    const answer = await api.get('/who/public', { headers: { authorization } })
    assert.deepEqual([answer.status, answer.json], [200, null])
  }
  assert.equal((await api.get('/who/public')).json, null)
})

test('permissions are checked before the input', async () => {
  const answer = await api.post('/api/v1/documents/0/extract?force=maybe')
  assertUnauthenticated(answer)
})
