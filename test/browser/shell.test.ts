import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findViolations } from './axe.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { EMAIL, PASSWORD, signIn, startWatchedService, waitForFocus } from './watched-service.ts'

/** Tests what all pages share: navigation, keyboard, proofs of identity, and sessions that end. */

const chromium = findChromium()

describe('the shell of all pages', {
  skip: chromium === null && SKIP_REASON,
  concurrency: false,
}, async () => {
  if (chromium === null) return
  const { open, query } = await startWatchedService(chromium)

  test('a session that ends is renewed by a sign-in over the page, which keeps what was typed', async (t) => {
    const page = await open(t, '/account/keys')
    await signIn(page)
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByLabel('Name').fill('Nightly backup')
    await page.getByLabel('Jobs: read').check()
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Create key' }).click()
    const again = page.getByRole('dialog', { name: 'Your session has ended' })
    await again.getByLabel('Email').fill(EMAIL)
    await again.getByLabel('Password').fill(PASSWORD)
    assert.deepEqual(await findViolations(page), [])
    await again.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('dialog', { name: 'Your new API key' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('row', { name: /Nightly backup/ }).waitFor()
  })

  test('a change of credentials asks for the password if the sign-in was long ago, and again if it is wrong', async (t) => {
    const page = await open(t, '/account/keys')
    await signIn(page)
    await page.getByRole('button', { name: 'New key' }).waitFor()
    await query(`update session set created_at = created_at - interval '1 hour'`)
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByLabel('Name').fill('Proven')
    await page.getByLabel('Jobs: read').check()
    await page.getByRole('button', { name: 'Create key' }).click()
    const proof = page.getByRole('dialog', { name: 'Confirm that it is you' })
    await proof.getByLabel('Password').fill('wrong horse')
    await page.keyboard.press('Enter')
    await proof.getByText('The password or the code is incorrect').waitFor()
    assert.deepEqual(await findViolations(page), [])
    await proof.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    const key = page.getByRole('dialog', { name: 'Your new API key' })
    await key.getByText(/^mill_live_/).waitFor()
    // Outside of an open dialog, screen readers find no message.
    await key.getByRole('button', { name: 'Copy API key' }).click()
    await key
      .getByRole('status')
      .getByText(/Copied|does not allow copying/)
      .waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('row', { name: /Proven/ }).waitFor()
  })

  test('the keyboard opens a sheet of shortcuts, goes to pages and reaches the content first', async (t) => {
    const page = await open(t, '/account/keys')
    await signIn(page)
    await page.getByRole('button', { name: 'New key' }).waitFor()
    await page.keyboard.press('?')
    const sheet = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
    await sheet.getByText('Go to Documents').waitFor()
    assert.deepEqual(await findViolations(page), [])
    await page.keyboard.press('Escape')
    await sheet.waitFor({ state: 'detached' })
    await page.keyboard.press('g')
    await page.keyboard.press('o')
    await page.waitForURL('**/organizations')
    await page.getByRole('heading', { name: 'Organizations', level: 1 }).waitFor()
    await page.keyboard.press('Tab')
    await waitForFocus('the skip link', page.getByRole('link', { name: 'Skip to content' }))
    await page.keyboard.press('Enter')
    await waitForFocus('the content', page.getByRole('main'))
  })

  test('a narrow screen has a menu', async (t) => {
    const page = await open(t, '/account/keys')
    await page.setViewportSize({ width: 390, height: 844 })
    await signIn(page)
    await page.getByRole('button', { name: 'New key' }).waitFor()
    const link = page.getByRole('link', { name: 'Organizations' })
    assert.equal(await link.isVisible(), false)
    await page.getByRole('button', { name: 'Menu' }).click()
    await link.waitFor()
    assert.deepEqual(await findViolations(page), [])
    await page.getByRole('button', { name: 'Menu' }).click()
    assert.equal(await link.isVisible(), false)
    await page.getByRole('button', { name: 'Menu' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Password').waitFor()
  })
})
