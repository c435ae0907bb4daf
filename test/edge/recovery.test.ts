import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { until } from '../until.ts'
import { assertChallenge } from './accounts-help.ts'
import { type Account, type Answered, PASSWORD, startEdgeAndDatabase } from './harness.ts'
import { createMailbox, type Mail } from './mailbox.ts'

const { api, url, query, db } = await startEdgeAndDatabase()
const readMails = createMailbox({ url, query, db })
const admin = await api.register('admin@example.com')

let count = 0
const registerAccount = (more: object = {}): Promise<Account> =>
  api.register(`user${++count}@example.com`, { ...more })
const logIn = (username: string, password: string) =>
  api.post('/api/v1/auth/token', { form: { username, password } })
const requestReset = (email: string) => api.post('/api/v1/auth/password-reset/request', { json: { email } })
const confirm = (token: string, new_password = 'a new password') =>
  api.post('/api/v1/auth/password-reset/confirm', { json: { token, new_password } })
const verify = (token: string) => api.post('/api/v1/auth/verify-email', { json: { token } })
const resend = (token: string) => api.post('/api/v1/auth/resend-verification', { token })
const readMe = async (token: string) => (await api.get('/api/v1/auth/me', { token })).json
const expire = (token: string) =>
  query('update account_token set expires_at = now() where digest = $1', [digestOf(token)])

async function requestResetMail(email: string): Promise<Mail> {
  await readMails()
  await requestReset(email)
  const [mail] = await readMails()
  return mail!
}

function pickComparableFields({ status, headers, text }: Answered) {
  const { 'x-request-id': _, date: __, ...rest } = headers
  return { status, headers: rest, text }
}

function assertBadToken(answer: Answered): void {
  assert.deepEqual(
    [answer.status, answer.json],
    [400, { detail: 'The token is invalid or has expired', code: 'account.token' }],
  )
  assert.deepEqual(answer.cookies, [])
}

const MALFORMED_TOKENS = ['x', 'é', '../..', "' or 1=1", 'x'.repeat(200), digestOf('x').toString('base64url')]

describe('requesting a reset', () => {
  test('gives the same answer and does the same work for any address', async () => {
    const inactive = await registerAccount({ is_active: false })
    const { email } = await registerAccount()
    await readMails()
    const before = await query('select count(*)::int as n from audit_event')
    const answers = []
    const addresses = [email, 'nobody@example.com', inactive.email, ` ${email.toUpperCase()} `]
    for (const address of addresses) answers.push(pickComparableFields(await requestReset(address)))
    assert.equal(answers[0]!.status, 200)
    assert.deepEqual(JSON.parse(answers[0]!.text), {
      detail: 'If the address has an account, an email with a reset token is on its way',
    })
    for (const answer of answers) assert.deepEqual(answer, answers[0])
    const jobs = await query(`select owner_id, queue, status from job where name = 'accounts.password-reset'`)
    assert.equal(jobs.length, addresses.length)
    assert.equal(new Set(jobs.map((job) => JSON.stringify(job))).size, 1)
    const [events] = await query('select count(*)::int as n from audit_event')
    assert.equal(events!.n, (before[0]!.n as number) + addresses.length)
    const got = await readMails()
    assert.deepEqual(
      got.map(({ to }) => to),
      [email, email],
      'and only who has an active account gets a mail',
    )
  })

  test('requires an address, but neither an account nor a right password', async () => {
    for (const json of [{}, { email: '' }, { email: 'no address' }, { email: 'a@example.com', extra: 1 }])
      assert.equal((await api.post('/api/v1/auth/password-reset/request', { json })).status, 422)
  })
})

