import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { inviteTokenOf } from '../../tasks/accounts/tokens.ts'
import { SECRET } from '../edge/harness.ts'
import { codeOf, fromBase32, stepNow } from '../totp.ts'
import { findChromium, NO_CHROMIUM } from './chromium.ts'
import { READER, signIn, watchedService } from './watched.ts'

/** Signing in where a code is asked for. */

const chromium = findChromium()
if (chromium === null) process.stderr.write(`${NO_CHROMIUM}\n`)

describe('in a browser', { skip: chromium === null && NO_CHROMIUM, concurrency: false }, async () => {
  if (chromium === null) return
  const { port, query, open } = await watchedService(chromium, { SECRET_KEY: SECRET })
  const CODE = 'Code of the authenticator app, or a recovery code'
  const WRONG = 'The code is not correct, or has been used; wait for the next one'

  /** Switches one-time codes of the reader on. */
  async function secure(): Promise<{ secret: Buffer; recoveryCodes: string[] }> {
    await query('delete from account_totp')
    const post = async (path: string, body: unknown, token = '') => {
      const isForm = body instanceof URLSearchParams
      const answer = await fetch(`http://127.0.0.1:${port}/api/v1/auth${path}`, {
        method: 'POST',
        headers: {
          ...(token !== '' && { authorization: `Bearer ${token}` }),
          ...(!isForm && { 'content-type': 'application/json' }),
        },
        body: isForm ? body : JSON.stringify(body),
      })
      assert.equal(answer.status, 200)
      return (await answer.json()) as { access_token: string; secret: string; recovery_codes: string[] }
    }
    const form = new URLSearchParams({ username: READER, password: 'correct horse' })
    const { access_token } = await post('/token', form)
    const secret = fromBase32((await post('/totp', {}, access_token)).secret)
    const json = { code: codeOf(secret, stepNow(-1)) }
    return { secret, recoveryCodes: (await post('/totp/confirm', json, access_token)).recovery_codes }
  }

  test('the monitor asks for the code once the password was right', async (t) => {
    const { secret } = await secure()
    const page = await open(t, '/monitor')
    assert.equal(await page.getByLabel(CODE).isVisible(), false)
    await signIn(page, READER)
    await page
      .getByRole('alert')
      .getByText('This account also needs a one-time code, or a recovery code')
      .waitFor()
    await page.getByLabel(CODE).fill(codeOf(secret, stepNow(100)))
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText(WRONG).waitFor()
    await page.getByLabel(CODE).fill(codeOf(secret, stepNow()))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'For admins' }).waitFor()
  })

  test('and takes a recovery code', async (t) => {
    const { recoveryCodes } = await secure()
    const page = await open(t, '/monitor')
    await signIn(page, READER)
    await page.getByLabel(CODE).fill(recoveryCodes[0]!.toUpperCase())
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'For admins' }).waitFor()
  })

  test('so does the page that accepts an invite', async (t) => {
    const { secret } = await secure()
    const [org] = await query(`insert into organization (name, slug) values ('Mill', $1) returning id`, [
      randomUUID(),
    ])
    const [invite] = await query(
      `insert into organization_invite (organization_id, email, role, expires_at)
       values ($1, $2, 'member', now() + interval '1 day') returning id`,
      [org!.id, READER],
    )
    const token = inviteTokenOf(SECRET, invite!.id as number, READER)
    const page = await open(t, `/accept-invite#token=${token}`)
    await page.getByLabel('Email').fill(READER)
    await page.getByLabel('Password').fill('correct horse')
    assert.equal(await page.getByLabel(CODE).isVisible(), false)
    await page.getByRole('button', { name: 'Accept' }).click()
    await page.getByLabel(CODE).fill(codeOf(secret, stepNow()))
    await page.getByRole('button', { name: 'Accept' }).click()
    await page.getByText('You are now a member. You can close this page.').waitFor()
  })
})
