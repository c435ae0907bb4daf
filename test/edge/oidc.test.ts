import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { CLIENT, type OidcFaults, type Person, startOidcIssuer } from '../standins/oidc.ts'
import { assertRefused, createCast, getMe, logIn } from './accounts-help.ts'
import { createEmail, startEdge, startEdgeAndDatabase } from './harness.ts'
import { startOwnWorker } from './own-worker.ts'
import { enableTotp } from './totp-help.ts'

/** Sign-in by an OpenID Connect issuer. */

const idp = await startOidcIssuer()
after(() => idp.stop())
const env = {
  OIDC_ISSUER: idp.issuer,
  OIDC_CLIENT_ID: CLIENT.id,
  OIDC_CLIENT_SECRET: CLIENT.secret,
  OIDC_NAME: 'Mill ID',
  CORS_ORIGINS: 'https://app.mill.test',
  RATE_LIMIT_LOGIN: '0',
}
const { api, url, query } = await startEdgeAndDatabase({ env })
const closed = await startEdge(url, { env: { ...env, REGISTRATION_ENABLED: 'false' } })
await startOwnWorker(url, 'accounts', env)
const { admin, user, newcomer } = await createCast(api)
const OIDC = '/api/v1/auth/oidc'
const IDENTITIES = '/api/v1/auth/me/identities'

const createBinding = (): string => randomBytes(32).toString('hex')
const createPerson = (more: Partial<Person> = {}): Person => ({
  ...{ sub: randomUUID(), email: createEmail('person'), email_verified: true, name: 'Ann Miller' },
  ...more,
})
const begin = (binding: string, more: object = {}) =>
  api.post(`${OIDC}/begin`, { json: { binding, ...more } })
const callback = (binding: string, parameters: string, more: object = {}) =>
  api.post(`${OIDC}/callback`, { json: { binding, parameters, ...more } })
const finish = (binding: string, state: string, more: object = {}, edge = api, headers = {}) =>
  edge.post(`${OIDC}/sign-in`, { json: { binding, state, ...more }, headers })

/** Goes through the issuer's page and the exchange. */
async function exchange(person: Person, binding = createBinding()) {
  const begun = await begin(binding)
  assert.equal(begun.status, 200, begun.text)
  const { authorization_url, state } = begun.json
  const answer = await callback(binding, await idp.signIn(authorization_url, person))
  return { answer, binding, state: state as string }
}
async function signIn(person: Person, edge = api) {
  const { answer, binding, state } = await exchange(person)
  assert.equal(answer.status, 200, answer.text)
  return finish(binding, state, {}, edge)
}
async function withFaults<T>(faults: OidcFaults, work: () => Promise<T>): Promise<T> {
  idp.state.faults = faults
  return work().finally(() => {
    idp.state.faults = {}
  })
}
async function createVerified() {
  const account = await newcomer()
  await query('update account set is_verified = true where id = $1', [account.id])
  return account
}
const listKinds = async (id: number) =>
  (await query('select kind from audit_event where account_id = $1 order by id', [id])).map(
    ({ kind }) => kind,
  )

