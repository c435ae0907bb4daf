import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { startProcess } from '../service.ts'
import { assertChallenge } from './accounts-help.ts'
import { type Account, type Answered, PASSWORD, startEdgeAndDatabase } from './harness.ts'

const { api, url, query } = await startEdgeAndDatabase()
await api.register('admin@example.com')
let count = 0
const registerAccount = (): Promise<Account> => api.register(`user${++count}@example.com`)
const logOut = (headers: Record<string, string>) => api.post('/api/v1/auth/logout', { headers })
const refreshSession = (token: string) =>
  api.post('/api/v1/auth/refresh', { headers: { cookie: `millrace_refresh=${token}` } })

function assertCleared(answer: Answered): void {
  assert.deepEqual(answer.cookies, [
    'millrace_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax',
    'millrace_refresh=; Path=/api/v1/auth; Max-Age=0; HttpOnly; SameSite=Strict',
  ])
  assert.equal(answer.headers['cache-control'], 'no-store')
}

test('logging out with the cookies revokes the refresh token and clears both', async () => {
  const { token, refresh: cookie } = await registerAccount()
  const answer = await logOut({ cookie: `millrace_session=${token}; millrace_refresh=${cookie}` })
  assert.equal(answer.status, 200)
  assert.deepEqual(Object.keys(answer.json), ['detail'])
  assertCleared(answer)
  assert.equal((await refreshSession(cookie)).status, 401)
})

test('logging out with a bearer token ends its session even without cookies', async () => {
  const { token, refresh: cookie } = await registerAccount()
  const answer = await logOut({ authorization: `Bearer ${token}` })
  assert.equal(answer.status, 200)
  assertCleared(answer)
  assert.equal((await refreshSession(cookie)).status, 401)
})

test('the access token stays valid until it expires', async () => {
  const { token } = await registerAccount()
  await logOut({ authorization: `Bearer ${token}` })
  assert.equal((await api.get('/api/v1/auth/me', { token })).status, 200)
})

test('logging out ends one session, not the others of the account', async () => {
  const { email, token } = await registerAccount()
  const elsewhere = await api.post('/api/v1/auth/token', { form: { username: email, password: PASSWORD } })
  await logOut({ authorization: `Bearer ${token}` })
  assert.equal((await refreshSession(elsewhere.cookie('millrace_refresh'))).status, 200)
})

test('logging out without a session is 401 and still clears the cookies', async () => {
  for (const headers of [
    {},
    { cookie: 'millrace_session=nonsense' },
    { authorization: 'Bearer nonsense' },
  ] as Record<string, string>[]) {
    const answer = await logOut(headers)
    const isInvalid = Object.keys(headers).length > 0
    assert.equal(answer.status, 401)
    assert.equal(answer.json.code, isInvalid ? 'auth.token_invalid' : 'auth.required')
    assertChallenge(answer)
    assertCleared(answer)
  }
})

test('logging out revokes a refresh token that comes with an expired access token', async () => {
  const { refresh: cookie } = await registerAccount()
  const answer = await logOut({ cookie: `millrace_session=expired; millrace_refresh=${cookie}` })
  assert.equal(answer.status, 401)
  assertCleared(answer)
  assert.equal((await refreshSession(cookie)).status, 401)
})

test('logging out twice is harmless', async () => {
  const { token, refresh: cookie } = await registerAccount()
  for (let i = 0; i < 2; i++)
    assert.equal(
      (await logOut({ cookie: `millrace_session=${token}; millrace_refresh=${cookie}` })).status,
      200,
    )
})

test('no password, hash, token or digest appears in answers or logs, even after errors', async () => {
  const edge = await startProcess('edge', url, { LOG_LEVEL: 'trace' })
  const base = `http://127.0.0.1:${edge.ready.port}/api/v1/auth`
  const secret = 'Tr0ub4dor&3-hunter2'
  const seen: string[] = []
  const post = async (path: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(`${base}${path}`, { method: 'POST', ...init })
    seen.push(await response.text())
    return response
  }
  const json = (body: object): RequestInit => ({
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })
  const registered = await post('/register', json({ email: 'secret@example.com', password: secret }))
  await post('/register', json({ email: 'secret@example.com', password: secret }))
  await post('/register', json({ email: 'bad', password: secret, [secret]: secret }))
  await post('/register', json({ email: 'short@example.com', password: secret.slice(0, 7) }))
  await post('/register', {
    body: `{"password":"${secret}"`,
    headers: { 'content-type': 'application/json' },
  })
  const cookies = registered.headers.getSetCookie().map((cookie) => /=([^;]+)/.exec(cookie)![1]!)
  await post('/refresh', { headers: { cookie: `millrace_refresh=${cookies[1]}` } })
  await post('/token', {
    body: new URLSearchParams({ username: 'secret@example.com', password: `${secret}!` }),
  })
  // Make the statement that carries the hash fail with an unexpected error.
  await query(`alter table account add constraint surprise check (email <> 'surprise@example.com')`)
  const failed = await post('/register', json({ email: 'surprise@example.com', password: secret }))
  assert.equal(failed.status, 500)
  await query('alter table session rename to elsewhere')
  assert.equal(
    (
      await post('/token', {
        body: new URLSearchParams({ username: 'secret@example.com', password: secret }),
      })
    ).status,
    500,
  )
  await query('alter table elsewhere rename to session')
  // Wait for `close`: the process exit can precede the last log lines.
  const isRead = once(edge.process, 'close')
  await edge.kill('SIGTERM')
  await isRead
  const log = edge.log.join('\n')
  assert.match(log, /A request failed/, 'there is a log to look at')
  assert.doesNotMatch(seen.slice(2).join('\n'), /surprise|constraint|relation|select |insert /i)
  for (const text of [log, ...seen.filter((answer) => !answer.includes('its fields are'))]) {
    for (const value of [secret, secret.slice(0, 7), ...cookies, '$argon2id$'])
      assert.equal(text.includes(value), false, `${value} in ${text}`)
  }
})
