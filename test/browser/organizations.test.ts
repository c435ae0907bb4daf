import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { until } from '../until.ts'
import { findViolations } from './axe.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { EMAIL, findSection, READER_EMAIL, signIn, startWatchedService } from './watched-service.ts'

/** Tests that a person manages organizations through the pages alone. */

const chromium = findChromium()

describe('pages of organizations', {
  skip: chromium === null && SKIP_REASON,
  concurrency: false,
}, async () => {
  if (chromium === null) return
  const { open, query } = await startWatchedService(chromium)
  const press = (within: Page | Locator, name: string | RegExp) =>
    within.getByRole('button', { name, exact: typeof name === 'string' }).click()
  const announced = (page: Page, text: string) => page.locator('#announcement').getByText(text).waitFor()

  /** Carries out the action that waits for an undo, as leaving the page does. */
  const carryOut = (page: Page) => page.evaluate(`dispatchEvent(new Event('pagehide'))`)
  const countRows = async (text: string) => (await query(text)).length

  test('an owner creates an organization, and manages members, invites, keys and webhooks', async (t) => {
    const page = await open(t, '/organizations')
    await signIn(page)
    const own = findSection(page, 'Your organizations')
    await own.getByText('You belong to no organization.').waitFor()
    assert.deepEqual(await findViolations(page), [])
    await own.getByRole('button', { name: 'New organization' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Mill & Söhne')
    await press(page, 'Create organization')
    await page.getByRole('heading', { name: 'Mill & Söhne', level: 1 }).waitFor()
    const details = findSection(page, 'Details')
    await details.getByText('mill-sohne').waitFor()

    await press(details, 'Edit')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Description').fill('Paper since 1896')
    await dialog.getByLabel('Name', { exact: true }).fill('Mill & Sons')
    await press(dialog, 'Save')
    await details.getByText('Paper since 1896').waitFor()
    await page.getByRole('heading', { name: 'Mill & Sons', level: 1 }).waitFor()

    const members = findSection(page, 'Members')
    const invites = findSection(page, 'Pending invites')
    await press(invites, 'Invite')
    await dialog.getByLabel('Address').fill(READER_EMAIL)
    await press(dialog, 'Invite')
    await announced(page, `${READER_EMAIL} is now a member`)
    const rank = members.getByLabel(`Rank of ${READER_EMAIL}`)
    await rank.selectOption('admin')
    await page.getByText(`${READER_EMAIL} is now admin`).waitFor()
    await press(page, 'Undo')
    await until('the rank is restored', async () => (await rank.inputValue()) === 'member')
    await rank.selectOption('admin')
    await page.getByText(`${READER_EMAIL} is now admin`).waitFor()

    await press(invites, 'Invite')
    await dialog.getByLabel('Address').fill('new@example.com')
    await press(dialog, 'Invite')
    await announced(page, 'Invited new@example.com')
    await press(invites, 'Resend the invite for new@example.com')
    await announced(page, 'Sent the invite for new@example.com again')
    await press(invites, 'Revoke the invite for new@example.com')
    await invites.getByText('No invites are pending.').waitFor()
    await carryOut(page)
    await until(
      'the invite is revoked',
      async () => (await countRows(`select from organization_invite where status = 'revoked'`)) === 1,
    )

    const keys = findSection(page, 'API keys')
    await press(keys, 'New key')
    await dialog.getByLabel('Name', { exact: true }).fill('Deploy')
    await dialog.getByLabel('Webhooks: write').check()
    await press(dialog, 'Create key')
    await page.getByRole('dialog', { name: 'Your new API key' }).getByText('It is shown only once').waitFor()
    await press(page, 'Close')
    await press(keys, 'Delete Deploy')
    await press(page.getByRole('dialog'), 'Delete key')
    await keys.getByText('The organization has no API keys.').waitFor()

    const webhooks = findSection(page, 'Webhooks')
    await press(webhooks, 'Add endpoint')
    await dialog.getByLabel('Address').fill('https://hooks.example.com/mill')
    await dialog.getByLabel('job.done').check()
    await press(dialog, 'Add endpoint')
    await page
      .getByRole('dialog', { name: 'Secret of the endpoint' })
      .getByText('It is shown only once')
      .waitFor()
    await press(page, 'Close')
    await press(webhooks, 'Disable https://hooks.example.com/mill')
    await webhooks.getByText('disabled', { exact: true }).waitFor()
    await press(webhooks, 'Enable https://hooks.example.com/mill')
    await press(webhooks, 'Delete https://hooks.example.com/mill')
    await press(page.getByRole('dialog'), 'Delete endpoint')
    await webhooks.getByText('The organization has no webhook endpoints.').waitFor()
    assert.deepEqual(await findViolations(page), [])
  })

  test('ranks decide what each member sees', async (t) => {
    const page = await open(t, '/organizations')
    await signIn(page, READER_EMAIL)
    await page.getByRole('link', { name: 'Mill & Sons' }).click()
    const details = findSection(page, 'Details')
    await press(details, 'Edit')
    await page.getByRole('dialog').getByLabel('Description').waitFor()
    assert.equal(await page.getByRole('dialog').getByLabel('Short name').count(), 0)
    await press(page, 'Close')
    assert.equal(await details.getByRole('button', { name: 'Delete Mill & Sons' }).count(), 0)
    assert.equal(await details.getByRole('button', { name: 'Transfer ownership' }).count(), 0)
    const members = findSection(page, 'Members')
    assert.equal(await members.getByLabel(`Rank of ${EMAIL}`).count(), 0)
    assert.equal(await members.getByRole('button', { name: 'Add account' }).count(), 0)

    await query(`update organization_member set role = 'member' where role = 'admin'`)
    await page.reload()
    await members.getByText(EMAIL).waitFor()
    assert.deepEqual(await details.getByRole('button').allTextContents(), ['Leave'])
    assert.equal(await findSection(page, 'Pending invites').count(), 0)
    await press(details, 'Leave')
    await press(page.getByRole('dialog'), 'Leave')
    await findSection(page, 'Your organizations').getByText('You belong to no organization.').waitFor()
    await page.goto(`${new URL(page.url()).origin}/organizations/1`)
    await page.getByText('Ask an owner of this organization for an invite.').waitFor()
  })

  test('an owner adds and removes an account, transfers the ownership, and an admin of the service repairs it', async (t) => {
    const page = await open(t, '/organizations/1')
    await signIn(page)
    const members = findSection(page, 'Members')
    const dialog = page.getByRole('dialog').last()
    const add = async () => {
      await press(members, 'Add account')
      await dialog.getByLabel('Address of the account').fill(READER_EMAIL)
      await press(dialog, 'Add account')
      await announced(page, `Added ${READER_EMAIL}`)
    }
    await add()
    await press(members, `Remove ${READER_EMAIL}`)
    await members.getByText(READER_EMAIL).waitFor({ state: 'detached' })
    await press(page, 'Undo')
    await members.getByText(READER_EMAIL).waitFor()
    await press(members, `Remove ${READER_EMAIL}`)
    await carryOut(page)
    await until(
      'the member is removed',
      async () => (await countRows('select from organization_member')) === 1,
    )
    await add()

    await press(page, 'Transfer ownership')
    await dialog.getByLabel('Address of the new owner').fill(READER_EMAIL)
    await press(dialog, 'Transfer ownership')
    await press(page.getByRole('dialog', { name: 'Transfer ownership?' }), 'Transfer ownership')
    await until('the reader is the owner', async () => {
      const [owner] = await query(`select user_id from organization_member where role = 'owner'`)
      return owner!.user_id === 2
    })
    await page.getByLabel(`Rank of ${EMAIL}`).waitFor()
    await until(
      'the page shows the new rank',
      async () => (await page.getByLabel(`Rank of ${EMAIL}`).inputValue()) === 'admin',
    )

    await query('delete from organization_member where user_id = 1')
    await page.reload()
    await press(page, 'Join as owner')
    const details = findSection(page, 'Details')
    await press(details, 'Delete Mill & Sons')
    await press(page.getByRole('dialog'), 'Delete organization')
    await findSection(page, 'All organizations').getByText('There are no organizations yet.').waitFor()
  })
})
