import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertRefused } from './accounts-help.ts'
import { createEmail, getSharedEdge, PASSWORD, startEdge } from './harness.ts'

/** Sign-in sets cookies for any caller, so a page of another site must not be able to sign its visitors in. */

const ALLOWED_ORIGIN = 'https://app.example.com'
const { url, query } = await getSharedEdge()
const api = await startEdge(url, { env: { CORS_ORIGINS: ALLOWED_ORIGIN } })
const proxiedEdge = await startEdge(url, { env: { PUBLIC_BASE_URL: 'https://mill.example.com/base' } })
const { email } = await api.register(createEmail())
type Headers = Record<string, string>

const SIGN_IN_REQUESTS = {
  login: (headers: Headers, edge = api) =>
    edge.post('/api/v1/auth/token', { headers, form: { username: email, password: PASSWORD } }),
  registration: (headers: Headers, edge = api) =>
    edge.post('/api/v1/auth/register', {
      headers,
      json: { email: createEmail('new'), password: PASSWORD },
    }),
}

const foreignHeaders: readonly Headers[] = [
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { origin: `http://127.0.0.1:${api.port + 1}` },
  { origin: `http://127.0.0.1.evil.example:${api.port}` },
  { origin: `https://app.example.com.evil.example` },
  { origin: 'http://app.example.com' },
  { 'sec-fetch-site': 'cross-site' },
  { origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' },
  { origin: 'https://evil.example', authorization: 'Bearer x' },
]
const ownHeaders: readonly Headers[] = [
  {},
  { origin: `http://127.0.0.1:${api.port}` },
  { origin: ALLOWED_ORIGIN },
  { origin: ALLOWED_ORIGIN, 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-origin' },
  { 'sec-fetch-site': 'same-site' },
  { 'sec-fetch-site': 'none' },
]

for (const [name, call] of Object.entries(SIGN_IN_REQUESTS)) {
  test(`a ${name} from a page of another site is 403, sets no cookie and stores nothing`, async () => {
    const rows = () =>
      query(`select (select count(*) from account) as accounts, (select count(*) from session) as sessions,
        (select json_agg(f order by subject) from login_failure f) as failures`)
    const before = await rows()
    for (const headers of foreignHeaders) {
      const what = JSON.stringify(headers)
      assertRefused(await call(headers), 403, 'A page on another site may not make this request', what)
    }
    assert.deepEqual(await rows(), before)
  })

  test(`a ${name} from the same origin, an allowed origin or a program sets all cookies`, async () => {
    for (const headers of ownHeaders) {
      const answer = await call(headers)
      assert.equal(answer.status, 200, JSON.stringify(headers))
      assert.equal(answer.cookies.length, 3)
      const allowed = headers.origin === ALLOWED_ORIGIN ? ALLOWED_ORIGIN : undefined
      assert.equal(answer.headers['access-control-allow-origin'], allowed)
    }
  })

  test(`a ${name} behind a proxy is accepted from the public origin only`, async () => {
    assert.equal((await call({ origin: 'https://mill.example.com' }, proxiedEdge)).status, 200)
    assert.equal((await call({ origin: ALLOWED_ORIGIN }, proxiedEdge)).status, 403)
  })
}

test('requests from another site do not count against the rate limits of an address', async () => {
  for (let i = 0; i < 6; i++) {
    const form = { username: email, password: 'a wrong guess' }
    const headers = { origin: 'https://evil.example' }
    assert.equal((await api.post('/api/v1/auth/token', { headers, form })).status, 403)
  }
  assert.equal((await SIGN_IN_REQUESTS.login({})).status, 200)
})

test('routes that use no cookie accept any origin', async () => {
  const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  for (const [path, json, status] of [
    ['verify-email', { token: 'x' }, 400],
    ['email-change/confirm', { token: 'x' }, 400],
    ['password-reset/confirm', { token: 'x', new_password: PASSWORD }, 400],
    ['password-reset/request', { email: createEmail('nobody') }, 200],
  ] as const)
    assert.equal((await api.post(`/api/v1/auth/${path}`, { headers, json })).status, status, path)
})
