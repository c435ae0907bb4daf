import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { computeCode, computeCurrentStep, decodeBase32 } from '../totp.ts'
import { type Answered, type Api, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'
import { createMailbox } from './mailbox.ts'
import { TOTP_PATH } from './totp-help.ts'

const MAX_FAILURES = 3
const LOCK_SECONDS = 600
// Remaining seconds of the lock when the test checks it again.
const REMAINING_SECONDS = 300
const env = { LOGIN_MAX_FAILURES: String(MAX_FAILURES), LOGIN_LOCK_SECONDS: String(LOCK_SECONDS) }
const { api, url, query, db } = await startEdgeAndDatabase({ env })
const otherEdge = await startEdge(url, { env })
const readMails = createMailbox({ url, query, db })
await api.register('admin@example.com')

let count = 0
const registerAddress = async (): Promise<string> => (await api.register(`known${++count}@example.com`)).email
const createUnknownAddress = (): string => `unknown${++count}@example.com`
const logIn = (username: string, password: string, edge = api) =>
  edge.post('/api/v1/auth/token', { form: { username, password } })
const failLogin = (email: string, edge = api) => logIn(email, 'not the password', edge)
const lockOut = async (email: string): Promise<void> => {
  for (let i = 0; i < MAX_FAILURES; i++) assert.equal((await failLogin(email)).status, 401)
}
/** Moves the recorded failures of an address into the past. */
const ageFailures = (email: string, seconds: number) =>
  query(
    `update login_failure set failed_at = failed_at - make_interval(secs => $2),
      locked_until = locked_until - make_interval(secs => $2) where subject = $1`,
    [digestOf(email), seconds],
  )
/** Reduces an answer to the fields that must not differ between requests. */
function pickComparableFields({ status, headers, text, cookies }: Answered) {
  const { 'x-request-id': id, date: _, ...rest } = headers
  assert.ok(id)
  return { status, headers: rest, text, cookies }
}

describe('lockout', () => {
  test('after the maximum failures a login is 403 on every edge, even with the right password', async () => {
    const email = await registerAddress()
    await lockOut(email)
    for (const edge of [api, otherEdge])
      for (const password of [PASSWORD, 'not the password']) {
        const answer = await logIn(email, password, edge)
        assert.deepEqual(
          [answer.status, answer.json],
          [
            403,
            {
              detail: 'This account is locked after too many failed logins; try again later',
              code: 'auth.locked',
            },
          ],
        )
        assert.deepEqual(answer.cookies, [])
      }
  })

  test('failures on several edges add up', async () => {
    const email = await registerAddress()
    const answers = []
    for (let i = 0; i < MAX_FAILURES + 1; i++)
      answers.push((await failLogin(email, i % 2 ? api : otherEdge)).status)
    assert.deepEqual(answers, [401, 401, 401, 403])
  })

  test('a successful login before that resets the count', async () => {
    const email = await registerAddress()
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < MAX_FAILURES - 1; i++) assert.equal((await failLogin(email)).status, 401)
      assert.equal((await logIn(email, PASSWORD)).status, 200)
    }
  })

  test('expires by itself', async () => {
    const email = await registerAddress()
    await lockOut(email)
    await ageFailures(email, LOCK_SECONDS - REMAINING_SECONDS)
    assert.equal((await logIn(email, PASSWORD)).status, 403)
    await ageFailures(email, REMAINING_SECONDS)
    assert.equal((await logIn(email, PASSWORD)).status, 200)
  })

  test('known and unknown addresses get identical answers throughout', async () => {
    const [one, two] = [await registerAddress(), createUnknownAddress()]
    const [locked, ended] = [LOCK_SECONDS - REMAINING_SECONDS, REMAINING_SECONDS]
    for (const step of [
      ...Array(MAX_FAILURES + 2).fill('wrong'),
      locked,
      'wrong',
      ended,
      ...Array(MAX_FAILURES + 1).fill('wrong'),
    ]) {
      if (typeof step === 'number') {
        await Promise.all([one, two].map((email) => ageFailures(email, step)))
        continue
      }
      const [first, second] = [
        pickComparableFields(await failLogin(one)),
        pickComparableFields(await failLogin(two)),
      ]
      assert.deepEqual(second, first)
      assert.ok([401, 403].includes(first.status))
    }
  })

  test('ignores the case of an address and surrounding spaces', async () => {
    const email = await registerAddress()
    await failLogin(email.toUpperCase())
    await failLogin(` ${email} `)
    await failLogin(email)
    assert.equal((await logIn(email, PASSWORD)).status, 403)
  })

  test('applies to any text sent as an address', async () => {
    for (const strange of ['no address', "'; drop table account; --", '🜁', '\ud800', 'x'.repeat(320)]) {
      const statuses = []
      for (let i = 0; i <= MAX_FAILURES; i++) statuses.push((await failLogin(strange)).status)
      assert.deepEqual(statuses, [401, 401, 401, 403], JSON.stringify(strange))
    }
  })

  test('of 30 concurrent attempts on two edges, only the maximum gets a wrong-password answer', async () => {
    for (const email of [await registerAddress(), createUnknownAddress()]) {
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, i) => failLogin(email, i % 2 ? api : otherEdge)),
      )
      const statuses = answers.map(({ status }) => status)
      assert.equal(statuses.filter((status) => status === 401).length, MAX_FAILURES)
      assert.equal(statuses.filter((status) => status === 403).length, 30 - MAX_FAILURES)
    }
  })

  test('leaves existing sessions alone, but locks their password change', async () => {
    const account = await api.register(`session${++count}@example.com`)
    await lockOut(account.email)
    assert.equal((await api.get('/api/v1/auth/me', { token: account.token })).status, 200)
    const json = { current_password: PASSWORD, new_password: 'another password' }
    const change = await api.post('/api/v1/auth/change-password', { token: account.token, json })
    assert.equal(change.status, 403)
    await ageFailures(account.email, LOCK_SECONDS)
    assert.equal((await logIn(account.email, PASSWORD)).status, 200, 'it was not changed')
  })

  test('counts wrong current passwords as failed logins', async () => {
    const account = await api.register(`change${++count}@example.com`)
    const json = { current_password: 'not the password', new_password: 'another password' }
    const statuses = []
    for (let i = 0; i <= MAX_FAILURES; i++)
      statuses.push((await api.post('/api/v1/auth/change-password', { token: account.token, json })).status)
    assert.deepEqual(statuses, [400, 400, 400, 403])
    assert.equal((await logIn(account.email, PASSWORD, otherEdge)).status, 403)
  })

  test('counts wrong one-time codes, and then rejects the right one', async () => {
    const account = await api.register(`codes${++count}@example.com`)
    const begun = await api.post(TOTP_PATH, { token: account.token, json: {} })
    const secret = decodeBase32(begun.json.secret)
    const confirm = (step: number, edge: Api) =>
      edge.post(`${TOTP_PATH}/confirm`, {
        token: account.token,
        json: { code: computeCode(secret, computeCurrentStep(step)) },
      })
    const answers = []
    for (let i = 0; i < MAX_FAILURES; i++) answers.push((await confirm(100, i % 2 ? api : otherEdge)).status)
    for (const edge of [api, otherEdge]) answers.push((await confirm(0, edge)).status)
    assert.deepEqual(answers, [400, 400, 400, 403, 403])
    const trail = await query(
      `select kind, data ->> 'outcome' as outcome from audit_event where account_id = $1 and kind ~ 'failed|locked' order by id`,
      [account.id],
    )
    assert.deepEqual(
      trail.map(({ kind, outcome }) => outcome ?? kind),
      ['wrong', 'wrong', 'wrong, now locked', 'account.locked', 'locked', 'locked'],
    )
    await ageFailures(account.email, LOCK_SECONDS)
    assert.equal((await confirm(0, api)).status, 200)
  })

  test('ends with a password reset', async () => {
    const email = await registerAddress()
    await lockOut(email)
    await readMails()
    await api.post('/api/v1/auth/password-reset/request', { json: { email } })
    const [mail] = await readMails()
    const json = { token: mail!.token, new_password: 'a new password' }
    assert.equal((await otherEdge.post('/api/v1/auth/password-reset/confirm', { json })).status, 200)
    assert.equal((await logIn(email, 'a new password')).status, 200)
  })

  test('the audit trail has each failure with its address, and one lock', async () => {
    const email = await registerAddress()
    await lockOut(email)
    await logIn(email, PASSWORD)
    const rows = await query(
      `select kind, data ->> 'outcome' as outcome, address from audit_event
      where account_id = (select id from account where email = $1) and kind ~ 'failed|locked' order by id`,
      [email],
    )
    assert.deepEqual(
      rows.map(({ kind, outcome }) => [kind, outcome]),
      [
        ['account.sign_in_failed', 'wrong'],
        ['account.sign_in_failed', 'wrong'],
        ['account.sign_in_failed', 'wrong, now locked'],
        ['account.locked', null],
        ['account.sign_in_failed', 'locked'],
      ],
    )
    assert.ok(rows.every(({ address }) => address === '127.0.0.1'))
  })
})
