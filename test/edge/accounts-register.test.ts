import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { setupTokenOf } from '../../tasks/accounts/tokens.ts'
import { createTestDatabase } from '../database.ts'
import { TEST_KEYS } from '../keys.ts'
import { type Answered, type Api, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'

const REGISTER_PATH = '/api/v1/auth/register'
const { url, query } = await createTestDatabase()
const emptyDatabase = await createTestDatabase()
const [api, real, secure, closed, second] = await Promise.all([
  startEdge(url),
  startEdge(url, { realPasswords: true }),
  startEdge(url, {
    env: {
      PUBLIC_BASE_URL: 'https://mill.example.com',
      PROJECT_NAME: 'mill',
      ACCESS_TOKEN_MINUTES: '5',
      REFRESH_TOKEN_DAYS: '2',
    },
  }),
  startEdge(url, { env: { REGISTRATION_ENABLED: 'false' } }),
  startEdge(emptyDatabase.url),
])
const register = (json: unknown, edge: Api = api) => edge.post(REGISTER_PATH, { json })
const logIn = (email: string, edge: Api = api) =>
  edge.post('/api/v1/auth/token', { form: { username: email, password: PASSWORD } })

function assertRefused(answer: Answered, field: string | null): void {
  assert.equal(answer.status, 422, answer.text)
  assert.deepEqual(answer.json.errors[0].loc, field === null ? ['body'] : ['body', field])
  assert.deepEqual(answer.cookies, [])
}

test('twenty concurrent registrations on an empty database create exactly one admin', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      register({ email: `u${i}@example.com`, password: PASSWORD }, second),
    ),
  )
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array(20).fill(200),
  )
  const roles = answers.map(({ json }) => json.role).sort()
  assert.deepEqual(roles, ['admin', ...Array(19).fill('user')])
  const rows = await emptyDatabase.query(
    `select role, count(*)::int as n from account group by role order by role`,
  )
  assert.deepEqual(rows, [
    { role: 'admin', n: 1 },
    { role: 'user', n: 19 },
  ])
})

test('twenty concurrent registrations of one address create one account', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      register({ email: i % 2 ? 'one@example.com' : 'ONE@example.com', password: PASSWORD }, second),
    ),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(19).fill(400)])
  const [{ n }] = (await emptyDatabase.query(
    `select count(*)::int as n from account where email = 'one@example.com'`,
  )) as [{ n: number }]
  assert.equal(n, 1)
})

test('the first account is an admin, the next a user, with all fields of a User', async () => {
  const first = await register({
    email: 'first@example.com',
    password: PASSWORD,
    full_name: '  Ada Lovelace ',
  })
  assert.equal(first.status, 200)
  const { created_at, id, ...user } = first.json
  assert.deepEqual(user, {
    email: 'first@example.com',
    full_name: 'Ada Lovelace',
    is_active: true,
    is_verified: false,
    role: 'admin',
    last_login: null,
    updated_at: null,
    deletion_at: null,
  })
  assert.ok(Number.isInteger(id))
  assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000, 'in UTC')
  const next = await register({ email: 'second@example.com', password: PASSWORD })
  assert.deepEqual([next.json.role, next.json.full_name], ['user', null])
})

test('a blank name is none', async () => {
  const { json } = await register({ email: 'blank@example.com', password: PASSWORD, full_name: ' ' })
  assert.equal(json.full_name, null)
})

test('a registration cannot request a role', async () => {
  for (const field of ['role', 'is_verified', 'id', 'is_admin']) {
    assertRefused(await register({ email: 'r@example.com', password: PASSWORD, [field]: 'admin' }), null)
  }
})

test('with ADMIN_EMAIL set, the first account to register is a user', async () => {
  const fresh = await createTestDatabase()
  const edge = await startEdge(fresh.url, {
    env: { ADMIN_EMAIL: 'root@example.com', ADMIN_PASSWORD: PASSWORD },
  })
  assert.equal(
    (await register({ email: 'somebody@example.com', password: PASSWORD }, edge)).json.role,
    'user',
  )
})

