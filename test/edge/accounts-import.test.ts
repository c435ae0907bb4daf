import assert from 'node:assert/strict'
import { createHash, pbkdf2Sync, randomUUID, scryptSync } from 'node:crypto'
import { describe, test } from 'node:test'
import { hashSync } from '@node-rs/argon2'
import bcrypt from 'bcryptjs'
import { findHashProblem } from '../../edge/passwords/hashes.ts'
import { assertRefused, createCast, logIn } from './accounts-help.ts'
import { PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'
import { enableTotp, signInWith } from './totp-help.ts'

const env = { LOGIN_MAX_FAILURES: '5' }
const { api, query, url } = await startEdgeAndDatabase({ env })
const otherEdge = await startEdge(url, { env })
const { admin, moderator, user } = await createCast(api)
const IMPORT_PATH = '/api/v1/auth/users/import'
const post = (accounts: unknown, token = admin.token, headers = {}) =>
  api.post(IMPORT_PATH, { token, json: { accounts }, headers })

let count = 0
const newAddress = (): string => `imported${++count}@example.com`
const encodeBase64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64').replace(/=+$/, '')
const salt = Buffer.from('a salt of sixteen')
const FOREIGN_HASHES = {
  'bcrypt, 2b': bcrypt.hashSync(PASSWORD, 4),
  'bcrypt, 2y': bcrypt.hashSync(PASSWORD, 4).replace('$2b$', '$2y$'),
  'bcrypt, 2a': bcrypt.hashSync(PASSWORD, 4).replace('$2b$', '$2a$'),
  scrypt: `$scrypt$ln=4,r=8,p=2$${encodeBase64(salt)}$${encodeBase64(scryptSync(PASSWORD, salt, 32, { N: 16, r: 8, p: 2 }))}`,
  argon2id: hashSync(PASSWORD, { algorithm: 2, memoryCost: 128, timeCost: 3, parallelism: 2 }),
  argon2i: hashSync(PASSWORD, { algorithm: 1, memoryCost: 64, timeCost: 1 }),
  PBKDF2: `$pbkdf2-sha256$1000$${encodeBase64(salt)}$${encodeBase64(pbkdf2Sync(PASSWORD, salt, 1000, 32, 'sha256')).replaceAll('+', '.')}`,
  'Django, PBKDF2': `pbkdf2_sha256$1000$${salt}$${pbkdf2Sync(PASSWORD, salt, 1000, 32, 'sha256').toString('base64')}`,
  'Django, bcrypt': `bcrypt_sha256$${bcrypt.hashSync(createHash('sha256').update(PASSWORD).digest('hex'), 4)}`,
  'Django, argon2': `argon2${hashSync(PASSWORD, { memoryCost: 64, timeCost: 1 })}`,
  argon2d: hashSync(PASSWORD, { algorithm: 0, memoryCost: 64, timeCost: 1, version: 0 }),
}
const BCRYPT_HASH = FOREIGN_HASHES['bcrypt, 2b']
const OWN_HASH_PATTERN = /^\$argon2id\$v=19\$m=64,t=1,p=1\$/

async function importAccount(password_hash = BCRYPT_HASH, more: object = {}) {
  const email = newAddress()
  const answer = await post([{ email, password_hash, ...more }])
  assert.equal(answer.status, 200, answer.text)
  return { id: answer.json.accounts[0].id as number, email }
}
const readStoredHash = async (email: string): Promise<string> =>
  (await query('select password_hash from account where email = $1', [email]))[0]!.password_hash as string

describe('imported rows', () => {
  test('get their results in request order', async () => {
    const [one, two] = [newAddress(), newAddress()]
    const answer = await post([
      {
        email: ` ${one.toUpperCase()} `,
        password_hash: BCRYPT_HASH,
        full_name: ' Ann ',
        role: 'moderator',
        is_verified: true,
      },
      { email: admin.email, password_hash: BCRYPT_HASH },
      { email: 'nobody', password_hash: BCRYPT_HASH },
      { email: newAddress(), password_hash: 'correct horse' },
      { email: newAddress(), password_hash: '$2b$31$'.padEnd(60, 'a') },
      { email: newAddress(), password_hash: BCRYPT_HASH, role: 'root' },
      { email: newAddress(), password_hash: BCRYPT_HASH, id: 7 },
      { email: newAddress() },
      { email: one, password_hash: BCRYPT_HASH, role: 'admin' },
      { email: two, password_hash: BCRYPT_HASH, is_active: false, full_name: null },
    ])
    assert.equal(answer.status, 200, answer.text)
    const { accounts, ...counts } = answer.json
    assert.deepEqual(counts, { created: 2, exists: 2, invalid: 6 })
    const rows = accounts.map(({ status, email, reason }: Record<string, string | null>) => [
      status,
      email,
      reason,
    ])
    assert.deepEqual(rows.slice(0, 2), [
      ['created', one, null],
      ['exists', admin.email, null],
    ])
    const reasons = rows.slice(2, 8).map(([status, email, reason]: [string, string | null, string]) => {
      assert.deepEqual([status, email], ['invalid', null])
      return reason
    })
    assert.deepEqual(reasons, [
      'email: Invalid email address',
      `password_hash: ${findHashProblem('correct horse')}`,
      'password_hash: the cost of bcrypt must be 4 to 12',
      'role: Invalid option: expected one of "user"|"moderator"|"admin"',
      'Unrecognized key: "id"',
      'password_hash: Invalid input: expected string, received undefined',
    ])
    assert.deepEqual(rows.slice(8), [
      ['exists', one, null],
      ['created', two, null],
    ])
    const [first, last] = [accounts[0].id, accounts[9].id]
    const get = async (id: number) => (await api.get(`/api/v1/auth/users/${id}`, { token: admin.token })).json
    const { created_at: _, ...ann } = await get(first)
    assert.deepEqual(ann, {
      ...{ id: first, email: one, full_name: 'Ann', is_active: true, is_verified: true, role: 'moderator' },
      ...{ last_login: null, updated_at: null, deletion_at: null },
    })
    assert.deepEqual([(await get(last)).is_active, (await get(last)).role], [false, 'user'])
    const events = await query(
      `select account_id, actor_id, data from audit_event where kind = 'account.imported' order by account_id`,
    )
    assert.deepEqual(events, [
      { account_id: first, actor_id: admin.id, data: { role: 'moderator' } },
      { account_id: last, actor_id: admin.id, data: { role: 'user' } },
    ])
  })

  test('must number between 1 and 1000', async () => {
    const many = (n: number) =>
      Array.from({ length: n }, () => ({ email: newAddress(), password_hash: BCRYPT_HASH }))
    const answer = await post(many(1000))
    assert.deepEqual([answer.status, answer.json.created], [200, 1000], answer.text.slice(0, 200))
    for (const wrong of [
      many(1001),
      [],
      {},
      'x',
      undefined,
      [null],
      ['x'],
      [{ ...many(1)[0], full_name: '\0' }],
    ])
      assert.equal((await post(wrong)).status, 422)
  })

  test('are accepted from admins only', async () => {
    const rows = [{ email: newAddress(), password_hash: BCRYPT_HASH }]
    for (const { token } of [moderator, user]) assert.equal((await post(rows, token)).status, 403)
    assert.equal((await api.post(IMPORT_PATH, { json: { accounts: rows } })).status, 401)
  })

  test('are added once per Idempotency-Key', async () => {
    const headers = { 'idempotency-key': randomUUID() }
    const rows = [{ email: newAddress(), password_hash: BCRYPT_HASH }]
    const [first, second] = [await post(rows, admin.token, headers), await post(rows, admin.token, headers)]
    assert.equal(first.json.created, 1)
    assert.equal(second.text, first.text)
    assert.ok(!first.text.includes('$2b$'))
  })

  test('are added once by two concurrent imports with opposite orders', async () => {
    const rows = Array.from({ length: 300 }, () => ({ email: newAddress(), password_hash: BCRYPT_HASH }))
    const answers = await Promise.all([post(rows), post(rows.toReversed()), post(rows)])
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
    )
    assert.equal(
      answers.reduce((sum, { json }) => sum + json.created, 0),
      300,
    )
  })
})

