import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runAdmin } from '../../edge/admin/commands.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { TEST_KEYS } from '../keys.ts'
import { Authenticator } from '../passkeys.ts'
import { until } from '../until.ts'
import { assertRefused, logIn } from './accounts-help.ts'
import { type Answered, type Api, createEmail, startEdge, startEdgeAndDatabase } from './harness.ts'
import { enableTotp, signInWith } from './totp-help.ts'

/** Tests `REQUIRE_ADMIN_TOTP`, which denies admin rights to admins without a second factor. */

const ORIGIN = 'http://localhost:8000'
const env = { REQUIRE_ADMIN_TOTP: 'true', PUBLIC_BASE_URL: ORIGIN, OPEN_AREAS: '' }
const { api, db, url, query } = await startEdgeAndDatabase({ env })
const otherEdge = await startEdge(url, { env })
const relaxedEdge = await startEdge(url)
const PASSKEYS = '/api/v1/auth/passkeys'
const REFUSAL_DETAIL = 'Admins need a second factor: set up one-time codes or sign in with a passkey'

const listUsers = (token: string, edge: Api = api) => edge.get('/api/v1/auth/users', { token })
function assertFactorRequired(answer: Answered): void {
  assert.deepEqual([answer.status, answer.json], [403, { detail: REFUSAL_DETAIL, code: 'auth.admin_factor' }])
}
async function createAdmin() {
  const account = await api.register(createEmail('admin'))
  await query(`update account set role = 'admin' where id = $1`, [account.id])
  const { access_token: token } = (await logIn(api, account.email)).json
  return { ...account, token }
}

test('an admin without a second factor acts as a user until one is set up', async () => {
  const admin = await createAdmin()
  const someone = await api.register(createEmail())
  for (const edge of [api, otherEdge]) assertFactorRequired(await listUsers(admin.token, edge))
  for (const answer of [
    await api.call('PATCH', `/api/v1/auth/users/${someone.id}/role?role=admin`, { token: admin.token }),
    await api.call('DELETE', `/api/v1/auth/users/${someone.id}`, { token: admin.token }),
    await api.post('/api/v1/blog/tags', { token: admin.token, json: { name: 'a tag' } }),
  ])
    assertFactorRequired(answer)
  const rename = await api.call('PATCH', `/api/v1/auth/users/${someone.id}?full_name=Ann`, {
    token: admin.token,
  })
  assertRefused(rename, 403, 'Only the account owner or an admin may do this')
  const me = await api.get('/api/v1/auth/me', { token: admin.token })
  assert.deepEqual([me.status, me.json.role], [200, 'admin'])
  await enableTotp(api, admin)
  assert.equal((await listUsers(admin.token)).status, 200)
  await until(
    'the other edge sees the change',
    async () => (await listUsers(admin.token, otherEdge)).status === 200,
  )
})

test('disabling one-time codes removes the admin rights', async () => {
  const admin = await createAdmin()
  const { recoveryCodes } = await enableTotp(api, admin)
  const { access_token: token } = (await signInWith(api, admin.email, { recovery_code: recoveryCodes[0]! }))
    .json
  assert.equal((await listUsers(token)).status, 200)
  const settings = { ...parseSettings({ NODE_ENV: 'test' }), keys: TEST_KEYS }
  await runAdmin(['disable-totp', admin.email], db, settings)
  await until('the edge sees the change', async () => (await listUsers(token)).status === 403)
  assertFactorRequired(await listUsers(token))
})

test('a passkey gives admin rights only to sessions that signed in with it', async () => {
  const admin = await createAdmin()
  const device = new Authenticator(ORIGIN)
  const begun = await api.post(`${PASSKEYS}/options`, { token: admin.token, json: {} })
  const json = { credential: device.create(begun.json) }
  assert.equal((await api.post(PASSKEYS, { token: admin.token, json })).status, 201)
  assertFactorRequired(await listUsers(admin.token))
  const options = (await api.post(`${PASSKEYS}/sign-in/options`)).json
  const signedIn = await api.post(`${PASSKEYS}/sign-in`, { json: { credential: device.get(options) } })
  assert.equal(signedIn.status, 200)
  assert.equal((await listUsers(signedIn.json.access_token)).status, 200)
  const refreshed = await api.post('/api/v1/auth/refresh', {
    headers: { cookie: `millrace_refresh=${signedIn.cookie('millrace_refresh')}` },
  })
  assert.equal((await listUsers(refreshed.json.access_token)).status, 200)
  assertFactorRequired(await listUsers((await logIn(api, admin.email)).json.access_token))
})

test('API keys of an admin have admin rights only with one-time codes', async () => {
  const admin = await createAdmin()
  const made = await api.post('/api/v1/auth/keys', {
    token: admin.token,
    json: { name: 'a key', scopes: ['*:write'] },
  })
  assert.equal(made.status, 201, made.text)
  assertFactorRequired(await listUsers(made.json.key))
  await enableTotp(api, admin)
  assert.equal((await listUsers(made.json.key)).status, 200)
})

test('other accounts need no second factor, and admins need none without the setting', async () => {
  const user = await api.register(createEmail())
  assertRefused(await listUsers(user.token), 403, 'This requires the role moderator or admin')
  const admin = await createAdmin()
  assert.equal((await listUsers(admin.token, relaxedEdge)).status, 200)
})
