import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertRefused, createCast, getMe, logIn } from './accounts-help.ts'
import { type Account, createEmail, startEdge, startEdgeAndDatabase } from './harness.ts'
import { createMailbox } from './mailbox.ts'
import { enableTotp } from './totp-help.ts'

/** Sign-in with an emailed link. */

const env = { LOGIN_MAX_FAILURES: '3', RATE_LIMIT_PASSWORD_RESET: '0', RATE_LIMIT_LOGIN: '0' }
const { api, url, query, db } = await startEdgeAndDatabase({ env })
const disabled = await startEdge(url, { env: { MAGIC_LINK_MINUTES: '0' } })
const readMails = createMailbox({ url, query, db })
const { admin, newcomer } = await createCast(api)
const PATH = '/api/v1/auth/magic-link'
const SENT = { detail: 'If the address has an account, an email with a link is on its way' }
const TOKEN_REFUSED = [400, 'The token is invalid or has expired'] as const

const ask = (email: string) => api.post(`${PATH}/request`, { json: { email } })
const exchange = (token: string, more: object = {}, headers = {}) =>
  api.post(PATH, { json: { token, ...more }, headers })

async function requestToken(email: string): Promise<string> {
  await readMails()
  assert.equal((await ask(email)).status, 200)
  const [mail] = await readMails()
  assert.deepEqual([mail!.to, mail!.subject], [email, 'Sign in'])
  return mail!.token
}

async function createVerified(): Promise<Account> {
  const account = await newcomer()
  await query('update account set is_verified = true where id = $1', [account.id])
  return account
}
const listAudit = async (id: number) =>
  (await query('select kind, data from audit_event where account_id = $1 order by id', [id])).slice(1)

describe('a link by email', () => {
  test('signs in once, like a password', async () => {
    const account = await createVerified()
    const token = await requestToken(account.email)
    const answer = await exchange(token)
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.json.token_type, 'bearer')
    assert.equal(answer.cookies.length, 3)
    assert.equal((await getMe(api, answer.json.access_token)).json.id, account.id)
    assertRefused(await exchange(token), ...TOKEN_REFUSED)
    assert.equal((await getMe(api, account.token)).status, 200, 'other sessions continue')
    assert.equal((await logIn(api, account.email)).status, 200, 'the password stays')
    const [signedIn] = await listAudit(account.id)
    assert.equal(signedIn!.kind, 'account.signed_in')
    assert.equal((signedIn!.data as { method: string }).method, 'magic_link')
  })

  test('signs in only one of several concurrent requests', async () => {
    const { email } = await createVerified()
    const token = await requestToken(email)
    const answers = await Promise.all([1, 2, 3].map(() => exchange(token)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400])
  })

  test('ends older links, and expires', async () => {
    const { email } = await createVerified()
    const [first, second] = [await requestToken(email), await requestToken(email)]
    assert.equal((await exchange(second)).status, 200)
    assertRefused(await exchange(first), ...TOKEN_REFUSED)
    const third = await requestToken(email)
    await query("update account_token set expires_at = now() - interval '1 second' where kind = 'sign_in'")
    assertRefused(await exchange(third), ...TOKEN_REFUSED)
  })

  test('reveals nothing about an address without an active account', async () => {
    const inactive = await createVerified()
    await api.call('PATCH', `/api/v1/auth/users/${inactive.id}/deactivate`, admin)
    await readMails()
    for (const email of [createEmail('nobody'), inactive.email, (await createVerified()).email]) {
      const { status, json } = await ask(email)
      assert.deepEqual([status, json], [200, SENT])
    }
    assert.equal((await readMails()).filter(({ subject }) => subject === 'Sign in').length, 1)
  })

  test('of an account that was deactivated since is refused', async () => {
    const { id, email } = await createVerified()
    const token = await requestToken(email)
    await api.call('PATCH', `/api/v1/auth/users/${id}/deactivate`, admin)
    assertRefused(await exchange(token), 403, 'This account is deactivated')
  })

  test('still requires a one-time code, and stays valid until it comes', async () => {
    const person = await enableTotp(api, await createVerified())
    const token = await requestToken(person.email)
    assert.equal((await exchange(token)).json.code, 'auth.totp_required')
    assert.equal((await exchange(token, { totp_code: '000000' })).json.code, 'auth.totp_wrong')
    assert.equal((await exchange(token, { recovery_code: person.recoveryCodes[0] })).status, 200)
    const kinds = (await listAudit(person.id)).map(({ kind }) => kind)
    assert.deepEqual(kinds, [
      'account.totp_enabled',
      'account.totp_asked',
      'account.sign_in_failed',
      'account.signed_in',
    ])
  })

  test('allows as few wrong codes as a password', async () => {
    const person = await enableTotp(api, await createVerified())
    const token = await requestToken(person.email)
    for (let i = 0; i < 3; i++) assert.equal((await exchange(token, { totp_code: '000000' })).status, 401)
    const { status, json } = await exchange(token, { recovery_code: person.recoveryCodes[0] })
    assert.deepEqual([status, json.code], [403, 'auth.locked'])
  })

  test('ends all credentials of an account that someone else may have registered', async () => {
    const account = await enableTotp(api, await newcomer())
    const answer = await exchange(await requestToken(account.email))
    assert.equal(answer.status, 200, answer.text)
    assert.equal((await getMe(api, account.token)).status, 401)
    assert.equal((await logIn(api, account.email)).status, 401, 'the password is gone')
    const own = await getMe(api, answer.json.access_token)
    assert.equal(own.json.is_verified, true)
    const totp = await api.get('/api/v1/auth/totp', { token: answer.json.access_token })
    assert.equal(totp.json.is_on, false)
  })

  test('works neither as another token nor from another site', async () => {
    const { email } = await createVerified()
    const token = await requestToken(email)
    for (const [path, json] of [
      ['verify-email', { token }],
      ['password-reset/confirm', { token, new_password: 'correct horse' }],
    ] as const)
      assert.equal((await api.post(`/api/v1/auth/${path}`, { json })).status, 400)
    assert.equal((await exchange(token, {}, { origin: 'https://evil.example' })).status, 403)
    assert.equal((await exchange(token)).status, 200)
  })

  test('can be disabled', async () => {
    const refusal = [403, 'Sign-in by emailed links is disabled'] as const
    assertRefused(await disabled.post(`${PATH}/request`, { json: { email: createEmail() } }), ...refusal)
    assertRefused(await disabled.post(PATH, { json: { token: 'x' } }), ...refusal)
  })
})