describe('the first sign-in', () => {
  for (const [what, hash] of Object.entries(FOREIGN_HASHES))
    test(`replaces ${what}`, async () => {
      const { email } = await importAccount(hash)
      assert.equal(await readStoredHash(email), hash)
      assertRefused(await logIn(api, email, 'wrong horse'), 401, 'Incorrect email or password')
      assert.equal(await readStoredHash(email), hash)
      assert.equal((await logIn(api, email)).status, 200)
      const own = await readStoredHash(email)
      assert.match(own, OWN_HASH_PATTERN)
      assert.equal((await logIn(api, email)).status, 200)
      assert.equal(await readStoredHash(email), own)
      assertRefused(await logIn(api, email, 'wrong horse'), 401, 'Incorrect email or password')
    })

  test('succeeds for concurrent attempts, which store one hash', async () => {
    for (let round = 0; round < 5; round++) {
      const { email } = await importAccount()
      const edges = [api, otherEdge, api, otherEdge]
      const answers = await Promise.all(edges.map((edge) => logIn(edge, email)))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200],
      )
      assert.match(await readStoredHash(email), OWN_HASH_PATTERN)
    }
  })

  test('accepts a recovery code for one of several concurrent attempts', async () => {
    const { email } = await importAccount()
    const first = await logIn(api, email)
    const { id } = (await api.get('/api/v1/auth/me', { token: first.json.access_token })).json
    const token = first.json.access_token
    const person = await enableTotp(api, { id, email, token, refresh: '', role: 'user' })
    for (const recovery_code of person.recoveryCodes.slice(0, 5)) {
      await query('update account set password_hash = $2 where email = $1', [email, BCRYPT_HASH])
      await query('delete from login_failure')
      const answers = await Promise.all(
        [api, otherEdge, api].map((edge) => signInWith(edge, email, { recovery_code })),
      )
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401, 401])
    }
  })

  test('counts failures and locks the account like any other sign-in', async () => {
    const { email } = await importAccount()
    for (let i = 0; i < 5; i++) assert.equal((await logIn(api, email, 'wrong horse')).status, 401)
    assert.equal((await logIn(api, email)).status, 403)
    assert.equal(await readStoredHash(email), BCRYPT_HASH)
  })

  test('is rejected for an account imported as inactive, and its hash stays unchanged', async () => {
    const { email } = await importAccount(BCRYPT_HASH, { is_active: false })
    assertRefused(await logIn(api, email), 403, 'This account is deactivated')
    assert.equal(await readStoredHash(email), BCRYPT_HASH)
  })
})

test('an imported password can be changed', async () => {
  const { email } = await importAccount()
  const { access_token: token } = (await logIn(api, email)).json
  await query('update account set password_hash = $2 where email = $1', [email, BCRYPT_HASH])
  const json = { current_password: PASSWORD, new_password: 'another password' }
  assert.equal((await api.post('/api/v1/auth/change-password', { token, json })).status, 200)
  assert.equal((await logIn(api, email, 'another password')).status, 200)
})
