import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runPurge } from '../purge.ts'
import { assertRefused, createCast, getMe, logIn, refreshSession, TOKEN_INVALID } from './accounts-help.ts'
import { type CallOptions, PASSWORD, startEdgeAndDatabase } from './harness.ts'

/** Covers every success and every refusal of each route for user administration. */

const { api, query, db } = await startEdgeAndDatabase()
const { admin, moderator, user, newcomer } = await createCast(api)
const USERS_PATH = '/api/v1/auth/users'
const NOT_FOUND = 'User not found'
const patch = (path: string, token: string, options: CallOptions = {}) =>
  api.call('PATCH', `${USERS_PATH}/${path}`, { token, ...options })
const remove = (id: number | string, token: string) => api.call('DELETE', `${USERS_PATH}/${id}`, { token })
const UNKNOWN_ID = 2_147_483_647

const FIELDS = [
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

test('every route returns 401 without a credential, before it validates the input', async () => {
  const routes = [
    ['GET', USERS_PATH],
    ['GET', `${USERS_PATH}?page=0`],
    ['GET', `${USERS_PATH}/${user.id}`],
    ['GET', `${USERS_PATH}/x`],
    ['PATCH', `${USERS_PATH}/${user.id}`],
    ['PATCH', `${USERS_PATH}/${user.id}?full_name=X`],
    ['PATCH', `${USERS_PATH}/${user.id}/deactivate`],
    ['PATCH', `${USERS_PATH}/${user.id}/activate`],
    ['PATCH', `${USERS_PATH}/${user.id}/role?role=admin`],
    ['DELETE', `${USERS_PATH}/${user.id}`],
    ['DELETE', `${USERS_PATH}/x`],
  ] as const
  for (const [method, path] of routes) {
    assertRefused(await api.call(method, path), 401, 'Not authenticated', `${method} ${path}`)
    const cookie = `millrace_refresh=${admin.refresh}`
    assert.equal((await api.call(method, path, { headers: { cookie } })).status, 401, path)
  }
})

test('admin routes return 403 to non-admins, even for accounts that do not exist', async () => {
  for (const { token } of [user, moderator]) {
    for (const id of [admin.id, user.id, UNKNOWN_ID, 'x']) {
      for (const path of [`${id}/deactivate`, `${id}/activate`, `${id}/role?role=admin`])
        assertRefused(await patch(path, token), 403, 'This requires the role admin', path)
      assertRefused(await remove(id, token), 403, 'This requires the role admin')
    }
  }
  const rows = await query('select role, is_active from account order by id limit 3')
  assert.deepEqual(
    rows.map(({ role, is_active }) => [role, is_active]),
    [
      ['admin', true],
      ['moderator', true],
      ['user', true],
    ],
  )
})

test('moderators and admins list accounts, newest first; users do not', async () => {
  assertRefused(
    await api.get(USERS_PATH, { token: user.token }),
    403,
    'This requires the role moderator or admin',
  )
  for (const { token } of [moderator, admin]) {
    const { status, json } = await api.get(USERS_PATH, { token })
    assert.equal(status, 200)
    const ids = json.map(({ id }: { id: number }) => id)
    assert.deepEqual(
      ids,
      [...ids].sort((a, b) => b - a),
    )
    for (const { id } of [admin, moderator, user]) assert.ok(ids.includes(id))
    for (const account of json) assert.deepEqual(Object.keys(account).sort(), FIELDS)
  }
})

test('pages the list within limits', async () => {
  const all = (await api.get(USERS_PATH, { token: admin.token })).json
  const page = async (n: number) =>
    (await api.get(`${USERS_PATH}?page=${n}&page_size=2`, { token: admin.token })).json
  assert.deepEqual([...(await page(1)), ...(await page(2))], all.slice(0, 4))
  assert.deepEqual(await page(1000), [])
  for (const bad of ['page=0', 'page=-1', 'page=x', 'page_size=0', 'page_size=1001', 'page_size=1.5']) {
    const answer = await api.get(`${USERS_PATH}?${bad}`, { token: admin.token })
    assert.equal(answer.status, 422, bad)
    assert.deepEqual(answer.json.errors[0].loc, ['query', bad.split('=')[0]])
  }
})

test('any user can read any account', async () => {
  for (const { token } of [user, moderator, admin]) {
    const answer = await api.get(`${USERS_PATH}/${admin.id}`, { token })
    assert.deepEqual(
      [answer.status, answer.json.email, answer.json.role],
      [200, 'admin@example.com', 'admin'],
    )
    assert.deepEqual(Object.keys(answer.json).sort(), FIELDS)
    assertRefused(await api.get(`${USERS_PATH}/${UNKNOWN_ID}`, { token }), 404, NOT_FOUND)
  }
  const head = await api.call('HEAD', `${USERS_PATH}/${admin.id}`, { token: user.token })
  assert.deepEqual([head.status, head.text], [200, ''])
})

test('invalid ids return 422', async () => {
  for (const id of ['0', '-1', 'x', '1.5', '2147483648', '99999999999', '%20', '1%2F2']) {
    const answers = [
      await api.get(`${USERS_PATH}/${id}`, { token: admin.token }),
      await patch(`${id}?full_name=X`, admin.token),
      await patch(`${id}/deactivate`, admin.token),
      await patch(`${id}/activate`, admin.token),
      await patch(`${id}/role?role=user`, admin.token),
      await remove(id, admin.token),
    ]
    for (const answer of answers) {
      assert.equal(answer.status, 422, id)
      assert.deepEqual(answer.json.errors[0].loc, ['path', 'user_id'])
    }
  }
})

test('users change their own name, admins any name, moderators only their own', async () => {
  const own = await patch(`${user.id}?full_name=%20Ada%20L%C3%B6velace%20`, user.token)
  assert.deepEqual([own.status, own.json.full_name, own.json.id], [200, 'Ada Lövelace', user.id])
  assert.match(own.json.updated_at, /Z$/)
  assert.equal((await getMe(api, user.token)).json.full_name, 'Ada Lövelace')
  assert.equal((await patch(`${user.id}?full_name=Byron`, admin.token)).json.full_name, 'Byron')
  const refused = 'Only the account owner or an admin may do this'
  assertRefused(await patch(`${user.id}?full_name=X`, moderator.token), 403, refused)
  assertRefused(await patch(`${admin.id}?full_name=X`, user.token), 403, refused)
  assertRefused(await patch(`${UNKNOWN_ID}?full_name=X`, user.token), 403, refused)
  assertRefused(await patch(`${UNKNOWN_ID}?full_name=X`, admin.token), 404, NOT_FOUND)
  assert.equal((await patch(`${moderator.id}?full_name=Own`, moderator.token)).json.full_name, 'Own')
})

test('an empty change is 400, an empty name clears it, and a long name or one with NUL is 422', async () => {
  assertRefused(await patch(String(user.id), user.token), 400, 'No fields to update')
  assert.equal((await patch(`${user.id}?role=admin`, user.token)).status, 422)
  const inBody = await patch(String(user.id), user.token, { json: { full_name: 'X' } })
  assertRefused(inBody, 400, 'No fields to update')
  assert.equal((await patch(`${user.id}?full_name=`, user.token)).json.full_name, null)
  assert.equal((await patch(`${user.id}?full_name=${'x'.repeat(200)}`, user.token)).status, 200)
  for (const name of ['x'.repeat(201), 'a%00b']) {
    const answer = await patch(`${user.id}?full_name=${name}`, user.token)
    assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, ['query', 'full_name']])
  }
})

