import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Authenticator } from '../passkeys.ts'
import { getSharedCast } from './accounts-help.ts'
import { startEdge } from './harness.ts'

/** Passkeys of pages and apps whose origin is not that of the API. */

const PASSKEYS = '/api/v1/auth/passkeys'
const ANDROID = `android:apk-key-hash:${'a'.repeat(43)}`
const PUBLIC_BASE_URL = 'https://api.mill.test'
const { url, newcomer } = await getSharedCast()

/** Returns the statuses of a creation and a sign-in from an origin. */
async function tryPasskey(env: Record<string, string>, origin: string, rpId: string) {
  const api = await startEdge(url, { env: { PUBLIC_BASE_URL, ...env } })
  const { token } = await newcomer()
  const headers = /^https?:/.test(origin) ? { origin } : {}
  const options = await api.post(`${PASSKEYS}/options`, { token, headers, json: {} })
  assert.equal(options.json.rp.id, rpId, options.text)
  const device = new Authenticator(origin)
  const credential = device.create(options.json)
  const created = await api.post(PASSKEYS, { token, headers, json: { credential } })
  if (created.status !== 201) return [created.status]
  const asked = (await api.post(`${PASSKEYS}/sign-in/options`, { headers })).json
  assert.equal(asked.rpId, rpId)
  const signedIn = await api.post(`${PASSKEYS}/sign-in`, { headers, json: { credential: device.get(asked) } })
  return [created.status, signedIn.status]
}

const APP = 'https://app.mill.test'
const shared = { CORS_ORIGINS: `${APP},https://other.example`, WEBAUTHN_RP_ID: 'mill.test' }

describe('a passkey', () => {
  for (const [what, env, origin, rpId] of [
    ['from an allowed origin below the domain', shared, APP, 'mill.test'],
    ["from the API's own origin", shared, PUBLIC_BASE_URL, 'mill.test'],
    ['from another port of the host', { CORS_ORIGINS: `${PUBLIC_BASE_URL}:8443` }, `${PUBLIC_BASE_URL}:8443`],
    ['from below the host', { CORS_ORIGINS: 'https://app.api.mill.test' }, 'https://app.api.mill.test'],
    ['from a listed app', { WEBAUTHN_ORIGINS: `${PUBLIC_BASE_URL},${ANDROID}` }, ANDROID],
    ['from another host alone', { CORS_ORIGINS: APP, WEBAUTHN_RP_ID: 'app.mill.test' }, APP, 'app.mill.test'],
  ] as const)
    test(`${what} works`, async () => {
      assert.deepEqual(await tryPasskey({ ...env }, origin, rpId ?? 'api.mill.test'), [201, 200])
    })

  for (const [what, env, origin, rpId] of [
    ['from an origin that the domain does not cover', shared, 'https://other.example', 'mill.test'],
    ['from an unlisted origin below the domain', shared, 'https://evil.mill.test', 'mill.test'],
    ['from an origin that only looks alike', shared, 'https://app.mill.test.evil.example', 'mill.test'],
    ['from a sibling of the host', { CORS_ORIGINS: APP }, APP],
    ['from an unlisted app', shared, ANDROID, 'mill.test'],
    [
      'from an origin beside the listed ones',
      { ...shared, WEBAUTHN_ORIGINS: APP },
      PUBLIC_BASE_URL,
      'mill.test',
    ],
  ] as const)
    test(`${what} is refused`, async () => {
      const [status] = await tryPasskey({ ...env }, origin, rpId ?? 'api.mill.test')
      assert.ok(status === 400 || status === 403, String(status))
    })
})