describe('the setup link', () => {
  const token = setupTokenOf(TEST_KEYS)
  const begin = async (env: Record<string, string> = {}) => {
    const fresh = await createTestDatabase()
    const edge = await startEdge(fresh.url, { env })
    const ask = async (email: string, more: object = {}) => {
      const { status, json } = await register({ email, password: PASSWORD, ...more }, edge)
      return status === 200 ? json.role : [status, json.detail]
    }
    return { ...fresh, edge, ask }
  }
  const PRODUCTION = { NODE_ENV: 'production', DATABASE_URL: 'postgresql://unused' }
  const REFUSED = [
    403,
    'The setup link is invalid, or an admin already exists; sign in, or use the link printed at the next start',
  ]

  test('creates the first admin once, even if registration is closed', async () => {
    const { ask } = await begin({ REGISTRATION_ENABLED: 'false' })
    assert.deepEqual(await ask('early@example.com'), [403, 'Registration is closed'])
    for (const wrong of ['wrong', 'undefined', token.toLowerCase(), `${token}x`])
      assert.deepEqual(await ask('thief@example.com', { setup_token: wrong }), REFUSED)
    assert.deepEqual(await ask('idle@example.com', { setup_token: token, is_active: false }), REFUSED)
    assert.equal(await ask('root@example.com', { setup_token: token }), 'admin')
    assert.deepEqual(await ask('late@example.com', { setup_token: token }), REFUSED)
  })

  test('creates one admin for many concurrent uses', async () => {
    const { ask, query } = await begin()
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => ask(`n${n}@example.com`, { setup_token: token })),
    )
    assert.equal(answers.filter((answer) => answer === 'admin').length, 1)
    assert.equal(answers.filter(([status]) => status === 403).length, 9)
    assert.deepEqual(await query('select count(*)::int as n from account'), [{ n: 1 }])
  })

  test('works when other accounts exist but no admin, as does registration in development', async () => {
    for (const more of [{ setup_token: token }, {}]) {
      const { ask, query } = await begin()
      await query(`insert into account (email, password_hash) values ('demo@example.com', 'x')`)
      assert.equal(await ask('root@example.com', more), 'admin')
      assert.equal(await ask('next@example.com'), 'user')
    }
  })

  for (const [name, env] of [
    ['in production', PRODUCTION],
    ['where other machines reach the edge', { HOST: '0.0.0.0' }],
  ] as const)
    test(`is the only way to register as admin ${name}`, async () => {
      const { ask, edge } = await begin(env)
      const roles = await Promise.all(Array.from({ length: 5 }, (_, n) => ask(`n${n}@example.com`)))
      assert.deepEqual([...new Set(roles)], ['user'])
      assert.equal((await edge.get('/ready')).json.admin, 'missing')
      assert.equal(await ask('root@example.com', { setup_token: token }), 'admin')
      assert.equal((await edge.get('/ready')).json.admin, 'present')
    })
})

test('registration signs in: three cookies with exactly these attributes, and no token in the body', async () => {
  const answer = await register({ email: 'cookies@example.com', password: PASSWORD })
  assert.equal(answer.cookies.length, 3)
  const [session, refresh, device] = answer.cookies
  assert.match(
    session!,
    /^millrace_session=[\w-]+\.[\w-]+\.[\w-]+; Path=\/; Max-Age=900; HttpOnly; SameSite=Lax$/,
  )
  assert.match(
    refresh!,
    /^millrace_refresh=[\w-]{43}; Path=\/api\/v1\/auth; Max-Age=1209600; HttpOnly; SameSite=Strict$/,
  )
  assert.match(
    device!,
    /^millrace_device=[\w-]{22}\.[\w-]{43}; Path=\/api\/v1\/auth; Max-Age=34560000; HttpOnly; SameSite=Strict$/,
  )
  assert.equal(answer.headers['cache-control'], 'no-store')
  assert.doesNotMatch(answer.text, /token|password|eyJ/)
  const me = await api.get('/api/v1/auth/me', {
    headers: { cookie: `millrace_session=${answer.cookie('millrace_session')}` },
  })
  assert.deepEqual([me.status, me.json.email], [200, 'cookies@example.com'])
})

