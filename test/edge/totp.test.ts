import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { insertMailedToken } from '../../sql/accounts/accounts.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { digestOf, digestRecoveryCode } from '../../tasks/accounts/tokens.ts'
import { mailedTokenOf } from '../keys.ts'
import { computeCode, computeCurrentStep, decodeBase32 } from '../totp.ts'
import { assertRefused, getMe, getSharedCast, logIn, refreshSession, sessionIdOf } from './accounts-help.ts'
import { requestKey } from './api-keys-help.ts'
import { type Account, type Answered, PASSWORD, startEdge } from './harness.ts'
import { enableTotp, signInWith, TOTP_PATH } from './totp-help.ts'

/** Tests how one-time codes are enabled, required at sign-in, accepted once, and disabled. */

const { api, query, url, db, admin, newcomer } = await getSharedCast()
const otherEdge = await startEdge(url)
// The default of LOGIN_MAX_FAILURES.
const MAX_FAILURES = 5
const CODE_REQUIRED = {
  detail: 'This account also requires a one-time code or a recovery code',
  code: 'auth.totp_required',
}
const CODE_WRONG = {
  detail: 'The code is incorrect or already used; wait for the next one',
  code: 'auth.totp_wrong',
}
const LOCKED = 'This account is locked after too many failed logins; try again later'

const beginSetup = (token: string, json: object = {}) => api.post(TOTP_PATH, { token, json })
const confirm = (token: string, code: string) => api.post(`${TOTP_PATH}/confirm`, { token, json: { code } })
const disableTotp = (token: string, json: object) => api.call('DELETE', TOTP_PATH, { token, json })
const renewRecoveryCodes = (token: string, json: object) =>
  api.post(`${TOTP_PATH}/recovery-codes`, { token, json })
const readState = async (token: string) => (await api.get(TOTP_PATH, { token })).json
const createSecuredAccount = async () => enableTotp(api, await newcomer())
/** Makes the account's session an hour old. */
const ageSession = ({ token }: Account) =>
  query(`update session set created_at = now() - interval '1 hour' where id = $1`, [sessionIdOf(token)])
function assertCodeRequired(answer: Answered, body: object): void {
  assert.deepEqual([answer.status, answer.json], [401, body])
  assert.equal(answer.headers['www-authenticate'], 'Bearer realm="Millrace"')
  assert.deepEqual(answer.cookies, [])
}
const countFailures = async ({ email }: Account): Promise<number> =>
  (
    await query(
      'select coalesce(max(failures), 0) as n from login_failure where subject = sha256($1::bytea)',
      [Buffer.from(email)],
    )
  )[0]!.n as number
const readAuditEvents = async ({ id }: Account): Promise<[string, object][]> =>
  (await api.get(`/api/v1/auth/audit?account_id=${id}&sort=at`, { token: admin.token })).json.events.map(
    ({ kind, data }: { kind: string; data: object }) => [kind, data],
  )

