import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import bcrypt from 'bcryptjs'
import type { Passwords } from '../../edge/passwords/passwords.ts'
import { type Answered, createEmail, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'
import { createMailbox } from './mailbox.ts'

/** Tests the hashing cost of login attempts, and that account lockout spares known devices. */

const MAX_FAILURES = 3
const env = { LOGIN_MAX_FAILURES: String(MAX_FAILURES) }

/** One entry per computed hash: `foreign` for an imported hash, otherwise `own`. */
const computedHashes: string[] = []
const recordHashes = (passwords: Passwords): Passwords => {
  const kindOf = (stored: string | null) => (stored?.startsWith('$2b$') === true ? 'foreign' : 'own')
  return {
    hash: (password) => passwords.hash(password),
    verify: (stored, password) => {
      computedHashes.push(kindOf(stored))
      return passwords.verify(stored, password)
    },
    verifyAndRehash: (stored, password) => {
      computedHashes.push(kindOf(stored))
      return passwords.verifyAndRehash(stored, password)
    },
    isCommon: (password) => passwords.isCommon(password),
    verifyPasskey: (work) => passwords.verifyPasskey(work),
    close: () => passwords.close(),
  }
}
const { api, url, query, db } = await startEdgeAndDatabase({ env, wrapPasswords: recordHashes })
const otherEdge = await startEdge(url, { env })
const readMails = createMailbox({ url, query, db })
const admin = await api.register('admin@example.com')

const deviceCookieOf = (answer: Answered): string => `millrace_device=${answer.cookie('millrace_device')}`
const logIn = (username: string, password: string, cookie = '') =>
  api.post('/api/v1/auth/token', {
    form: { username, password },
    headers: cookie === '' ? {} : { cookie },
  })
const failLogin = (email: string, cookie?: string) => logIn(email, 'not the password', cookie)
async function lockOut(email: string, cookie?: string): Promise<void> {
  for (let i = 0; i < MAX_FAILURES; i++) assert.equal((await failLogin(email, cookie)).status, 401)
  assert.equal((await failLogin(email, cookie)).status, 403)
}
/** Creates an account and returns the cookie of a browser that has signed in to it. */
async function createKnownDevice() {
  const account = await api.register(createEmail())
  return { ...account, cookie: deviceCookieOf(await logIn(account.email, PASSWORD)) }
}
const readLoginStatus = async (email: string, cookie?: string): Promise<number> =>
  (await logIn(email, PASSWORD, cookie)).status

describe('a known device', () => {
  test('is not locked out by failed logins from elsewhere and stays known', async () => {
    const { email, cookie } = await createKnownDevice()
    await lockOut(email)
    assert.equal(await readLoginStatus(email), 403)
    const answer = await logIn(email, PASSWORD, cookie)
    assert.equal(answer.status, 200)
    assert.equal(deviceCookieOf(answer), cookie)
    assert.equal(await readLoginStatus(email), 403, 'strangers stay locked out')
  })

  test('becomes known by a registration, too', async () => {
    const email = createEmail()
    const answer = await api.post('/api/v1/auth/register', { json: { email, password: PASSWORD } })
    await lockOut(email)
    assert.equal(await readLoginStatus(email, deviceCookieOf(answer)), 200)
  })

  test('is locked only by its own failed logins', async () => {
    const { email, cookie } = await createKnownDevice()
    const other = deviceCookieOf(await logIn(email, PASSWORD))
    await lockOut(email, cookie)
    assert.equal(await readLoginStatus(email, cookie), 403)
    assert.equal(await readLoginStatus(email, other), 200)
    assert.equal(await readLoginStatus(email), 200)
  })

  test('counts failed proofs of identity in its session, too', async () => {
    const { email, token, cookie } = await createKnownDevice()
    await lockOut(email)
    const change = async (current_password: string, headers = {}) =>
      (
        await api.post('/api/v1/auth/change-password', {
          token,
          json: { current_password, new_password: 'another password' },
          headers,
        })
      ).status
    assert.equal(await change(PASSWORD), 403)
    for (let i = 0; i < MAX_FAILURES; i++) assert.equal(await change('not the password', { cookie }), 400)
    assert.equal(await change(PASSWORD, { cookie }), 403)
    assert.equal(await readLoginStatus(email, cookie), 403)
  })

  test('may be known for several accounts', async () => {
    const one = await createKnownDevice()
    const other = await api.register(createEmail())
    const both = deviceCookieOf(await logIn(other.email, PASSWORD, one.cookie))
    for (const { email } of [one, other]) {
      await lockOut(email)
      assert.equal(await readLoginStatus(email, both), 200)
    }
  })

  test('is known for the last five accounts only', async () => {
    let { cookie, email: first } = await createKnownDevice()
    const later: string[] = []
    for (let i = 0; i < 5; i++) {
      const { email } = await api.register(createEmail())
      later.push(email)
      cookie = deviceCookieOf(await logIn(email, PASSWORD, cookie))
    }
    for (const email of [first, ...later]) await lockOut(email)
    assert.equal(await readLoginStatus(first, cookie), 403)
    for (const email of later) assert.equal(await readLoginStatus(email, cookie), 200)
  })

  test('becomes unknown after a password change', async () => {
    const { email, token, cookie } = await createKnownDevice()
    const json = { current_password: PASSWORD, new_password: 'another password' }
    assert.equal((await api.post('/api/v1/auth/change-password', { token, json })).status, 200)
    await lockOut(email)
    assert.equal((await logIn(email, 'another password', cookie)).status, 403)
  })

  test('becomes unknown after a password reset, even to the same password', async () => {
    const { email, cookie } = await createKnownDevice()
    await readMails()
    await api.post('/api/v1/auth/password-reset/request', { json: { email } })
    const [mail] = await readMails()
    const json = { token: mail!.token, new_password: PASSWORD }
    assert.equal((await api.post('/api/v1/auth/password-reset/confirm', { json })).status, 200)
    await lockOut(email)
    assert.equal(await readLoginStatus(email, cookie), 403)
  })

  test('is not recognized by a forged cookie or that of another account', async () => {
    const { email, cookie } = await createKnownDevice()
    const stranger = await createKnownDevice()
    await lockOut(email)
    const [id, proof] = cookie.slice('millrace_device='.length).split('.') as [string, string]
    const [otherId] = stranger.cookie.slice('millrace_device='.length).split('.') as [string]
    for (const value of [
      stranger.cookie.slice('millrace_device='.length),
      `${otherId}.${proof}`,
      `${id}.${proof.slice(1)}A`,
      `${id}.${'A'.repeat(43)}`,
      `${id}.${id}`,
      `${id}..${'.'.repeat(100)}`,
      id,
      `.${proof}`,
      '',
      '.',
      'ü',
      'x'.repeat(2000),
    ])
      assert.equal(await readLoginStatus(email, `millrace_device=${value}`), 403, value)
    assert.equal(await readLoginStatus(email, cookie), 200)
  })

  test('does not reveal which addresses have accounts', async () => {
    const { cookie } = await createKnownDevice()
    const { email } = await api.register(createEmail())
    const unknown = createEmail()
    const seen = ({ status, text, cookies }: Answered) => ({ status, text, cookies })
    for (let i = 0; i <= MAX_FAILURES; i++)
      assert.deepEqual(seen(await failLogin(email, cookie)), seen(await failLogin(unknown, cookie)))
  })
})

describe('the hashing cost of a login attempt', () => {
  const costOf = async (attempt: () => Promise<Answered>, status: number): Promise<string[]> => {
    computedHashes.length = 0
    assert.equal((await attempt()).status, status)
    return [...computedHashes]
  }

  test('is equal for known and unknown addresses, and zero once locked', async () => {
    for (const email of [(await createKnownDevice()).email, createEmail()]) {
      for (let i = 0; i < MAX_FAILURES; i++)
        assert.deepEqual(await costOf(() => failLogin(email), 401), ['own'])
      assert.deepEqual(await costOf(() => failLogin(email), 403), [])
      assert.deepEqual(await costOf(() => logIn(email, PASSWORD), 403), [])
    }
  })

  test('is zero for a locked proof of identity', async () => {
    const { email, token } = await createKnownDevice()
    await lockOut(email)
    const json = { password: PASSWORD, email: createEmail() }
    for (const call of [
      () => api.post('/api/v1/auth/me/email', { token, json }),
      () => api.call('DELETE', '/api/v1/auth/me', { token, json: { password: PASSWORD } }),
      () => api.post('/api/v1/auth/totp', { token, json: { password: PASSWORD } }),
    ])
      assert.deepEqual(await costOf(call, 403), [])
  })

  test('under many concurrent attempts covers only those that get a wrong-password answer', async () => {
    const email = createEmail()
    const accounts = [{ email, password_hash: bcrypt.hashSync(PASSWORD, 4) }]
    await api.post('/api/v1/auth/users/import', { token: admin.token, json: { accounts } })
    for (const [address, kind] of [
      [email, 'foreign'],
      [createEmail(), 'own'],
    ] as const) {
      computedHashes.length = 0
      const answers = await Promise.all(Array.from({ length: 20 }, () => failLogin(address)))
      assert.equal(answers.filter(({ status }) => status === 401).length, MAX_FAILURES)
      assert.equal(answers.filter(({ status }) => status === 403).length, 20 - MAX_FAILURES)
      assert.deepEqual(computedHashes, Array(MAX_FAILURES).fill(kind))
    }
    assert.equal(
      (await otherEdge.post('/api/v1/auth/token', { form: { username: email, password: PASSWORD } })).status,
      403,
    )
  })
})