test('over https the cookies are Secure, named after the project, and expire as configured', async () => {
  const answer = await register({ email: 'secure@example.com', password: PASSWORD }, secure)
  const [session, refresh, device] = answer.cookies
  assert.match(session!, /^__Host-mill_session=[^;]+; Path=\/; Max-Age=300; HttpOnly; SameSite=Lax; Secure$/)
  assert.match(
    refresh!,
    /^__Secure-mill_refresh=[^;]+; Path=\/api\/v1\/auth; Max-Age=172800; HttpOnly; SameSite=Strict; Secure$/,
  )
  assert.match(
    device!,
    /^__Secure-mill_device=[^;]+; Path=\/api\/v1\/auth; [^;]+; HttpOnly; SameSite=Strict; Secure$/,
  )
})

test('over https a cookie without its prefix is ignored, so that no other host can plant one', async () => {
  const answer = await register({ email: 'prefixed@example.com', password: PASSWORD }, secure)
  const [session, refresh] = [answer.cookie('mill_session'), answer.cookie('mill_refresh')]
  const statusWith = async (method: string, path: string, cookie: string): Promise<number> =>
    (await secure.call(method, `/api/v1/auth/${path}`, { headers: { cookie } })).status
  assert.equal(await statusWith('GET', 'me', `mill_session=${session}`), 401)
  assert.equal(await statusWith('GET', 'me', `mill_session=x; __Host-mill_session=${session}`), 200)
  assert.equal(await statusWith('POST', 'refresh', `mill_refresh=${refresh}`), 401)
  assert.equal(await statusWith('POST', 'refresh', `__Secure-mill_refresh=${refresh}`), 200)
})