describe('enabling one-time codes', () => {
  test('requires no codes until the first is confirmed, and then shows ten recovery codes once', async () => {
    const person = await newcomer()
    assert.deepEqual(await readState(person.token), {
      is_on: false,
      confirmed_at: null,
      recovery_codes_left: 0,
    })
    const begun = await beginSetup(person.token)
    assert.deepEqual([begun.status, Object.keys(begun.json)], [200, ['secret', 'uri']])
    assert.equal(begun.headers['cache-control'], 'no-store')
    assert.equal(new URL(begun.json.uri).searchParams.get('secret'), begun.json.secret)
    assert.equal((await logIn(api, person.email)).status, 200)
    assert.equal((await readState(person.token)).is_on, false)
    const secret = decodeBase32(begun.json.secret)
    const wrong = await confirm(person.token, computeCode(secret, computeCurrentStep(5)))
    assertRefused(wrong, 400, "The code is incorrect; check the device's clock")
    const confirmed = await confirm(person.token, computeCode(secret, computeCurrentStep()))
    assert.deepEqual([confirmed.status, confirmed.json.recovery_codes.length], [200, 10])
    assert.equal(confirmed.headers['cache-control'], 'no-store')
    const { confirmed_at, ...now } = await readState(person.token)
    assert.deepEqual(now, { is_on: true, recovery_codes_left: 10 })
    assert.ok(Math.abs(Date.parse(confirmed_at) - Date.now()) < 60_000)
    assertCodeRequired(await logIn(api, person.email), CODE_REQUIRED)
    for (const again of [
      await beginSetup(person.token),
      await confirm(person.token, computeCode(secret, computeCurrentStep(1))),
    ])
      assertRefused(again, 409, 'One-time codes are already enabled; disable them first')
    assert.equal((await getMe(api, person.token)).status, 200)
  })

  test('stores neither the secret nor recovery codes', async () => {
    const { id, secret, recoveryCodes } = await createSecuredAccount()
    const [row] = await query('select * from account_totp where account_id = $1', [id])
    const text = JSON.stringify({ ...row, recovery_codes: (row!.recovery_codes as Buffer[]).map(String) })
    for (const hidden of [secret.toString('hex'), secret.toString('base64'), ...recoveryCodes])
      assert.ok(!text.includes(hidden.replaceAll('-', '')))
    const digests = (row!.recovery_codes as Buffer[]).map((one) => one.toString('hex'))
    assert.deepEqual(
      digests,
      recoveryCodes.map((code) => digestRecoveryCode(code).toString('hex')),
    )
  })

  test('returns the same for the same Idempotency-Key, without storing a secret', async () => {
    const { token } = await newcomer()
    const keys = [randomUUID(), randomUUID()]
    const twice = async (path: string, key: string, json: object) => {
      const send = (edge: typeof api) => edge.post(path, { token, json, headers: { 'idempotency-key': key } })
      const [first, second] = [await send(api), await send(otherEdge)]
      assert.equal(first.status, 200, first.text)
      assert.equal(second.text, first.text)
      return first.json
    }
    const { secret } = await twice(TOTP_PATH, keys[0]!, {})
    const code = computeCode(decodeBase32(secret), computeCurrentStep())
    const { recovery_codes } = await twice(`${TOTP_PATH}/confirm`, keys[1]!, { code })
    const kept = JSON.stringify(await query('select body from idempotency_key where key = any($1)', [keys]))
    for (const hidden of [secret, ...recovery_codes]) assert.ok(!kept.includes(hidden))
  })

  test('counts only the last secret when repeated', async () => {
    const { token } = await newcomer()
    const [first, second] = [await beginSetup(token), await beginSetup(token)]
    assert.notEqual(first.json.secret, second.json.secret)
    assert.equal(
      (await confirm(token, computeCode(decodeBase32(first.json.secret), computeCurrentStep()))).status,
      400,
    )
    assert.equal(
      (await confirm(token, computeCode(decodeBase32(second.json.secret), computeCurrentStep()))).status,
      200,
    )
  })

  test('requires a sign-in within the last ten minutes, or the password', async () => {
    const person = await newcomer()
    await ageSession(person)
    const detail =
      'This requires the password (and a one-time code, if enabled) or a sign-in within the last 10 minutes'
    assertRefused(await beginSetup(person.token), 403, detail)
    // A refreshed session does not count as a new sign-in.
    const refreshed = await refreshSession(api, person.refresh)
    assertRefused(await beginSetup(refreshed.json.access_token), 403, detail)
    const wrong = await beginSetup(person.token, { password: 'not the password' })
    assertRefused(wrong, 400, 'The password or the code is incorrect')
    assert.equal(await countFailures(person), 1)
    assert.equal((await beginSetup(person.token, { password: PASSWORD })).status, 200)
    assert.equal(await countFailures(person), 0)
  })

  test('gives recovery codes to one of two concurrent confirmations', async () => {
    const { token } = await newcomer()
    const secret = decodeBase32((await beginSetup(token)).json.secret)
    const json = { code: computeCode(secret, computeCurrentStep()) }
    const answers = await Promise.all(
      [api, otherEdge].map((edge) => edge.post(`${TOTP_PATH}/confirm`, { token, json })),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409])
    assert.equal((await readState(token)).recovery_codes_left, 10)
  })

  test('cannot be confirmed before it starts, and rejects malformed codes', async () => {
    const { token } = await newcomer()
    assertRefused(
      await confirm(token, '123456'),
      409,
      'Call POST /api/v1/auth/totp first; it returns the secret',
    )
    for (const code of ['', '12345', '1234567', '12345a', '१२३४५६', 123456, null, ['123456']])
      assert.equal((await api.post(`${TOTP_PATH}/confirm`, { token, json: { code } })).status, 422, `${code}`)
  })
})

