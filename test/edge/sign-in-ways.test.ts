import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getSharedCast, logIn } from './accounts-help.ts'
import { createKey } from './api-keys-help.ts'
import { startEdge } from './harness.ts'

/** Tests the route by which a page finds the account and the ways to sign in. */

const WAYS = '/api/v1/auth/sign-in'
const { api, newcomer, url } = await getSharedCast()
const strict = await startEdge(url, {
  env: {
    ...{
      REGISTRATION_ENABLED: 'false',
      MAGIC_LINK_MINUTES: '0',
      PUBLIC_BASE_URL: 'https://mill.example.com',
    },
    ...{ PASSWORD_MIN_LENGTH: '12', PASSWORD_MIN_CLASSES: '3', PASSWORD_REFUSE_COMMON: 'false' },
    ...{ OIDC_ISSUER: 'https://id.example.com', OIDC_CLIENT_ID: 'mill', OIDC_NAME: 'Mill ID' },
    ACCOUNT_DELETION_DAYS: '0',
  },
})

test('a browser without a session learns the ways to sign in, without an error', async () => {
  const { status, json } = await api.get(WAYS)
  assert.deepEqual([status, json.account, json.can_refresh, json.needs_admin], [200, null, false, false])
  assert.deepEqual([json.registration, json.magic_links, json.oidc], [true, true, null])
})

test('the ways follow the settings', async () => {
  const { json } = await strict.get(WAYS)
  assert.deepEqual(
    [json.registration, json.magic_links, json.passkeys, json.oidc, json.deletion_days],
    [false, false, true, 'Mill ID', 0],
  )
  assert.deepEqual(json.password, { min_length: 12, min_classes: 3, refuses_common: false })
})

test('a session has its account, an invalid token and an API key have none', async () => {
  const account = await newcomer()
  const { json } = await api.get(WAYS, { token: account.token })
  assert.deepEqual([json.account.id, json.account.email], [account.id, account.email])
  assert.equal((await api.get(WAYS, { token: 'x.y.z' })).json.account, null)
  const { key } = await createKey(api, account, { scopes: ['jobs:read'] })
  assert.deepEqual([(await api.get(WAYS, { token: key })).json.account], [null])
})

test('a browser whose access token has expired learns that it can refresh', async () => {
  const { email } = await newcomer()
  const cookie = (await logIn(api, email)).cookies.find((one) => one.includes('refresh'))!
  assert.equal((await api.get(WAYS, { headers: { cookie: cookie.split(';')[0]! } })).json.can_refresh, true)
})