describe('a person whom the issuer signs in', () => {
  test('gets an account with the verified address', async () => {
    assert.deepEqual((await api.get(OIDC)).json, { name: 'Mill ID' })
    const person = createPerson()
    const answer = await signIn(person)
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.cookies.length, 3)
    const me = (await getMe(api, answer.json.access_token)).json
    assert.deepEqual(
      [me.email, me.full_name, me.is_verified, me.role],
      [person.email, 'Ann Miller', true, 'user'],
    )
    const again = await signIn({ ...person, email: 'other@example.com', email_verified: false })
    assert.equal((await getMe(api, again.json.access_token)).json.id, me.id, 'the subject decides')
    assert.deepEqual(await listKinds(me.id), [
      'account.registered',
      'account.verified',
      'identity.linked',
      'account.signed_in',
      'account.signed_in',
    ])
  })

  test('signs in to the account of the verified address', async () => {
    const account = await createVerified()
    const answer = await signIn(createPerson({ email: account.email.toUpperCase() }))
    assert.equal((await getMe(api, answer.json.access_token)).json.id, account.id)
    assert.equal((await logIn(api, account.email)).status, 200, 'the password stays')
    assert.equal((await getMe(api, account.token)).status, 200, 'sessions continue')
    const mails = await query(
      `select payload from job where name = 'accounts.notice' and payload->>'account_id' = $1`,
      [String(account.id)],
    )
    assert.deepEqual(mails[0]!.payload, { account_id: account.id, what: 'identity_linked', name: 'Mill ID' })
  })

  test('takes over an account that someone else may have registered', async () => {
    const account = await enableTotp(api, await newcomer())
    const answer = await signIn(createPerson({ email: account.email }))
    assert.equal(answer.status, 200, answer.text)
    assert.equal((await getMe(api, account.token)).status, 401)
    assert.equal((await logIn(api, account.email)).status, 401)
    assert.equal((await getMe(api, answer.json.access_token)).json.is_verified, true)
  })

  test('needs a verified address, unless the identity is linked', async () => {
    for (const more of [{ email_verified: false }, { email_verified: 'false' }, { email: 'no address' }]) {
      const answer = await signIn(createPerson({ email: user.email, ...more }))
      assert.deepEqual([answer.status, answer.json.code], [403, 'oidc.unverified'])
    }
    const { email: _, ...nameless } = createPerson()
    assert.equal((await signIn(nameless)).json.code, 'oidc.unverified')
  })

  test('has one identity for each account', async () => {
    const person = createPerson()
    assert.equal((await signIn(person)).status, 200)
    const other = await signIn({ ...person, sub: randomUUID() })
    assert.deepEqual([other.status, other.json.code], [409, 'oidc.other_subject'])
  })

  test('still enters a one-time code', async () => {
    const account = await enableTotp(api, await createVerified())
    const { binding, state } = await exchange(createPerson({ email: account.email }))
    assert.equal((await finish(binding, state)).json.code, 'auth.totp_required')
    assert.equal((await finish(binding, state, { totp_code: '000000' })).json.code, 'auth.totp_wrong')
    const answer = await finish(binding, state, { recovery_code: account.recoveryCodes[0] })
    assert.equal(answer.status, 200, answer.text)
  })

  test('does not enter a deactivated account', async () => {
    const account = await createVerified()
    await api.call('PATCH', `/api/v1/auth/users/${account.id}/deactivate`, admin)
    assertRefused(await signIn(createPerson({ email: account.email })), 403, 'This account is deactivated')
  })

  test('registers while registration is closed only with an invite', async () => {
    const person = createPerson()
    assertRefused(await signIn(person, closed), 403, 'Registration is closed')
    const org = await api.post('/api/v1/orgs', { ...user, json: { name: 'Mill', slug: randomUUID() } })
    const path = `/api/v1/orgs/${org.json.id}`
    await api.post(`${path}/invites`, { ...user, json: { email: person.email } })
    const answer = await signIn(person, closed)
    assert.equal(answer.status, 200, answer.text)
    const orgs = await api.get('/api/v1/orgs', { token: answer.json.access_token })
    assert.equal(orgs.json[0].id, org.json.id)
  })

  test('may return to a page of an allowed origin', async () => {
    const redirect_to = 'https://app.mill.test/signed-in'
    const binding = createBinding()
    const { authorization_url, state } = (await begin(binding, { redirect_to })).json
    const parameters = await idp.signIn(authorization_url, createPerson())
    assert.equal((await callback(binding, parameters)).json.code, 'oidc.state', 'another redirect URI')
    assert.equal((await callback(binding, parameters, { redirect_to })).status, 200)
    assert.equal((await finish(binding, state)).status, 200)
    for (const bad of ['https://evil.example/', `${redirect_to}?x=1`, `${redirect_to}#x`])
      assert.equal((await begin(binding, { redirect_to: bad })).status, 422, bad)
  })

  test('may have a verification that the issuer sends as a text', async () => {
    const person = createPerson({ email_verified: 'true' })
    for (const onlyUserInfo of [false, true]) {
      const answer = await withFaults({ onlyUserInfo }, () => signIn(person))
      assert.equal(answer.status, 200, answer.text)
    }
  })

  test('may have a name with characters that a name cannot have', async () => {
    for (const [name, expected] of [
      ['Ann\0\r\nMiller', 'Ann Miller'],
      [`${'a'.repeat(199)}🜁`, 'a'.repeat(199)],
      [' \0 ', null],
    ] as const) {
      const answer = await signIn(createPerson({ name }))
      assert.equal(answer.status, 200, answer.text)
      assert.equal((await getMe(api, answer.json.access_token)).json.full_name, expected)
    }
  })

  test('has the claims of the userinfo endpoint if the token lacks them', async () => {
    const person = createPerson()
    const answer = await withFaults({ onlyUserInfo: true }, () => signIn(person))
    assert.equal((await getMe(api, answer.json.access_token)).json.email, person.email)
  })
})