describe('a sign-in with one-time codes', () => {
  test('requires the password and a code, and the audit trail names which kind', async () => {
    const person = await createSecuredAccount()
    assertCodeRequired(await logIn(api, person.email), CODE_REQUIRED)
    assert.equal(await countFailures(person), 0)
    const code = computeCode(person.secret, computeCurrentStep())
    const answer = await signInWith(api, person.email, { totp_code: `${code.slice(0, 3)} ${code.slice(3)}` })
    assert.equal(answer.status, 200, answer.text)
    assert.equal((await getMe(api, answer.json.access_token)).status, 200)
    const [recovery_code] = person.recoveryCodes
    assert.equal((await signInWith(api, person.email, { recovery_code: recovery_code! })).status, 200)
    const events = (await readAuditEvents(person)).slice(-4)
    assert.deepEqual(
      events.map(([kind]) => kind),
      ['account.totp_enabled', 'account.totp_asked', 'account.signed_in', 'account.signed_in'],
    )
    assert.deepEqual(
      events.slice(2).map(([, data]) => (data as { factor: string }).factor),
      ['totp', 'recovery_code'],
    )
  })

  test('accepts a code once, and no earlier one', async () => {
    const person = await createSecuredAccount()
    const [now, next] = [
      computeCode(person.secret, computeCurrentStep()),
      computeCode(person.secret, computeCurrentStep(1)),
    ]
    assert.equal((await signInWith(api, person.email, { totp_code: next })).status, 200)
    for (const used of [next, now])
      for (const edge of [api, otherEdge])
        assertCodeRequired(await signInWith(edge, person.email, { totp_code: used }), CODE_WRONG)
    assert.equal(await countFailures(person), 4)
  })

  test('rejects the code that enabled them', async () => {
    const { email, token } = await newcomer()
    const secret = decodeBase32((await beginSetup(token)).json.secret)
    const code = computeCode(secret, computeCurrentStep())
    assert.equal((await confirm(token, code)).status, 200)
    assertCodeRequired(await signInWith(api, email, { totp_code: code }), CODE_WRONG)
  })

  test('accepts one of several concurrent uses of a code across edges', async () => {
    for (let round = 0; round < 5; round++) {
      const person = await createSecuredAccount()
      const [recovery_code] = person.recoveryCodes
      for (const factor of [
        { totp_code: computeCode(person.secret, computeCurrentStep()) },
        { recovery_code: recovery_code! },
      ]) {
        await query('delete from login_failure')
        const edges = [api, otherEdge, api, otherEdge]
        const answers = await Promise.all(edges.map((edge) => signInWith(edge, person.email, factor)))
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401, 401, 401])
      }
      assert.equal((await readState(person.token)).recovery_codes_left, 9)
    }
  })

  test('accepts a recovery code once, in any spelling', async () => {
    const person = await createSecuredAccount()
    const code = person.recoveryCodes[3]!
    const typed = { recovery_code: ` ${code.toUpperCase().replaceAll('-', ' ')} ` }
    assert.equal((await signInWith(api, person.email, typed)).status, 200)
    for (const again of [typed, { recovery_code: code }])
      assertCodeRequired(await signInWith(api, person.email, again), CODE_WRONG)
    assert.equal((await readState(person.token)).recovery_codes_left, 9)
  })

  test('reveals nothing about a code without the right password', async () => {
    const person = await createSecuredAccount()
    const [recovery_code] = person.recoveryCodes
    for (const factor of [
      {},
      { totp_code: computeCode(person.secret, computeCurrentStep()) },
      { recovery_code: recovery_code! },
    ]) {
      const form = { username: person.email, password: 'not the password', ...factor }
      assertRefused(await api.post('/api/v1/auth/token', { form }), 401, 'Incorrect email or password')
    }
    // The wrong passwords used up neither the code nor the recovery code.
    await query('delete from login_failure')
    assert.equal((await signInWith(api, person.email, { recovery_code: recovery_code! })).status, 200)
    assert.equal(
      (await signInWith(api, person.email, { totp_code: computeCode(person.secret, computeCurrentStep()) }))
        .status,
      200,
    )
  })

  test('rejects a code of another account', async () => {
    const [one, two] = [await createSecuredAccount(), await createSecuredAccount()]
    assertCodeRequired(
      await signInWith(api, one.email, { totp_code: computeCode(two.secret, computeCurrentStep()) }),
      CODE_WRONG,
    )
    assertCodeRequired(await signInWith(api, one.email, { recovery_code: two.recoveryCodes[0]! }), CODE_WRONG)
  })

  test('locks after as many wrong codes as wrong passwords, whatever happens between', async () => {
    const person = await createSecuredAccount()
    const wrong = () =>
      signInWith(api, person.email, { totp_code: computeCode(person.secret, computeCurrentStep(100)) })
    for (let i = 0; i < MAX_FAILURES; i++) {
      // A sign-in with only the password does not reset the count.
      assertCodeRequired(await logIn(api, person.email), CODE_REQUIRED)
      assertCodeRequired(await wrong(), CODE_WRONG)
    }
    const right = { totp_code: computeCode(person.secret, computeCurrentStep()) }
    for (const answer of [
      await wrong(),
      await logIn(api, person.email),
      await signInWith(api, person.email, right),
    ])
      assertRefused(answer, 403, LOCKED)
    await query('delete from login_failure')
    assert.equal((await signInWith(api, person.email, right)).status, 200)
  })

  test('of a deactivated account is rejected as before, after the code', async () => {
    const person = await createSecuredAccount()
    await api.call('PATCH', `/api/v1/auth/users/${person.id}/deactivate`, { token: admin.token })
    assertCodeRequired(await logIn(api, person.email), CODE_REQUIRED)
    const answer = await signInWith(api, person.email, {
      totp_code: computeCode(person.secret, computeCurrentStep()),
    })
    assertRefused(answer, 403, 'This account is deactivated')
  })

  test('ignores any code if the account has none', async () => {
    const { email } = await newcomer()
    assert.equal((await signInWith(api, email, { totp_code: '123456' })).status, 200)
  })

  test('rejects malformed codes', async () => {
    const { email } = await createSecuredAccount()
    for (const factor of [
      { totp_code: '' },
      { totp_code: '12345' },
      { totp_code: '1234567' },
      { recovery_code: 'x' },
    ])
      assert.equal((await signInWith(api, email, factor)).status, 422)
  })
})

