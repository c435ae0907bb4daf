import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { inviteTokenOf } from '../../tasks/accounts/tokens.ts'
import { SECRET } from '../edge/harness.ts'
import { findFreePort } from '../free-port.ts'
import { TEST_KEYS } from '../keys.ts'
import { computeCode, computeCurrentStep, decodeBase32, useEarlierCode } from '../totp.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { READER_EMAIL, signIn, startWatchedService } from './watched-service.ts'

/** Tests sign-in with one-time codes and passkeys. */

/** Page code that creates and uses passkeys through the API and the browser's own JSON conversion. */
const PASSKEY_SCRIPT = `
  const post = async (path, body) => {
    const isForm = body instanceof URLSearchParams
    const headers = isForm ? {} : { 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: isForm ? body : JSON.stringify(body) }
    const answer = await fetch('/api/v1/auth' + path, init)
    return { status: answer.status, json: await answer.json() }
  }
  const parse = (kind, options) => PublicKeyCredential['parse' + kind + 'OptionsFromJSON'](options)`

const chromium = findChromium()

describe('sign-in in a browser', { skip: chromium === null && SKIP_REASON, concurrency: false }, async () => {
  if (chromium === null) return
  const port = await findFreePort()
  // Browsers allow passkeys only for host names, and without TLS only for localhost.
  const base = `http://localhost:${port}`
  const settings = { SECRET_KEY: SECRET, PORT: String(port), PUBLIC_BASE_URL: base }
  const { query, open } = await startWatchedService(chromium, settings)
  const CODE = 'Authenticator code or recovery code'
  const WRONG = 'The code is incorrect or already used; wait for the next one'

  /** Enables one-time codes for the reader account. */
  async function enableCodes(): Promise<{ secret: Buffer; recoveryCodes: string[] }> {
    await query('delete from account_totp')
    const post = (path: string, body: unknown, token = '') => {
      const isForm = body instanceof URLSearchParams
      return fetch(`http://127.0.0.1:${port}/api/v1/auth${path}`, {
        method: 'POST',
        headers: {
          ...(token !== '' && { authorization: `Bearer ${token}` }),
          ...(!isForm && { 'content-type': 'application/json' }),
        },
        body: isForm ? body : JSON.stringify(body),
      })
    }
    const answered = async (answer: Response) => {
      assert.equal(answer.status, 200)
      return (await answer.json()) as { access_token: string; secret: string; recovery_codes: string[] }
    }
    const form = new URLSearchParams({ username: READER_EMAIL, password: 'correct horse' })
    const { access_token } = await answered(await post('/token', form))
    const secret = decodeBase32((await answered(await post('/totp', {}, access_token))).secret)
    const confirm = (code: string) => post('/totp/confirm', { code }, access_token)
    return { secret, recoveryCodes: (await answered(await useEarlierCode(secret, confirm))).recovery_codes }
  }

  test('the monitor asks for the code after the right password', async (t) => {
    const { secret } = await enableCodes()
    const page = await open(t, '/monitor')
    assert.equal(await page.getByLabel(CODE).isVisible(), false)
    await signIn(page, READER_EMAIL)
    await page
      .getByRole('alert')
      .getByText('This account also requires a one-time code or a recovery code')
      .waitFor()
    await page.getByLabel(CODE).fill(computeCode(secret, computeCurrentStep(100)))
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText(WRONG).waitFor()
    await page.getByLabel(CODE).fill(computeCode(secret, computeCurrentStep()))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Admins only' }).waitFor()
  })

  test('the monitor accepts a recovery code', async (t) => {
    const { recoveryCodes } = await enableCodes()
    const page = await open(t, '/monitor')
    await signIn(page, READER_EMAIL)
    await page.getByLabel(CODE).fill(recoveryCodes[0]!.toUpperCase())
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Admins only' }).waitFor()
  })

  test("a passkey is created and signs in without another factor, using the browser's own JSON conversion", async (t) => {
    await query('delete from account_totp')
    const page = await open(t, '/docs')
    await page.goto(`${base}/docs`)
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', transport: 'internal', automaticPresenceSimulation: true },
        ...{ hasResidentKey: true, hasUserVerification: true, isUserVerified: true },
      },
    })
    const made = await page.evaluate(`(async () => {${PASSKEY_SCRIPT}
      const username = ${JSON.stringify(READER_EMAIL)}
      await post('/token', new URLSearchParams({ username, password: 'correct horse' }))
      const { json: options } = await post('/passkeys/options', {})
      const credential = await navigator.credentials.create({ publicKey: parse('Creation', options) })
      return post('/passkeys', { credential: credential.toJSON() })
    })()`)
    assert.equal((made as { status: number }).status, 201, JSON.stringify(made))
    await enableCodes()
    await page.context().clearCookies()
    for (let round = 0; round < 2; round++) {
      const answer = await page.evaluate(`(async () => {${PASSKEY_SCRIPT}
        const { json: options } = await post('/passkeys/sign-in/options', {})
        const credential = await navigator.credentials.get({ publicKey: parse('Request', options) })
        return post('/passkeys/sign-in', { credential: credential.toJSON() })
      })()`)
      assert.equal((answer as { status: number }).status, 200, JSON.stringify(answer))
    }
    const me = await page.evaluate(`fetch('/api/v1/auth/me').then((answer) => answer.json())`)
    assert.equal((me as { email: string }).email, READER_EMAIL)
  })

  test('the page that accepts an invite signs in with a passkey, too', async (t) => {
    const { secret } = await enableCodes()
    const [org] = await query(`insert into organization (name, slug) values ('Mill', $1) returning id`, [
      randomUUID(),
    ])
    const [invite] = await query(
      `insert into organization_invite (organization_id, email, role, expires_at)
       values ($1, $2, 'member', now() + interval '1 day') returning id`,
      [org!.id, READER_EMAIL],
    )
    const token = inviteTokenOf(TEST_KEYS, invite!.id as number, READER_EMAIL)
    const page = await open(t, `/accept-invite#token=${token}`)
    await page.getByLabel('Email').fill(READER_EMAIL)
    await page.getByLabel('Password').fill('correct horse')
    assert.equal(await page.getByLabel(CODE).isVisible(), false)
    await page.getByRole('button', { name: 'Accept' }).click()
    await page.getByLabel(CODE).fill(computeCode(secret, computeCurrentStep()))
    await page.getByRole('button', { name: 'Accept' }).click()
    await page.getByText('You are now a member.').waitFor()
    const link = page.getByRole('link', { name: 'Go to the organization' })
    assert.equal(await link.getAttribute('href'), `/organizations/${org!.id}`)
  })

  test('the page that accepts an invite leads to the one that registers the address', async (t) => {
    const email = `${randomUUID()}@example.com`
    const [org] = await query(`insert into organization (name, slug) values ('Mill', $1) returning id`, [
      randomUUID(),
    ])
    const [invite] = await query(
      `insert into organization_invite (organization_id, email, role, expires_at)
       values ($1, $2, 'member', now() + interval '1 day') returning id`,
      [org!.id, email],
    )
    const page = await open(
      t,
      `/accept-invite#token=${inviteTokenOf(TEST_KEYS, invite!.id as number, email)}`,
    )
    await page.getByRole('link', { name: 'No account yet? Register' }).click()
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill('correct horse')
    await page.getByRole('button', { name: 'Register' }).click()
    await page.getByText('Your account is ready.').waitFor()
    const link = page.getByRole('link', { name: 'Go to Mill' })
    assert.equal(await link.getAttribute('href'), `/organizations/${org!.id}`)
    const members = await query('select from organization_member where organization_id = $1', [org!.id])
    assert.equal(members.length, 1)
  })
})
