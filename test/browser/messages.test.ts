import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { startProviderStandIns } from '../edge/comms-help.ts'
import { until } from '../until.ts'
import { findViolations } from './axe.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { findSection, READER_EMAIL, signIn, startWatchedService } from './watched-service.ts'

/** Tests that a person sends messages, and manages templates, suppressions and domains through the pages alone. */

const chromium = findChromium()

// Would change the title of the page if the preview ran any of it.
const HOSTILE_HTML = `<style>body{display:none}</style><h1 style="color:#123456">Hello {{name}}</h1>
  <script>document.title = 'taken'</script><img src="x:" onerror="document.title = 'taken'" alt="Logo">
  <a href="javascript:document.title='taken'">Look</a><a href="https://example.com">Track it</a>`

describe('pages of messages', { skip: chromium === null && SKIP_REASON, concurrency: false }, async () => {
  if (chromium === null) return
  const { env, mail, twilio } = await startProviderStandIns()
  const { open, query } = await startWatchedService(chromium, env)
  const press = (within: Page | Locator, name: string) =>
    within.getByRole('button', { name, exact: true }).click()
  const announced = (page: Page, text: string) => page.locator('#announcement').getByText(text).waitFor()
  const carryOut = (page: Page) => page.evaluate(`dispatchEvent(new Event('pagehide'))`)

  test('an email, a text message and a call are sent, followed and cancelled', async (t) => {
    const page = await open(t, '/messages')
    await signIn(page)
    const dialog = page.getByRole('dialog').last()
    await findSection(page, 'Channels').getByText('from service@example.com').waitFor()
    const sends = findSection(page, 'Sent messages')
    await press(sends, 'New email')
    await dialog.getByLabel('To', { exact: true }).fill('ada@example.com\nbob@example.com')
    await dialog.getByLabel('Subject').fill('The annual report')
    await dialog.getByLabel('Text', { exact: true }).fill('It was a good year.')
    await press(dialog, 'Send')
    await announced(page, 'The mail server accepted the message')
    assert.match(mail.raw.join('\n'), /It was a good year/)
    await page.getByRole('link', { name: 'ada@example.com and 1 more' }).click()
    await page.getByRole('heading', { name: 'Email to ada@example.com', level: 1 }).waitFor()
    await findSection(page, 'Recipients')
      .getByRole('row')
      .filter({ hasText: 'bob@example.com' })
      .getByText('sent')
      .waitFor()
    assert.equal(await page.getByRole('button', { name: 'Cancel message' }).count(), 0)
    assert.deepEqual(await findViolations(page), [])

    await page.getByRole('link', { name: 'Sent', exact: true }).click()
    await press(sends, 'New text message')
    await dialog.getByLabel('To', { exact: true }).fill('+14155552671')
    await dialog.getByLabel('Text', { exact: true }).fill('See you tomorrow')
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16)
    await dialog.getByLabel('Send at').fill(tomorrow)
    await press(dialog, 'Send')
    await announced(page, 'Text message scheduled')
    await page.getByRole('link', { name: '+14155552671' }).click()
    await findSection(page, 'State').getByText('It is sent at the time that its sender set.').waitFor()
    await press(page, 'Cancel message')
    await press(dialog, 'Cancel message')
    await announced(page, 'The message is cancelled')
    await findSection(page, 'State').getByText('cancelled', { exact: true }).waitFor()

    await page.goto(`${new URL(page.url()).origin}/messages`)
    await press(sends, 'New call')
    await dialog.getByLabel('To', { exact: true }).fill('12')
    await dialog.getByLabel('Address of the script').fill('https://example.com/script.xml')
    await press(dialog, 'Call')
    await dialog.locator('[aria-invalid="true"]').waitFor()
    await dialog.getByLabel('To', { exact: true }).fill('+14155552672')
    await press(dialog, 'Call')
    await sends.getByRole('link', { name: '+14155552672' }).waitFor()
    assert.ok(twilio.taken.length > 0)
    await sends.getByRole('combobox', { name: 'Channel' }).selectOption('call')
    await sends.getByRole('link', { name: '+14155552671' }).waitFor({ state: 'detached' })
    assert.equal(new URL(page.url()).searchParams.get('channel'), 'call')
    await sends.getByRole('combobox', { name: 'State' }).selectOption('bounced')
    await sends.getByText('Nothing matches these filters.').waitFor()
    assert.deepEqual(await findViolations(page), [])
  })

  test('an admin writes a template next to its preview, uses it and restores it', async (t) => {
    const page = await open(t, '/messages/templates')
    await signIn(page)
    const templates = findSection(page, 'Templates')
    const dialog = page.getByRole('dialog').last()
    const preview = dialog.getByRole('region', { name: 'Preview' })
    await press(templates, 'New template')
    await dialog.getByLabel('Name', { exact: true }).fill('welcome')
    await dialog.getByLabel('Subject').fill('Welcome, {{name}}')
    await dialog.getByLabel('Text', { exact: true }).fill('Hello {{name}} of {{place}}')
    await dialog.getByLabel('HTML').fill(HOSTILE_HTML)
    await dialog.getByLabel('Default of place').fill('Bath')
    await preview.getByText('Hello [name] of Bath').waitFor()
    await preview.getByText('Logo').waitFor()
    assert.deepEqual(await preview.getByRole('link').allTextContents(), ['Track it'])
    assert.deepEqual(await findViolations(page), [])
    await dialog.getByLabel('Text', { exact: true }).fill('Hello {{name of {{place}}')
    await preview.getByText('text has {{ that does not start a valid {{name}}').waitFor()
    await dialog.getByLabel('Text', { exact: true }).fill('Hello {{name}} of {{place}}')
    await press(dialog, 'Create template')
    await announced(page, 'Created welcome')
    assert.doesNotMatch(await page.title(), /taken/)

    await press(templates, 'Edit welcome')
    await dialog.getByLabel('Subject').fill('Good to see you, {{name}}')
    await preview.getByText('Good to see you, [name]').waitFor()
    await press(dialog, 'Save')
    await templates.getByText('Good to see you, {{name}}').waitFor()

    await press(templates, 'Use welcome')
    await dialog.getByLabel('To', { exact: true }).fill('ada@example.com')
    await dialog.getByLabel('name', { exact: true }).fill('Ada')
    await preview.getByText('Hello Ada of Bath').waitFor()
    assert.equal(await dialog.getByLabel('Subject').isVisible(), false)
    await press(dialog, 'Send')
    await announced(page, 'The mail server accepted the message')
    assert.match(mail.raw.at(-1)!, /Hello Ada of Bath/)

    await press(templates, 'Delete welcome')
    await templates.getByText('There are no templates yet.').waitFor()
    await press(page, 'Undo')
    await templates.getByText('welcome', { exact: true }).waitFor()
    const [row] = await query('select html, variables from comms_template')
    assert.deepEqual(row, {
      html: HOSTILE_HTML,
      variables: [{ name: 'name' }, { name: 'place', default: 'Bath' }],
    })
  })

  test('an admin lifts suppressions, and sees the DNS records of domains', async (t) => {
    await query(
      `insert into comms_suppression (address, stream, reason, send_id)
       select 'ada@example.com', stream, 'bounced', gen_random_uuid() from unnest(array['transactional', 'broadcast']) stream`,
    )
    const page = await open(t, '/messages/suppressions')
    await signIn(page)
    const lift = page.getByRole('button', {
      name: 'Lift the suppression of ada@example.com for broadcast messages',
    })
    await lift.click()
    await press(page, 'Undo')
    await lift.click()
    await carryOut(page)
    await until(
      'the suppression is lifted',
      async () => (await query('select from comms_suppression')).length === 1,
    )
    assert.deepEqual(await findViolations(page), [])

    await page.getByRole('link', { name: 'Domains' }).click()
    await press(page, 'DNS records of new.example')
    const records = page.getByRole('dialog', { name: 'DNS records of new.example' })
    await records.getByRole('button', { name: 'Copy value of the SPF MX record' }).waitFor()
    assert.deepEqual(await findViolations(page), [])
    await press(records, 'Check DNS of new.example')
    await announced(page, 'new.example is')
    await press(records, 'Close')
    await press(page, 'Add domain')
    await page.getByRole('dialog').getByLabel('Domain').fill('mill.example')
    await press(page.getByRole('dialog'), 'Add domain')
    await page.getByRole('dialog', { name: 'DNS records of mill.example' }).waitFor()
  })

  test('others read templates, and a channel that is not set up says what admins can do', async (t) => {
    const page = await open(t, '/messages/templates')
    await signIn(page, READER_EMAIL)
    await press(page, 'View welcome')
    await page.getByRole('dialog').getByText('Hello [name] of Bath').waitFor()
    await press(page, 'Close')
    assert.equal(await page.getByRole('button', { name: 'New template' }).count(), 0)
    assert.equal(await page.getByRole('link', { name: 'Suppressions' }).count(), 0)
    const missing = { configured: false, provider: null, from: null, missing: ['TELEPHONY_AUTH_TOKEN'] }
    await page.route('**/comms/status', (route) =>
      route.fulfill({
        json: { email: missing, sms: missing, call: missing, domains: missing, unknown_sends: 2 },
      }),
    )
    await page.getByRole('link', { name: 'Sent', exact: true }).click()
    const callDialog = page.getByRole('dialog', { name: 'Call: not set up' })
    await press(page, 'New call')
    await callDialog.getByText('Ask an admin of the service').waitFor()
    await press(page, 'Close')
    assert.equal(await page.getByText('It is unknown whether').count(), 0)

    await press(page, 'Sign out')
    await page.getByLabel('Password').waitFor()
    await page.goto(`${new URL(page.url()).origin}/messages`)
    await signIn(page)
    await page.getByText('It is unknown whether 2 messages were sent.').waitFor()
    await press(page, 'New call')
    await callDialog.getByText('TELEPHONY_AUTH_TOKEN').waitFor()
    assert.deepEqual(await findViolations(page), [])
  })
})
