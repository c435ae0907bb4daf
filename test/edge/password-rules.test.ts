import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ensureAdmin } from '../../edge/admin/admin.ts'
import { StartError } from '../../sql/server/start-error.ts'
import { logIn } from './accounts-help.ts'
import { type Answered, createEmail, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'
import { createMailbox } from './mailbox.ts'

const { api, url, query, db } = await startEdgeAndDatabase()
const readMails = createMailbox({ url, query, db })
const strictEdge = await startEdge(url, {
  env: { PASSWORD_MIN_LENGTH: '12', PASSWORD_MIN_CLASSES: '3', PROJECT_NAME: 'watermill' },
})
const laxEdge = await startEdge(url, { env: { PASSWORD_REFUSE_COMMON: 'false' } })
await api.register(createEmail('admin'))

const COMMON_REFUSAL = [
  422,
  'This is one of the most common passwords; choose another',
  'account.password_common',
] as const
const tooShortRefusal = (min: number) =>
  [
    422,
    `A password needs at least ${min} characters besides the email address and the service name`,
    'account.password_short',
  ] as const
const SIMPLE_REFUSAL = [
  422,
  'A password must mix at least 3 of: lowercase letters, uppercase letters, digits, other characters',
  'account.password_simple',
] as const
function assertRefused({ status, json }: Answered, [code, detail, name]: readonly [number, string, string]) {
  assert.deepEqual([status, json], [code, { detail, code: name }])
}
const register = (password: string, edge = api, email = createEmail()) =>
  edge.post('/api/v1/auth/register', { json: { email, password } })

describe('a new password', () => {
  test('must not be among the most common ones, in any case', async () => {
    for (const password of ['password', 'Password1', '12345678', 'QWERTYUIOP', 'iloveyou', 'trustno1'])
      assertRefused(await register(password), COMMON_REFUSAL)
    for (const password of [PASSWORD, 'password, but longer', 'ünüblich', '🜁'.repeat(8)])
      assert.equal((await register(password)).status, 200, password)
  })

  test('must not be blank, and no common or short one with spaces around', async () => {
    for (const password of [' password', 'password1  ', '\u00a0iloveyou\u3000'])
      assertRefused(await register(password), COMMON_REFUSAL)
    for (const password of ['        ', '\u00a0'.repeat(8), '\t'.repeat(8), '        1', 'letmein  '])
      assertRefused(await register(password), tooShortRefusal(8))
    assert.equal((await register(' a b c d ')).json.code, 'account.password_short')
    assert.equal((await register(' a b c d e ')).status, 200)
  })

  test("must have enough characters besides the address and the service's name", async () => {
    for (const password of [
      'ann.miller2024',
      'Ann.Miller!',
      'ann.miller@example.com',
      '1millrace1',
      'ann.millermillrace',
    ])
      assertRefused(await register(password, api, 'Ann.Miller@example.com'), tooShortRefusal(8))
    assert.equal((await register('ann.miller likes mills', api, 'ann.miller@example.com')).status, 200)
    assert.equal((await register('bob is here', api, 'bob@example.com')).status, 200)
    assert.equal((await register('12345millrace', strictEdge)).json.code, 'account.password_simple')
    assertRefused(await register('1234A-watermill', strictEdge), tooShortRefusal(12))
  })

  test('must have the configured length and character classes', async () => {
    assertRefused(await register('Aa1-Aa1-Aa1', strictEdge), tooShortRefusal(12))
    for (const password of [
      'correct horse',
      'CORRECT-HORSE',
      'Correcthorses',
      '123456-123456',
      'ünüblichÜNÜBLICH',
    ])
      assertRefused(await register(password, strictEdge), SIMPLE_REFUSAL)
    for (const password of ['Correct horse', 'correct horse 1', 'CORRECT-HORSE-1', 'Ünüblich-Ünüblich'])
      assert.equal((await register(password, strictEdge)).status, 200, password)
  })

  test('may be common if configured, but needs eight characters', async () => {
    assert.equal((await register('password', laxEdge)).status, 200)
    assert.equal((await register('millrace1', laxEdge)).status, 200)
    assert.equal((await register('letmein', laxEdge)).json.errors[0].loc[1], 'password')
  })

  test('is rejected whether or not the address is taken', async () => {
    const { email } = await api.register(createEmail())
    assertRefused(await register('password', api, email), COMMON_REFUSAL)
  })
})

test('is rejected at a change before the current password is checked', async () => {
  const { email, token } = await api.register(createEmail('somebody'))
  const change = (new_password: string, current_password = PASSWORD) =>
    api.post('/api/v1/auth/change-password', { token, json: { current_password, new_password } })
  for (const current of [PASSWORD, 'not the password']) {
    assertRefused(await change('password1', current), COMMON_REFUSAL)
    assertRefused(await change(`${email}!`, current), tooShortRefusal(8))
  }
  assert.equal((await logIn(api, email)).status, 200)
  assert.equal((await change('another password')).status, 200)
})

test('is rejected at a reset, and the token stays valid', async () => {
  const { email } = await api.register(createEmail())
  await readMails()
  await api.post('/api/v1/auth/password-reset/request', { json: { email } })
  const [mail] = await readMails()
  const reset = (new_password: string, token = mail!.token) =>
    api.post('/api/v1/auth/password-reset/confirm', { json: { token, new_password } })
  assertRefused(await reset('password'), COMMON_REFUSAL)
  assertRefused(await reset(`1${email}`), tooShortRefusal(8))
  assert.equal((await reset('password', 'no token')).status, 400)
  assert.equal((await logIn(api, email)).status, 200)
  assert.equal((await reset('a new password')).status, 200)
  assert.equal((await logIn(api, email, 'a new password')).status, 200)
})

describe('the password of ADMIN_EMAIL', () => {
  const { edge } = api.serving
  const start = (adminEmail: string, adminPassword: string) =>
    ensureAdmin({ ...edge, settings: { ...edge.settings, adminEmail, adminPassword } })

  test('prevents the start if it is a common one, and no account is created', async () => {
    const email = createEmail('root')
    await assert.rejects(start(email, 'password1'), (error) => {
      assert.ok(error instanceof StartError)
      assert.equal(error.message, `ADMIN_PASSWORD: ${COMMON_REFUSAL[1]}`)
      return true
    })
    assert.deepEqual(await query('select from account where email = $1', [email]), [])
  })

  test('is not checked for an account that keeps its own', async () => {
    const { id, email } = await api.register(createEmail('verified'))
    await query('update account set is_verified = true where id = $1', [id])
    await start(email, 'password1')
    assert.equal((await logIn(api, email)).status, 200)
    assert.deepEqual(await query('select role from account where id = $1', [id]), [{ role: 'admin' }])
  })
})