test('changes a role by query or body, effective immediately', async () => {
  const { id, token } = await newcomer()
  const promoted = await patch(`${id}/role?role=moderator`, admin.token)
  assert.deepEqual([promoted.status, promoted.json.role, promoted.json.id], [200, 'moderator', id])
  assert.equal((await api.get(USERS_PATH, { token })).status, 200)
  assert.equal((await patch(`${id}/role`, admin.token, { json: { role: 'admin' } })).json.role, 'admin')
  assert.equal((await patch(`${user.id}/activate`, token)).status, 200, 'and is a whole admin')
  assert.equal((await patch(`${id}/role?role=user`, admin.token)).json.role, 'user')
  assert.equal((await api.get(USERS_PATH, { token })).status, 403)
  assert.equal((await patch(`${id}/role?role=user`, admin.token)).status, 200, 'as it is')
})

test('an unknown role is 422, a missing one 400, and a missing account 404', async () => {
  for (const role of ['root', 'owner', 'Admin', '']) {
    assert.equal((await patch(`${user.id}/role?role=${role}`, admin.token)).status, 422, role)
    const inBody = await patch(`${user.id}/role`, admin.token, { json: { role } })
    assert.deepEqual([inBody.status, inBody.json.errors[0].loc], [422, ['body', 'role']])
  }
  const more = await patch(`${user.id}/role`, admin.token, { json: { role: 'user', is_active: true } })
  assert.equal(more.status, 422)
  assertRefused(await patch(`${user.id}/role`, admin.token), 400, 'No fields to update')
  assertRefused(await patch(`${UNKNOWN_ID}/role?role=user`, admin.token), 404, NOT_FOUND)
  assert.equal((await getMe(api, user.token)).json.role, 'user')
})