describe('one-time codes are not required', () => {
  test('for API keys, or for existing sessions', async () => {
    const person = await createSecuredAccount()
    const made = await requestKey(api, person, { scopes: ['*:write'] })
    assert.equal((await getMe(api, made.json.key)).status, 200)
    assert.equal((await refreshSession(api, person.refresh)).status, 200)
  })
})

test('a password reset by mail does not disable them once the address is verified', async () => {
  const person = await createSecuredAccount()
  await query('update account set is_verified = true where id = $1', [person.id])
  const id = uuidv7()
  const token = mailedTokenOf('reset', id)
  await db.one(insertMailedToken(id, person.id, 'reset', digestOf(token), 3600))
  const json = { token, new_password: 'another password' }
  assert.equal((await api.post('/api/v1/auth/password-reset/confirm', { json })).status, 200)
  const signIn = (more: object = {}) =>
    api.post('/api/v1/auth/token', {
      form: { username: person.email, password: 'another password', ...more },
    })
  assertCodeRequired(await signIn(), CODE_REQUIRED)
  assert.equal((await signIn({ totp_code: computeCode(person.secret, computeCurrentStep()) })).status, 200)
})

test('concurrent actions give only documented answers', async () => {
  const people = await Promise.all([createSecuredAccount(), createSecuredAccount(), createSecuredAccount()])
  const acts = people.flatMap((person) => {
    const { id, email, token, secret, recoveryCodes } = person
    const proof = { password: PASSWORD, recovery_code: recoveryCodes[1]! }
    return [
      ...[api, otherEdge, api].map((edge) =>
        signInWith(edge, email, { totp_code: computeCode(secret, computeCurrentStep()) }),
      ),
      signInWith(otherEdge, email, { recovery_code: recoveryCodes[0]! }),
      signInWith(api, email, { totp_code: computeCode(secret, computeCurrentStep(100)) }),
      logIn(otherEdge, email),
      beginSetup(token),
      renewRecoveryCodes(token, proof),
      disableTotp(token, proof),
      otherEdge.call('DELETE', `/api/v1/auth/users/${id}/totp`, { token: admin.token }),
      beginSetup(token),
      confirm(token, computeCode(secret, computeCurrentStep())),
      api.call('DELETE', '/api/v1/auth/sessions', { token }),
    ]
  })
  const statuses = (await Promise.all(acts)).map(({ status }) => status)
  assert.deepEqual(
    statuses.filter((status) => status >= 500),
    [],
  )
})