describe('an answer of the issuer', () => {
  for (const [what, faults] of [
    ['with a forged signature', { forged: true }],
    ['with another nonce', { claims: { nonce: 'another' } }],
    ['for another client', { claims: { aud: 'another' } }],
    ['of another issuer', { claims: { iss: 'https://evil.example' } }],
    ['that has expired', { claims: { exp: 1 } }],
    ['that denies access', { denied: true }],
  ] as const)
    test(`${what} is refused`, async () => {
      const { answer } = await withFaults(faults, () => exchange(createPerson()))
      assertRefused(answer, 400, 'The OpenID Connect issuer refused the sign-in; start over')
    })

  test('from an issuer that fails is a 502', async () => {
    const binding = createBinding()
    const { authorization_url } = (await begin(binding)).json
    const parameters = await idp.signIn(authorization_url, createPerson())
    // A worker's threads read the issuer's description separately, so several requests reach both calls.
    for (let i = 0; i < 4; i++) {
      const answer = await withFaults({ status: 503 }, () => callback(binding, parameters))
      assertRefused(answer, 502, 'The OpenID Connect issuer did not answer as expected; try again later')
    }
  })

  test('counts once, and only in the browser that began', async () => {
    const binding = createBinding()
    const { authorization_url, state } = (await begin(binding)).json
    const parameters = await idp.signIn(authorization_url, createPerson())
    assert.equal((await callback(createBinding(), parameters)).json.code, 'oidc.state')
    assert.equal((await callback(binding, parameters.replace(state, `${state}x`))).json.code, 'oidc.state')
    assert.equal((await callback(binding, 'code=x')).json.code, 'oidc.state')
    assert.equal((await callback(binding, parameters)).status, 200)
    assert.equal((await callback(binding, parameters)).json.code, 'oidc.refused')
    assert.equal((await finish(createBinding(), state)).json.code, 'oidc.state')
    const foreign = await finish(binding, state, {}, api, { origin: 'https://evil.example' })
    assert.equal(foreign.status, 403)
    const answers = await Promise.all([1, 2, 3].map(() => finish(binding, state)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400])
  })

  test('expires', async () => {
    const { binding, state } = await exchange(createPerson())
    await query("update oidc_login set expires_at = now() - interval '1 second'")
    assert.equal((await finish(binding, state)).json.code, 'oidc.state')
  })
})

test('an account lists and unlinks its identities', async () => {
  const person = createPerson()
  const token = (await signIn(person)).json.access_token
  const { json } = await api.get(IDENTITIES, { token })
  assert.deepEqual([json.length, json[0].issuer, json[0].email], [1, idp.issuer, person.email])
  const path = `${IDENTITIES}/${json[0].id}`
  assert.equal((await api.call('DELETE', path, user)).status, 404)
  await query("update session set created_at = now() - interval '1 hour'")
  assert.equal((await api.call('DELETE', path, { token })).json.code, 'auth.proof_required')
  await query('update session set created_at = now()')
  assert.equal((await api.call('DELETE', path, { token })).status, 204)
  assert.deepEqual((await api.get(IDENTITIES, { token })).json, [])
  assert.equal((await api.call('DELETE', `${IDENTITIES}/x`, { token })).status, 404)
  const again = await signIn(person)
  assert.equal((await getMe(api, again.json.access_token)).status, 200, 'the verified address links it again')
})