describe('a reset', () => {
  test('sets the password: the new one signs in and the old one does not', async () => {
    const { email, id } = await registerAccount()
    const { token, to } = await requestResetMail(email)
    assert.equal(to, email)
    const answer = await confirm(token)
    assert.deepEqual(
      [answer.status, answer.json],
      [200, { detail: 'The password has been set; sign in with it' }],
    )
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.deepEqual(answer.cookies, [])
    assert.equal((await logIn(email, PASSWORD)).status, 401)
    const signedIn = await logIn(email, 'a new password')
    assert.equal(signedIn.status, 200)
    assert.equal((await readMe(signedIn.json.access_token)).id, id)
    const rows = await query(`select kind from audit_event where account_id = $1 and kind ~ 'reset'`, [id])
    assert.deepEqual(rows, [{ kind: 'account.password_reset' }])
  })

  test('accepts a token once, and invalidates earlier ones', async () => {
    const { email } = await registerAccount()
    const [first, second] = [await requestResetMail(email), await requestResetMail(email)]
    assert.equal((await confirm(second.token)).status, 200)
    assertBadToken(await confirm(second.token, 'another password'))
    assertBadToken(await confirm(first.token, 'another password'))
    assert.equal((await logIn(email, 'a new password')).status, 200)
  })

  test('rejects an expired token, one of another kind, and a malformed one', async () => {
    const account = await registerAccount()
    const [verification] = (await readMails()).filter(({ to }) => to === account.email)
    const expired = await requestResetMail(account.email)
    await expire(expired.token)
    for (const token of [expired.token, verification!.token, account.refresh, ...MALFORMED_TOKENS])
      assertBadToken(await confirm(token))
    for (const token of ['', '\u0000', 'x'.repeat(201)]) assert.equal((await confirm(token)).status, 422)
    assert.equal((await logIn(account.email, PASSWORD)).status, 200)
    assert.equal((await verify(verification!.token)).status, 200, 'nor does it use that one up')
  })

  test('with a password that is too short or too long is rejected, and the token stays valid', async () => {
    const { email } = await registerAccount()
    const { token } = await requestResetMail(email)
    for (const password of ['seven..', 'x'.repeat(1025)]) {
      const answer = await confirm(token, password)
      assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, ['body', 'new_password']])
    }
    assert.equal((await confirm(token, 'eight...')).status, 200)
  })

  test('one of ten concurrent resets succeeds and sets its password', async () => {
    const { email } = await registerAccount()
    const { token } = await requestResetMail(email)
    const passwords = Array.from({ length: 10 }, (_, i) => `password number ${i}`)
    const answers = await Promise.all(passwords.map((password) => confirm(token, password)))
    const won = answers.findIndex(({ status }) => status === 200)
    for (const [i, answer] of answers.entries()) if (i !== won) assertBadToken(answer)
    for (const [i, password] of passwords.entries())
      if (i === won || i === (won + 1) % 10)
        assert.equal((await logIn(email, password)).status, i === won ? 200 : 401)
  })

  test('of a deleted account is rejected', async () => {
    const { email, id } = await registerAccount()
    const { token } = await requestResetMail(email)
    assert.equal((await api.call('DELETE', `/api/v1/auth/users/${id}`, { token: admin.token })).status, 204)
    assertBadToken(await confirm(token))
  })
})

describe('verifying an address', () => {
  const verification = async (account: Account): Promise<string> =>
    (await readMails()).find(({ to }) => to === account.email)!.token

  test('registering mails a token that verifies the address once', async () => {
    const account = await registerAccount()
    assert.equal((await readMe(account.token)).is_verified, false)
    const token = await verification(account)
    const answer = await verify(token)
    assert.deepEqual([answer.status, answer.json], [200, { detail: 'The address is verified' }])
    await until('the account is verified', async () => (await readMe(account.token)).is_verified === true)
    assertBadToken(await verify(token))
    const rows = await query(
      `select actor_id from audit_event where kind = 'account.verified' and account_id = $1`,
      [account.id],
    )
    assert.deepEqual(rows, [{ actor_id: account.id }])
  })

  test('rejects an expired token, one of another kind, and a malformed one', async () => {
    const account = await registerAccount()
    const token = await verification(account)
    const reset = await requestResetMail(account.email)
    await expire(token)
    for (const one of [token, reset.token, ...MALFORMED_TOKENS]) assertBadToken(await verify(one))
    assert.equal((await readMe(account.token)).is_verified, false)
    assert.equal((await confirm(reset.token)).status, 200)
  })

  test('one of ten concurrent requests succeeds', async () => {
    const token = await verification(await registerAccount())
    const statuses = (await Promise.all(Array.from({ length: 10 }, () => verify(token)))).map(
      ({ status }) => status,
    )
    assert.deepEqual(statuses.sort(), [200, ...Array(9).fill(400)])
  })

  test('new tokens can be requested until the address is verified, which invalidates all of them', async () => {
    const account = await registerAccount()
    const first = await verification(account)
    const answer = await resend(account.token)
    assert.deepEqual(
      [answer.status, answer.json],
      [200, { detail: 'An email with a verification token is on its way' }],
    )
    const second = await verification(account)
    assert.notEqual(first, second)
    assert.equal((await verify(first)).status, 200)
    assertBadToken(await verify(second))
    await until('the edge sees the change', async () => (await readMe(account.token)).is_verified === true)
    const again = await resend(account.token)
    assert.deepEqual([again.status, again.json], [200, { detail: 'The address is already verified' }])
    assert.deepEqual(await readMails(), [])
  })

  test('a new token requires a session', async () => {
    const answer = await resend('')
    assert.equal(answer.status, 401)
    assertChallenge(answer)
  })
})
