import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { hashSync } from '@node-rs/argon2'
import bcrypt from 'bcryptjs'
import { computeCode, computeCurrentStep } from '../totp.ts'
import { createCast, logIn } from './accounts-help.ts'
import { createEmail, startEdgeAndDatabase } from './harness.ts'
import { createMailbox } from './mailbox.ts'
import { enableTotp, signInWith, TOTP_PATH } from './totp-help.ts'

/** Passwords and codes whose letters have several encodings in Unicode. */

const { api, url, query, db } = await startEdgeAndDatabase()
const readMails = createMailbox({ url, query, db })
const { admin } = await createCast(api)

const COMPOSED = 'Müller-café-ﬁsch'.normalize('NFC')
const DECOMPOSED = COMPOSED.normalize('NFD')
const NORMALIZED = COMPOSED.normalize('NFKC')
const FORMS = [COMPOSED, DECOMPOSED, NORMALIZED]
const toFullWidth = (text: string): string =>
  text.replace(/[!-~]/g, (letter) => String.fromCodePoint(letter.codePointAt(0)! + 0xfee0))

const register = (password: string, email = createEmail()) =>
  api.post('/api/v1/auth/register', { json: { email, password } })
const readHash = async (email: string): Promise<string> =>
  (await query('select password_hash from account where email = $1', [email]))[0]!.password_hash as string

async function assertSignsIn(email: string, forms: readonly string[] = FORMS): Promise<void> {
  for (const form of forms) assert.equal((await logIn(api, email, form)).status, 200, JSON.stringify(form))
  assert.equal((await logIn(api, email, 'Muller-cafe-fisch')).status, 401)
}

describe('a password', () => {
  test('signs in whichever way its letters are encoded', async () => {
    for (const form of FORMS) {
      const { json } = await register(form)
      await assertSignsIn(json.email)
    }
  })

  test('stays the same after a change and a reset', async () => {
    const { email, token } = await api.register(createEmail())
    const changed = await api.post('/api/v1/auth/change-password', {
      token,
      json: { current_password: 'correct horse', new_password: DECOMPOSED },
    })
    assert.equal(changed.status, 200, changed.text)
    await assertSignsIn(email)
    for (const form of FORMS) {
      const again = { current_password: form, new_password: DECOMPOSED }
      assert.equal((await api.post('/api/v1/auth/change-password', { token, json: again })).status, 200)
    }
    await readMails()
    await api.post('/api/v1/auth/password-reset/request', { json: { email } })
    const [mail] = await readMails()
    const json = { token: mail!.token, new_password: DECOMPOSED }
    assert.equal((await api.post('/api/v1/auth/password-reset/confirm', { json })).status, 200)
    await assertSignsIn(email)
  })

  test('proves the identity of a caller in any encoding', async () => {
    const { json, cookie } = await register(COMPOSED).then((a) => ({
      json: a.json,
      cookie: a.cookie('millrace_session'),
    }))
    await query("update session set created_at = now() - interval '1 hour' where account_id = $1", [json.id])
    const begin = (password: string) => api.post(TOTP_PATH, { token: cookie, json: { password } })
    for (const form of FORMS) assert.equal((await begin(form)).status, 200)
    assert.equal((await begin(`${COMPOSED}!`)).status, 400)
  })

  test('is checked against the rules in its normalized form', async () => {
    assert.equal((await register('e\u0301'.repeat(7))).json.code, 'account.password_short')
    assert.equal((await register(toFullWidth('password'))).json.code, 'account.password_common')
    assert.equal((await register('é'.repeat(8))).status, 200)
  })
})

describe('an imported password', () => {
  const importHash = async (password_hash: string) => {
    const email = createEmail()
    const json = { accounts: [{ email, password_hash }] }
    const { status, text } = await api.post('/api/v1/auth/users/import', { token: admin.token, json })
    assert.equal(status, 200, text)
    return email
  }

  test('signs in as the other system hashed it, and is then stored normalized', async () => {
    const options = { memoryCost: 64, timeCost: 1, parallelism: 1 }
    for (const form of FORMS)
      for (const stored of [bcrypt.hashSync(form, 4), hashSync(form, { ...options, algorithm: 2 })]) {
        const email = await importHash(stored)
        assert.equal((await logIn(api, email, 'Muller-cafe-fisch')).status, 401)
        assert.equal((await logIn(api, email, form)).status, 200)
        await assertSignsIn(email)
      }
  })

  test('keeps its hash after a wrong password', async () => {
    const stored = bcrypt.hashSync(DECOMPOSED, 4)
    const email = await importHash(stored)
    for (const wrong of ['wrong', 'wröng'.normalize('NFD')])
      assert.equal((await logIn(api, email, wrong)).status, 401)
    assert.equal(await readHash(email), stored)
  })
})

describe('a one-time code', () => {
  test('may have full-width digits and spaces around it', async () => {
    const person = await enableTotp(api, await api.register(createEmail()))
    const code = computeCode(person.secret, computeCurrentStep())
    const typed = ` ${toFullWidth(code.slice(0, 3))}\u3000${toFullWidth(code.slice(3))} `
    assert.equal((await signInWith(api, person.email, { totp_code: typed })).status, 200)
    const [recovery, other] = person.recoveryCodes
    for (const typed of [toFullWidth(recovery!), other!.replaceAll('-', '\u2013')])
      assert.equal((await signInWith(api, person.email, { recovery_code: typed })).status, 200, typed)
  })
})