test('the password is stored as argon2id with 19 MiB, two passes and its own salt', async () => {
  await register({ email: 'hash1@example.com', password: PASSWORD }, real)
  await register({ email: 'hash2@example.com', password: PASSWORD }, real)
  const rows = await query(`select password_hash as hash from account where email like 'hash_@example.com'`)
  for (const { hash } of rows)
    assert.match(hash as string, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  assert.notEqual(rows[0]!.hash, rows[1]!.hash)
})

test('only the digest of the refresh token is stored', async () => {
  const answer = await register({ email: 'digest@example.com', password: PASSWORD })
  const token = answer.cookie('millrace_refresh')
  const [row] = await query(
    `select t.*, now() + interval '14 days' - t.expires_at < interval '1 minute' as fresh from refresh_token t
     join session s on s.id = t.session_id where s.account_id = $1`,
    [answer.json.id],
  )
  assert.deepEqual(row!.digest, createHash('sha256').update(token).digest())
  assert.equal(row!.fresh, true)
  const columns = await query(
    `select table_name, column_name from information_schema.columns where table_schema = 'public' and data_type in ('text', 'character varying', 'jsonb')`,
  )
  for (const { table_name, column_name } of columns) {
    const found = await query(
      `select 1 from "${table_name}" where position($1 in "${column_name}"::text) > 0`,
      [token],
    )
    assert.deepEqual(found, [], `${table_name}.${column_name}`)
  }
})

test('an address that is taken is 400, regardless of case and surrounding spaces', async () => {
  await register({ email: 'Taken@Example.com', password: PASSWORD })
  for (const email of ['taken@example.com', 'TAKEN@EXAMPLE.COM', ' taken@example.com\t']) {
    const answer = await register({ email, password: 'another password' })
    assert.deepEqual(
      [answer.status, answer.json],
      [400, { detail: 'An account with this email already exists', code: 'account.email_taken' }],
    )
    assert.deepEqual(answer.cookies, [])
  }
  assert.equal((await logIn('taken@example.com')).status, 200)
})

test('addresses are trimmed and converted to lower case', async () => {
  assert.equal(
    (await register({ email: '  Mixed.Case+Tag@Example.COM ', password: PASSWORD })).json.email,
    'mixed.case+tag@example.com',
  )
})

test('an invalid address is 422', async () => {
  const wrong = [
    '',
    'a',
    'a@',
    '@b.c',
    'a b@example.com',
    'a@b',
    'a@example..com',
    `${'a'.repeat(320)}@example.com`,
    'ä@example.com',
    'a\0@example.com',
    1,
    null,
  ]
  for (const email of wrong) assertRefused(await register({ email, password: PASSWORD }), 'email')
  assertRefused(await register({ password: PASSWORD }), 'email')
})

test('a password has 8 to 1024 characters', async () => {
  for (const password of ['', '1234567', 'x'.repeat(1025), 12345678, null]) {
    assertRefused(await register({ email: 'p@example.com', password }), 'password')
  }
  assertRefused(await register({ email: 'p@example.com' }), 'password')
  assert.equal((await register({ email: 'p8@example.com', password: '1234567x' })).status, 200)
  const longest = 'ü€'.repeat(512)
  assert.equal((await register({ email: 'p1024@example.com', password: longest })).status, 200)
  const found = await api.post('/api/v1/auth/token', {
    form: { username: 'p1024@example.com', password: longest },
  })
  assert.equal(found.status, 200, 'and all of it counts')
  const cut = await api.post('/api/v1/auth/token', {
    form: { username: 'p1024@example.com', password: longest.slice(0, -1) },
  })
  assert.equal(cut.status, 401)
})

test('a name is an optional string of at most 200 characters', async () => {
  assert.equal(
    (await register({ email: 'n1@example.com', password: PASSWORD, full_name: null })).json.full_name,
    null,
  )
  assert.equal(
    (await register({ email: 'n2@example.com', password: PASSWORD, full_name: '名'.repeat(200) })).status,
    200,
  )
  for (const full_name of ['x'.repeat(201), 1, {}, 'nul\0']) {
    assertRefused(await register({ email: 'n3@example.com', password: PASSWORD, full_name }), 'full_name')
  }
})

test('is_active false creates an account that cannot sign in', async () => {
  const answer = await register({ email: 'inactive@example.com', password: PASSWORD, is_active: false })
  assert.deepEqual([answer.status, answer.json.is_active], [200, false])
  const refused = await logIn('inactive@example.com')
  assert.deepEqual(
    [refused.status, refused.json],
    [403, { detail: 'This account is deactivated', code: 'auth.inactive' }],
  )
  assert.deepEqual(refused.cookies, [])
  for (const is_active of ['false', 0, []])
    assertRefused(await register({ email: 'i@example.com', password: PASSWORD, is_active }), 'is_active')
})

test('the cookies of an account that was never active are rejected', async () => {
  const answer = await register({ email: 'inactive2@example.com', password: PASSWORD, is_active: false })
  for (const cookie of answer.cookies.map((value) => value.split(';')[0]!)) {
    assert.equal((await api.get('/api/v1/auth/me', { headers: { cookie } })).status, 401)
    assert.equal((await api.post('/api/v1/auth/refresh', { headers: { cookie } })).status, 401)
  }
})

test('a registration error lists all problems', async () => {
  const answer = await register({ email: 'x', password: 'y', is_active: 'z' })
  assert.deepEqual(
    answer.json.errors.map(({ loc }: { loc: string[] }) => loc[1]),
    ['email', 'password', 'is_active'],
  )
})

test('a closed registration is 403 for any input', async () => {
  const answer = await register({ email: 'late@example.com', password: PASSWORD }, closed)
  assert.deepEqual(
    [answer.status, answer.json],
    [403, { detail: 'Registration is closed', code: 'auth.registration_closed' }],
  )
  assert.deepEqual(await query(`select 1 from account where email = 'late@example.com'`), [])
  assert.equal((await logIn('first@example.com', closed)).status, 200, 'signing in is not registering')
})

test('an account registered as inactive is never the first admin; the next one is', async () => {
  const fresh = await startEdgeAndDatabase()
  const register = (email: string, is_active: boolean) =>
    fresh.api.post(REGISTER_PATH, { json: { email, password: PASSWORD, is_active } })
  assert.equal((await register('asleep@example.com', false)).json.role, 'user')
  assert.equal((await register('awake@example.com', true)).json.role, 'admin')
})