test('deactivation disables tokens, cookies, refreshes and logins', async () => {
  const victim = await newcomer()
  const answer = await patch(`${victim.id}/deactivate`, admin.token)
  assert.deepEqual([answer.status, answer.json.is_active, answer.json.id], [200, false, victim.id])
  assertRefused(await getMe(api, victim.token), 401, TOKEN_INVALID)
  const cookie = `millrace_session=${victim.token}`
  assert.equal((await api.get('/api/v1/auth/me', { headers: { cookie } })).status, 401)
  assert.equal((await refreshSession(api, victim.refresh)).status, 401)
  assertRefused(await logIn(api, victim.email), 403, 'This account is deactivated')
  assert.equal((await logIn(api, victim.email, 'wrong password')).status, 401)
  assert.equal((await patch(`${victim.id}/deactivate`, admin.token)).json.is_active, false, 'again')
  assert.equal((await api.get(`${USERS_PATH}/${victim.id}`, { token: user.token })).json.is_active, false)
  assertRefused(await patch(`${UNKNOWN_ID}/deactivate`, admin.token), 404, NOT_FOUND)
})

test('activation allows new logins, but does not restore old sessions', async () => {
  const victim = await newcomer()
  await patch(`${victim.id}/deactivate`, admin.token)
  const answer = await patch(`${victim.id}/activate`, admin.token)
  assert.deepEqual([answer.status, answer.json.is_active], [200, true])
  const { access_token } = (await logIn(api, victim.email)).json
  assert.equal((await getMe(api, access_token)).status, 200)
  assert.equal((await getMe(api, victim.token)).status, 401)
  assert.equal((await refreshSession(api, victim.refresh)).status, 401)
  assert.equal((await patch(`${victim.id}/activate`, admin.token)).json.is_active, true, 'again')
  assertRefused(await patch(`${UNKNOWN_ID}/activate`, admin.token), 404, NOT_FOUND)
})

test('an account registered as inactive can sign in after activation', async () => {
  const asleep = await api.register('asleep@example.com', { is_active: false })
  assert.equal((await getMe(api, asleep.token)).status, 401)
  await patch(`${asleep.id}/activate`, admin.token)
  assert.equal((await logIn(api, asleep.email)).status, 200)
})

test('deletes an account permanently, with its sessions, tokens, documents and jobs', async () => {
  const victim = await newcomer()
  const document = await api.upload(victim.token, 'a document of theirs')
  assert.equal(document.status, 201)
  const extract = `/api/v1/documents/${document.json.id}/extract?background=true`
  assert.equal((await api.post(extract, { token: victim.token })).status, 202)
  const answer = await remove(victim.id, admin.token)
  assert.deepEqual([answer.status, answer.text], [204, ''])
  assertRefused(await getMe(api, victim.token), 401, TOKEN_INVALID)
  assert.equal((await refreshSession(api, victim.refresh)).status, 401)
  assertRefused(await logIn(api, victim.email), 401, 'Incorrect email or password')
  assertRefused(await api.get(`${USERS_PATH}/${victim.id}`, { token: admin.token }), 404, NOT_FOUND)
  assertRefused(await remove(victim.id, admin.token), 404, NOT_FOUND)
  await runPurge(db)
  for (const table of [
    'account where id',
    'session where account_id',
    'document where owner_id',
    'job where owner_id',
  ])
    assert.deepEqual(await query(`select 1 from ${table} = $1`, [victim.id]), [], table)
  const again = await api.register(victim.email)
  assert.ok(again.id > victim.id, 'its address is free, its id never used again')
  assert.equal((await getMe(api, victim.token)).status, 401)
})

test('an admin can delete itself if another one exists, and is rejected afterwards', async () => {
  const second = await newcomer()
  await patch(`${second.id}/role?role=admin`, admin.token)
  assert.equal((await remove(second.id, second.token)).status, 204)
  assert.equal((await api.get(USERS_PATH, { token: second.token })).status, 401)
})

test('no response contains a password or its hash', async () => {
  const { json } = await api.get(USERS_PATH, { token: admin.token })
  assert.doesNotMatch(JSON.stringify(json), new RegExp(`argon2|password|${PASSWORD}`))
})
