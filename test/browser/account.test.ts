import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { SECRET } from '../edge/harness.ts'
import { findFreePort } from '../free-port.ts'
import { emailChangeTokenOf, mailedTokenOf } from '../keys.ts'
import { CLIENT, startOidcIssuer } from '../standins/oidc.ts'
import { startReceiver } from '../standins/receiver.ts'
import { computeCode, computeCurrentStep, decodeBase32 } from '../totp.ts'
import { until } from '../until.ts'
import { findViolations } from './axe.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { findSection, PASSWORD, startWatchedService } from './watched-service.ts'

/** Tests that a person can do everything of an account through the pages: sign-in, credentials, webhooks and data. */

const chromium = findChromium()

describe('the account pages', { skip: chromium === null && SKIP_REASON, concurrency: false }, async () => {
  if (chromium === null) return
  const port = await findFreePort()
  // Browsers allow passkeys only for host names, and without TLS only for localhost.
  const base = `http://localhost:${port}`
  const idp = await startOidcIssuer()
  after(() => idp.stop())
  const { query, open } = await startWatchedService(chromium, {
    ...{ SECRET_KEY: SECRET, PORT: String(port), PUBLIC_BASE_URL: base },
    ...{ OIDC_ISSUER: idp.issuer, OIDC_CLIENT_ID: CLIENT.id, OIDC_CLIENT_SECRET: CLIENT.secret },
    ...{ OIDC_NAME: 'Mill ID', RATE_LIMIT_LOGIN: '0', RATE_LIMIT_REGISTER: '0' },
    ...{ RATE_LIMIT_PASSWORD_RESET: '0', WEBHOOK_RETRY_SECONDS: '600' },
  })

  const visit = async (page: Page, path: string) => {
    await page.goto(`${base}${path}`)
    await page.getByRole('heading', { level: 1 }).first().waitFor()
  }
  const signIn = async (page: Page, email: string, password = PASSWORD) => {
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  }
  const signOut = async (page: Page) => {
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  }
  /** Opens a page as a new account. */
  async function openAs(t: Parameters<typeof open>[0], email: string, path: string): Promise<Page> {
    const page = await open(t, '/docs')
    const json = { email, password: PASSWORD, full_name: 'Ann Miller' }
    const answer = await page.context().request.post(`${base}/api/v1/auth/register`, { data: json })
    assert.equal(answer.status(), 200, await answer.text())
    await visit(page, path)
    return page
  }
  const findDialog = (page: Page, name: string) => page.getByRole('dialog', { name, exact: true })
  const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).click()
  const checkAccess = async (page: Page) => assert.deepEqual(await findViolations(page), [])

  /** Waits for the emailed token of an account. */
  const waitForToken = (kind: 'reset' | 'verify' | 'sign_in', email: string): Promise<string> =>
    until(`there is a token ${kind} for ${email}`, async () => {
      const [row] = await query(
        `select t.id from account_token t join account a on a.id = t.account_id
         where a.email = $1 and t.kind = $2 and t.used_at is null order by t.created_at desc limit 1`,
        [email, kind],
      )
      return row === undefined ? null : mailedTokenOf(kind, row.id as string)
    })

  test('a person registers, verifies the address, and changes name and address', async (t) => {
    const page = await open(t, '/docs')
    const failures: string[] = []
    page.on('response', (answer) => {
      if (answer.status() >= 400) failures.push(answer.url())
    })
    await visit(page, '/account')
    assert.deepEqual(failures, [], 'a first visit fails no request')
    await page.getByLabel('Email').fill('new@example.com')
    assert.equal(await page.getByLabel('Password').getAttribute('type'), 'password')
    await checkAccess(page)
    await page.getByRole('link', { name: 'Create an account' }).click()
    await page.getByRole('heading', { name: 'Create an account' }).waitFor()
    assert.equal(await page.getByLabel('Email').inputValue(), 'new@example.com')
    assert.equal(await page.getByLabel('Password').getAttribute('type'), 'password')
    await page.getByLabel('Password').fill('password')
    await checkAccess(page)
    await press(page, 'Create account')
    await page.getByRole('alert').getByText('most common passwords').waitFor()
    await page.getByLabel('Password').fill(PASSWORD)
    await press(page, 'Create account')
    await page.getByRole('button', { name: 'Sign out' }).waitFor()

    await visit(page, '/account')
    await page.getByText('not verified').waitFor()
    await press(page, 'Email the verification link again')
    await page.getByText('An email with a link is on its way').waitFor()
    await page.goto(`${base}/verify-email#token=${await waitForToken('verify', 'new@example.com')}`)
    await press(page, 'Verify')
    await page.getByText('Your address is verified.').waitFor()
    await page.getByRole('link', { name: 'Continue' }).click()
    await visit(page, '/account')
    await page.getByText('verified', { exact: true }).waitFor()

    await press(page, 'Change name')
    await findDialog(page, 'Change name').getByLabel('Name').fill('Ann Lee Miller')
    await press(page, 'Save')
    await page.getByText('Ann Lee Miller').waitFor()

    await press(page, 'Change email address')
    const change = findDialog(page, 'Change email address')
    await change.getByLabel('New address').fill('newer@example.com')
    await press(page, 'Request the change')
    await page.getByText('Your address is changing to').waitFor()
    await checkAccess(page)
    await press(page, 'Cancel the change to newer@example.com')
    await page.getByText('Your address is changing to').waitFor({ state: 'detached' })
    await press(page, 'Change email address')
    await change.getByLabel('New address').fill('newest@example.com')
    await press(page, 'Request the change')
    await page.getByText('Your address is changing to').waitFor()
    const [{ id }] = (await query('select id from email_change')) as [{ id: string }]
    for (const side of ['old', 'new'] as const) {
      await page.goto(`${base}/email-change#token=${emailChangeTokenOf(side, id)}`)
      await press(page, 'Confirm')
      await page.getByText('Confirmed. The address').waitFor()
      await page.getByRole('link', { name: 'Go to your account' }).click()
      await page.getByRole('heading', { name: 'Account', level: 1 }).waitFor()
    }
    await findSection(page, 'Profile').getByText('newest@example.com').waitFor()
    await findSection(page, 'Quotas').getByText('API keys').waitFor()
  })

  test('a person sets a forgotten password, and signs in with an emailed link or an identity provider', async (t) => {
    const email = 'forgetful@example.com'
    const page = await openAs(t, email, '/account')
    await signOut(page)
    await signIn(page, email, 'wrong horse')
    await page.getByRole('alert').getByText('Incorrect').waitFor()
    await page.getByRole('link', { name: 'Forgot your password?' }).click()
    await page.getByRole('heading', { name: 'Forgot your password?' }).waitFor()
    await checkAccess(page)
    await press(page, 'Email me a link')
    await page.getByText('If the address has an account').waitFor()
    await page.goto(`${base}/password-reset#token=${await waitForToken('reset', email)}`)
    await page.getByLabel('New password').fill('battery staple')
    await press(page, 'Set password')
    await page.getByRole('link', { name: 'Sign in' }).click()
    await signIn(page, email, 'battery staple')
    await signOut(page)

    await page.getByLabel('Email').fill(email)
    await page.getByRole('link', { name: 'Email me a link' }).click()
    await page.getByRole('heading', { name: 'Sign in by email' }).waitFor()
    await press(page, 'Email me a link')
    await page.getByText('If the address has an account').waitFor()
    await page.goto(`${base}/magic-link#token=${await waitForToken('sign_in', email)}`)
    await press(page, 'Sign in')
    await signOut(page)

    idp.state.person = { sub: 'a person', email, email_verified: true, name: 'Ann' }
    await visit(page, '/account/security')
    await page.getByRole('link', { name: 'Continue with Mill ID' }).click()
    await page.waitForURL('**/account/security')
    const identities = findSection(page, 'Linked identities')
    await identities.getByRole('row', { name: new RegExp(email) }).waitFor()
    await press(page, `Unlink ${email}`)
    await press(page, 'Unlink')
    await identities.getByText('None is linked.').waitFor()

    await visit(page, '/setup?token=x')
    await page.getByText('There is an admin already.').waitFor()
  })

  test('a person changes the password, uses one-time codes and ends sessions', async (t) => {
    const email = 'careful@example.com'
    const page = await openAs(t, email, '/account/security')
    await press(page, 'Change password')
    const change = findDialog(page, 'Change password')
    await change.getByLabel('Current password').fill('wrong horse')
    await change.getByLabel('New password').fill('battery staple')
    await change.getByRole('button', { name: 'Change password' }).click()
    await change.getByRole('alert').getByText('incorrect').waitFor()
    await change.getByLabel('Current password').fill(PASSWORD)
    await change.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('Password changed.').waitFor()

    await press(page, 'Set up one-time codes')
    const setup = findDialog(page, 'Set up one-time codes')
    await setup.getByRole('img', { name: /QR code/ }).waitFor()
    await checkAccess(page)
    const secret = decodeBase32((await setup.locator('.secret').textContent())!.replaceAll(' ', ''))
    await setup.getByLabel('Code of the app').fill(computeCode(secret, computeCurrentStep(-1)))
    await press(page, 'Enable')
    const shown = findDialog(page, 'Recovery codes')
    await shown.getByRole('listitem').nth(9).waitFor()
    await checkAccess(page)
    const download = page.waitForEvent('download')
    await shown.getByRole('link', { name: 'Download' }).click()
    const file = await readFile((await (await download).path())!, 'utf8')
    const codes = await shown.getByRole('listitem').allTextContents()
    assert.ok(codes.length === 10 && codes.every((code) => file.includes(code)))
    await page.keyboard.press('Escape')
    await findSection(page, 'One-time codes').getByText('10 recovery codes are left').waitFor()

    const prove = async (title: string, button: string, code: string) => {
      const dialog = findDialog(page, title)
      await dialog.getByLabel('Password').fill('battery staple')
      await dialog.getByLabel('Authenticator code or recovery code').fill(code)
      await dialog.getByRole('button', { name: button, exact: true }).click()
    }
    await press(page, 'Replace recovery codes')
    await prove('Replace recovery codes', 'Replace', codes[0]!)
    const renewed = findDialog(page, 'Recovery codes')
    await renewed.getByRole('listitem').nth(9).waitFor()
    const [first] = await renewed.getByRole('listitem').allTextContents()
    assert.ok(!codes.includes(first!))
    await page.keyboard.press('Escape')

    await signOut(page)
    await signIn(page, email, 'battery staple')
    await page.getByLabel('Authenticator code or recovery code').fill(first!)
    await press(page, 'Sign in')
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
    await visit(page, '/account/security')
    await findSection(page, 'Sessions').getByText('this device').waitFor()
    await press(page, 'Disable one-time codes')
    await prove('Disable one-time codes', 'Disable', computeCode(secret, computeCurrentStep()))
    await page.getByRole('button', { name: 'Set up one-time codes' }).waitFor()
  })

  test('a person ends sessions on other devices', async (t) => {
    const email = 'traveller@example.com'
    const page = await openAs(t, email, '/account/security')
    const others = await open(t, '/account/security')
    await signIn(others, email)
    await others.getByRole('heading', { name: 'Security', level: 1 }).waitFor()
    await page.reload()
    const sessions = findSection(page, 'Sessions')
    await sessions.getByRole('row').nth(2).waitFor()
    await sessions.getByRole('button', { name: /^End the session on/ }).click()
    await page.getByText('Ended the session on').waitFor()
    await others.reload()
    await others.getByRole('heading', { name: 'Sign in' }).waitFor()
    await signIn(others, email)
    await others.getByRole('heading', { name: 'Security', level: 1 }).waitFor()
    await press(page, 'End all others')
    await findDialog(page, 'End all other sessions?').getByRole('button', { name: 'End all others' }).click()
    await page.getByText('All other sessions have ended').waitFor()
    assert.equal(await sessions.getByRole('row').count(), 2)
    await checkAccess(page)
  })

  test('a person creates, renames, uses and deletes a passkey', async (t) => {
    const page = await openAs(t, 'keyless@example.com', '/account/security')
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', transport: 'internal', automaticPresenceSimulation: true },
        ...{ hasResidentKey: true, hasUserVerification: true, isUserVerified: true },
      },
    })
    await press(page, 'Add a passkey')
    const passkeys = findSection(page, 'Passkeys')
    await passkeys.getByRole('button', { name: /^Rename/ }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('My phone')
    await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click()
    await passkeys.getByRole('row', { name: /My phone/ }).waitFor()
    await signOut(page)
    await page.getByLabel('Email').waitFor()
    await visit(page, '/account/security')
    await press(page, 'Use a passkey')
    await passkeys.getByRole('row', { name: /My phone.*ago/ }).waitFor()
    await query(`update session set created_at = created_at - interval '1 hour'`)
    await press(page, 'Delete My phone')
    await press(page, 'Delete passkey')
    await findDialog(page, 'Confirm that it is you').getByRole('button', { name: 'Use a passkey' }).click()
    await passkeys.getByText('You have no passkeys.').waitFor()
    await page.goto(`http://127.0.0.1:${port}/account/security`)
    await page.getByRole('button', { name: 'Use a passkey' }).waitFor()
  })

  test('a person gives a key scopes by area', async (t) => {
    const page = await openAs(t, 'programmer@example.com', '/account/keys')
    await press(page, 'New key')
    const form = findDialog(page, 'New API key')
    await form.getByLabel('Name').fill('Nightly import')
    await form.getByLabel('Jobs: read').check()
    await form.getByLabel('Documents: write').check()
    await form.getByLabel('All areas: read').check()
    assert.ok(await form.getByLabel('Accounts: read').isDisabled())
    await form.getByLabel('All areas: none').check()
    await checkAccess(page)
    await press(page, 'Create key')
    const shown = findDialog(page, 'Your new API key')
    const key = (await shown.locator('.secret').textContent())!
    await page.keyboard.press('Escape')
    await page.getByRole('row', { name: /Nightly import.*Read: Jobs\. Write: Documents/ }).waitFor()
    const call = (path: string) => fetch(`${base}${path}`, { headers: { authorization: `Bearer ${key}` } })
    assert.deepEqual(
      [(await call('/api/v1/jobs')).status, (await call('/api/v1/webhooks')).status],
      [200, 403],
    )
    await press(page, 'Delete Nightly import')
    await press(page, 'Delete key')
    await page.getByText('You have no API keys.').waitFor()
  })

  test('a person adds a webhook endpoint and follows its deliveries', async (t) => {
    const receiver = await startReceiver()
    t.after(() => receiver.stop())
    const page = await openAs(t, 'receiver@example.com', '/account/webhooks')
    await press(page, 'Add endpoint')
    const form = findDialog(page, 'Add endpoint')
    await form.getByLabel('Address').fill(receiver.url)
    await form.getByLabel('job.done').check()
    await form.getByRole('button', { name: 'Add endpoint' }).click()
    await findDialog(page, 'Secret of the endpoint')
      .getByText(/^whsec_/)
      .waitFor()
    await checkAccess(page)
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: receiver.url }).click()
    await page.getByRole('heading', { name: receiver.url, level: 1 }).waitFor()

    const deliveries = findSection(page, 'Deliveries')
    const sendTest = async (kind: string) => {
      await press(page, 'Send test event')
      await findDialog(page, 'Send a test event').getByRole('combobox').selectOption(kind)
      await press(page, 'Send')
    }
    await sendTest('job.done')
    const row = deliveries.getByRole('row', { name: /webhook\.test.*delivered.*204 after/ })
    await row.waitFor()
    await row.getByRole('button', { name: /^Details/ }).click()
    const details = findDialog(page, 'webhook.test')
    await details.getByText('"type": "webhook.test"').waitFor()
    await details.getByText('204').waitFor()
    await checkAccess(page)
    await page.keyboard.press('Escape')

    receiver.answer = (response) => response.writeHead(500).end('out of flour')
    await sendTest('')
    const waiting = deliveries.getByRole('row', { name: /webhook\.test.*waiting.*500 after/ })
    await waiting.getByRole('button', { name: /^Details/ }).click()
    await details.getByText('out of flour').waitFor()
    await page.keyboard.press('Escape')
    receiver.answer = (response) => response.writeHead(204).end()
    await deliveries.getByRole('combobox').selectOption('delivered')
    await waiting.waitFor({ state: 'detached' })
    const before = receiver.received.length
    await row.getByRole('button', { name: /^Send again/ }).click()
    await until('the message arrived again', () => Promise.resolve(receiver.received.length > before))

    await press(page, 'Create a new secret')
    await press(page, 'Create secret')
    await findDialog(page, 'Secret of the endpoint')
      .getByText(/^whsec_/)
      .waitFor()
    await page.keyboard.press('Escape')
    await press(page, 'Edit')
    await findDialog(page, 'Edit the endpoint').getByLabel('Description').fill('Books of the mill')
    await press(page, 'Save')
    await findSection(page, 'Endpoint').getByText('Books of the mill').waitFor()
    await press(page, `Disable ${receiver.url}`)
    await page.getByRole('button', { name: 'Undo' }).click()
    await press(page, `Disable ${receiver.url}`)
    await press(page, `Enable ${receiver.url}`)
    await press(page, `Delete ${receiver.url}`)
    await press(page, 'Delete endpoint')
    await page.getByText('You have no webhook endpoints.').waitFor()
  })

  test('a person exports the data, and deletes and keeps the account', async (t) => {
    const page = await openAs(t, 'leaving@example.com', '/account/data')
    await press(page, 'Export my data')
    const link = page.getByRole('link', { name: /^Download the export/ })
    await link.waitFor()
    const download = page.waitForEvent('download')
    await link.click()
    assert.match((await download).suggestedFilename(), /\.zip$/)
    await press(page, /^Delete this account/)
    await findDialog(page, 'Delete leaving@example.com?')
      .getByRole('button', { name: 'Delete this account' })
      .click()
    await page.getByText('This account will be deleted on').waitFor()
    await checkAccess(page)
    await visit(page, '/account')
    await page.getByRole('link', { name: 'Keep the account' }).click()
    await press(page, 'Keep the account')
    await page.getByRole('button', { name: /^Delete this account/ }).waitFor()
  })
})