describe('disabling one-time codes and renewing recovery codes', () => {
  test('requires password and code, and counts wrong ones as failed logins', async () => {
    const person = await createSecuredAccount()
    const { token, secret, recoveryCodes } = person
    const [used, kept] = recoveryCodes as [string, string]
    for (const act of [disableTotp, renewRecoveryCodes]) {
      for (const json of [
        {},
        { password: PASSWORD },
        { totp_code: '123456' },
        { password: PASSWORD, totp_code: '123456', recovery_code: kept },
      ])
        assert.equal((await act(token, json)).status, 422, JSON.stringify(json))
      for (const json of [
        { password: PASSWORD, totp_code: computeCode(secret, computeCurrentStep(100)) },
        { password: 'not the password', recovery_code: kept },
      ])
        assertRefused(await act(token, json), 400, 'The password or the code is incorrect')
    }
    assert.equal(await countFailures(person), 4)
    const renewed = await renewRecoveryCodes(token, { password: PASSWORD, recovery_code: used })
    assert.equal(renewed.status, 200, renewed.text)
    assert.equal(new Set([...renewed.json.recovery_codes, ...recoveryCodes]).size, 20)
    assert.equal(await countFailures(person), 0)
    for (const old of [used, kept])
      assertRefused(
        await disableTotp(token, { password: PASSWORD, recovery_code: old }),
        400,
        'The password or the code is incorrect',
      )
    const off = await disableTotp(token, {
      password: PASSWORD,
      totp_code: computeCode(secret, computeCurrentStep()),
    })
    assert.deepEqual([off.status, off.text], [204, ''])
    assert.equal((await logIn(api, person.email)).status, 200)
    for (const act of [disableTotp, renewRecoveryCodes])
      assertRefused(
        await act(token, { password: PASSWORD, totp_code: '123456' }),
        409,
        'One-time codes are not enabled',
      )
    const kinds = (await readAuditEvents(person)).map(([kind]) => kind)
    for (const kind of ['account.recovery_codes_renewed', 'account.totp_disabled'])
      assert.ok(kinds.includes(kind))
  })

  test('locks the account like failed logins', async () => {
    const person = await createSecuredAccount()
    const json = { password: PASSWORD, totp_code: computeCode(person.secret, computeCurrentStep(100)) }
    for (let i = 0; i < MAX_FAILURES; i++) assert.equal((await disableTotp(person.token, json)).status, 400)
    assertRefused(await disableTotp(person.token, json), 403, LOCKED)
    assertRefused(await logIn(api, person.email), 403, LOCKED)
  })

  test('is possible for admins, with an audit event, and for no other account', async () => {
    const person = await createSecuredAccount()
    const path = `/api/v1/auth/users/${person.id}/totp`
    const stranger = await newcomer()
    for (const { token } of [stranger, person])
      assert.equal((await api.call('DELETE', path, { token })).status, 403)
    assertCodeRequired(await logIn(api, person.email), CODE_REQUIRED)
    assert.equal((await api.call('DELETE', path, { token: admin.token })).status, 204)
    assert.equal((await logIn(api, person.email)).status, 200)
    assertRefused(
      await api.call('DELETE', path, { token: admin.token }),
      409,
      'One-time codes are not enabled',
    )
    const missing = await api.call('DELETE', '/api/v1/auth/users/2000000000/totp', { token: admin.token })
    assertRefused(missing, 404, 'User not found')
    const [event] = await query(
      `select actor_id from audit_event where kind = 'account.totp_disabled' and account_id = $1`,
      [person.id],
    )
    assert.equal(event!.actor_id, admin.id)
  })

  test('is followed by a new secret when enabled again', async () => {
    const first = await createSecuredAccount()
    await disableTotp(first.token, { password: PASSWORD, recovery_code: first.recoveryCodes[0]! })
    const second = await enableTotp(api, first)
    assert.notDeepEqual(second.secret, first.secret)
    assertCodeRequired(
      await signInWith(api, first.email, { totp_code: computeCode(first.secret, computeCurrentStep()) }),
      CODE_WRONG,
    )
    assertCodeRequired(
      await signInWith(api, first.email, { recovery_code: first.recoveryCodes[1]! }),
      CODE_WRONG,
    )
  })
})
