import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { assertRefused, createCast, getMe, logIn, refreshSession, sessionIdOf } from './accounts-help.ts'
import { type Api, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'

/** Tests account routes at each AUTH_LEVEL. `basic` does not change them, and `none` makes every caller an admin. */

const { api: rbac, url, query } = await startEdgeAndDatabase()
const basicEdge = await startEdge(url, { env: { AUTH_LEVEL: 'basic' } })
const noAuthEdge = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
const { admin, moderator, user, newcomer } = await createCast(rbac)
const AUTH = '/api/v1/auth'
const UNKNOWN_ID = 2_147_483_647
const INVALID_TOKEN_BODY = { token: 'x' }

/** Method, path, body, then the status without a credential, as user, as moderator, and as admin. */
const routes: readonly [string, string, object | null, number, number, number, number][] = [
  ['GET', '/me', null, 401, 200, 200, 200],
  ['GET', '/sessions', null, 401, 200, 200, 200],
  ['DELETE', `/sessions/${randomUUID()}`, null, 401, 404, 404, 404],
  ['POST', '/change-password', {}, 401, 422, 422, 422],
  ['DELETE', '/me', { password: 'x' }, 401, 400, 400, 400],
  ['POST', '/me/restore', null, 401, 200, 200, 200],
  ['POST', '/me/email', {}, 401, 422, 422, 422],
  ['GET', '/me/email', null, 401, 404, 404, 404],
  ['DELETE', '/me/email', null, 401, 404, 404, 404],
  ['POST', '/email-change/confirm', INVALID_TOKEN_BODY, 400, 400, 400, 400],
  ['POST', '/email-change/refuse', INVALID_TOKEN_BODY, 400, 400, 400, 400],
  ['POST', '/resend-verification', null, 401, 200, 200, 200],
  ['POST', '/accept-invite', INVALID_TOKEN_BODY, 401, 400, 400, 400],
  ['GET', '/users', null, 401, 403, 200, 200],
  ['GET', `/users/${admin.id}`, null, 401, 200, 200, 200],
  ['GET', `/users/${UNKNOWN_ID}`, null, 401, 404, 404, 404],
  ['PATCH', `/users/${UNKNOWN_ID}?full_name=X`, null, 401, 403, 403, 404],
  ['PATCH', `/users/${UNKNOWN_ID}/activate`, null, 401, 403, 403, 404],
  ['PATCH', `/users/${UNKNOWN_ID}/deactivate`, null, 401, 403, 403, 404],
  ['PATCH', `/users/${UNKNOWN_ID}/role?role=user`, null, 401, 403, 403, 404],
  ['DELETE', `/users/${UNKNOWN_ID}`, null, 401, 403, 403, 404],
  ['GET', '/audit', null, 401, 403, 403, 200],
  ['POST', '/password-reset/request', { email: 'nobody@example.com' }, 200, 200, 200, 200],
  ['POST', '/password-reset/confirm', { ...INVALID_TOKEN_BODY, new_password: PASSWORD }, 400, 400, 400, 400],
  ['POST', '/verify-email', INVALID_TOKEN_BODY, 400, 400, 400, 400],
  ['POST', '/refresh', null, 401, 401, 401, 401],
]

for (const [name, edge] of [
  ['rbac', rbac],
  ['basic', basicEdge],
] as const) {
  test(`${name}: each route admits the expected callers`, async () => {
    for (const [method, path, json, ...statuses] of routes) {
      const body = json === null ? {} : { json }
      const callers = [{}, { token: user.token }, { token: moderator.token }, { token: admin.token }]
      for (const [i, caller] of callers.entries()) {
        const answer = await edge.call(method, `${AUTH}${path}`, { ...body, ...caller })
        assert.equal(answer.status, statuses[i], `${method} ${path} of caller ${i}: ${answer.text}`)
        assert.equal(typeof answer.json === 'object', true)
      }
    }
  })

  test(`${name}: an account works from registration to deletion`, async () => {
    const email = `${name}@example.com`
    const account = await edge.register(email)
    const signed = await logIn(edge, email)
    assert.equal((await getMe(edge, signed.json.access_token)).json.id, account.id)
    const rotated = await refreshSession(edge, signed.cookie('millrace_refresh'))
    assert.equal(rotated.status, 200)
    const { access_token: token } = rotated.json
    const at = `${AUTH}/users/${account.id}`
    assert.equal((await edge.call('PATCH', `${at}?full_name=X`, { token })).json.full_name, 'X')
    const act = (method: string, path: string) => edge.call(method, path, { token: admin.token })
    assert.equal((await act('PATCH', `${at}/role?role=moderator`)).json.role, 'moderator')
    assert.equal((await edge.get(`${AUTH}/users`, { token })).status, 200)
    assert.equal((await act('PATCH', `${at}/deactivate`)).json.is_active, false)
    assert.equal((await logIn(edge, email)).status, 403)
    assert.equal((await act('PATCH', `${at}/activate`)).json.is_active, true)
    assert.equal((await logIn(edge, email)).status, 200)
    assert.equal((await act('DELETE', at)).status, 204)
    assert.equal((await logIn(edge, email)).status, 401)
  })
}

/** No credential, a valid one, an invalid one, and a page of another site. All must get the same answers. */
const callers = [
  {},
  { token: user.token },
  { token: 'nonsense' },
  { headers: { authorization: 'Basic x' } },
  { headers: { cookie: 'millrace_session=nonsense' } },
]
const assertForEachCaller = async (
  method: string,
  path: string,
  expected: number,
  json?: object,
): Promise<void> => {
  for (const caller of callers) {
    const answer = await noAuthEdge.call(method, `${AUTH}${path}`, { ...caller, ...(json && { json }) })
    assert.equal(answer.status, expected, `${method} ${path} ${JSON.stringify(caller)}: ${answer.text}`)
  }
}

test('none: every caller may read everything', async () => {
  for (const caller of callers) {
    const answer = await noAuthEdge.get(`${AUTH}/me`, caller)
    assert.deepEqual([answer.json.id, answer.json.role, answer.json.is_active], [0, 'admin', true])
  }
  await assertForEachCaller('GET', '/users', 200)
  await assertForEachCaller('GET', `/users/${admin.id}`, 200)
  await assertForEachCaller('GET', `/users/${UNKNOWN_ID}`, 404)
  await assertForEachCaller('GET', '/audit', 200)
})

test('none: every caller may administrate', async () => {
  const { id, email } = await newcomer()
  await assertForEachCaller('PATCH', `/users/${id}?full_name=X`, 200)
  await assertForEachCaller('PATCH', `/users/${id}`, 400)
  await assertForEachCaller('PATCH', `/users/${id}/role?role=moderator`, 200)
  await assertForEachCaller('PATCH', `/users/${id}/deactivate`, 200)
  assert.equal((await logIn(noAuthEdge, email)).status, 403, 'a deactivated account cannot sign in')
  await assertForEachCaller('PATCH', `/users/${id}/activate`, 200)
  await assertForEachCaller('PATCH', `/users/${UNKNOWN_ID}/activate`, 404)
  await assertForEachCaller('PATCH', `/users/${admin.id}/deactivate`, 409)
  assert.equal((await noAuthEdge.call('DELETE', `${AUTH}/users/${id}`)).status, 204)
  await assertForEachCaller('DELETE', `/users/${id}`, 404)
  await assertForEachCaller('PATCH', '/users/0?full_name=X', 422)
})

test('none: a caller without an account has no session, password or address', async () => {
  for (const caller of callers) assert.deepEqual((await noAuthEdge.get(`${AUTH}/sessions`, caller)).json, [])
  await assertForEachCaller('DELETE', `/sessions/${sessionIdOf(user.token)}`, 404)
  await assertForEachCaller('POST', '/change-password', 409, {
    current_password: PASSWORD,
    new_password: 'another password',
  })
  const before = await query('select count(*) from job')
  await assertForEachCaller('POST', '/resend-verification', 200)
  assert.deepEqual(await query('select count(*) from job'), before)
  await assertForEachCaller('POST', '/accept-invite', 400, INVALID_TOKEN_BODY)
  assert.equal((await getMe(rbac, user.token)).status, 200)
})

test('none: registration, sign-in and sign-out still work', async () => {
  const account = await noAuthEdge.register('early@example.com')
  assert.equal(account.role, 'user')
  const signed = await logIn(noAuthEdge, account.email)
  assert.equal((await logIn(noAuthEdge, account.email, 'wrong password')).status, 401)
  assert.equal((await getMe(rbac, signed.json.access_token)).json.id, account.id)
  const cookie = signed.cookie('millrace_refresh')
  const next = await refreshSession(noAuthEdge, cookie)
  assert.equal(next.status, 200)
  const headers = { cookie: `millrace_refresh=${next.cookie('millrace_refresh')}` }
  assert.equal((await noAuthEdge.post(`${AUTH}/logout`, { headers })).status, 200)
  assert.equal((await refreshSession(noAuthEdge, next.cookie('millrace_refresh'))).status, 401)
  await assertForEachCaller('POST', '/logout', 200)
  assert.equal((await getMe(rbac, user.token)).status, 200, 'but ends no session that it was not shown')
})

test('at every level sign-in from another site is rejected', async () => {
  for (const edge of [rbac, basicEdge, noAuthEdge] as readonly Api[]) {
    const headers = { origin: 'https://evil.example' }
    const form = { username: user.email, password: PASSWORD }
    assertRefused(
      await edge.post(`${AUTH}/token`, { headers, form }),
      403,
      'A page on another site may not make this request',
    )
  }
})
