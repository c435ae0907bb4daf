import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Locator } from 'playwright-core'
import * as crash from '../flow/crash.ts'
import { startProcess } from '../service.ts'
import { until } from '../until.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import {
  EMAIL,
  findJobRow,
  findSection,
  PASSWORD,
  press,
  READER_EMAIL,
  signIn,
  startWatchedService,
  waitForFocus,
} from './watched-service.ts'

/** Tests sessions, documents, the reference and a lost connection in the monitor. */

const chromium = findChromium()

describe('the monitor in a browser', {
  skip: chromium === null && SKIP_REASON,
  concurrency: false,
}, async () => {
  if (chromium === null) return
  const { url, query, port, edge, client, open } = await startWatchedService(chromium)

  test('signing in shows an error for a wrong password and opens the monitor for the right one; signing out closes it', async (t) => {
    const page = await open(t, '/monitor')
    await page.getByLabel('Email').fill(EMAIL)
    await page.getByLabel('Password').fill('wrong horse')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('Incorrect email or password').waitFor()
    await signIn(page)
    await page.getByText('Live', { exact: true }).waitFor()
    await findSection(page, 'Queues')
      .getByRole('button', { name: /^Show \d+ idle queues$/ })
      .click()
    await findSection(page, 'Queues').getByText('documents', { exact: true }).waitFor()
    await findSection(page, 'Workers').getByText('alive', { exact: true }).waitFor()
    assert.equal(await page.evaluate('document.cookie'), '', 'no script sees the session')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })

  test('an account that is not an admin sees a notice', async (t) => {
    const page = await open(t, '/monitor')
    await signIn(page, READER_EMAIL)
    await page.getByRole('heading', { name: 'Admins only' }).waitFor()
    await page.getByRole('main').getByRole('link', { name: 'Home' }).click()
    await page.getByText('Your email address is not verified').waitFor()
  })

  test('an expired session is renewed automatically', async (t) => {
    const page = await open(t, '/monitor')
    await signIn(page)
    await page.getByText('Live', { exact: true }).waitFor()
    // `/health` does not renew the session. Leaving a page during a renewal would lose the new refresh token.
    await page.goto(`http://127.0.0.1:${port}/health`)
    await page.context().clearCookies({ name: 'millrace_session' })
    await page.goto(`http://127.0.0.1:${port}/monitor/jobs`)
    await page.getByRole('region', { name: 'Jobs' }).getByRole('table').waitFor()
    await page.context().clearCookies()
    await page.reload()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })

  test('the reference renders, light and dark', async (t) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open(t, '/health')
      await page.emulateMedia({ colorScheme })
      await page.goto(`http://127.0.0.1:${port}/docs`)
      // The reference renders only the operations in view.
      await page.getByPlaceholder('Filter by tag').fill('jobs')
      await page.getByRole('link', { name: '/api/v1/jobs/{job_id}/retry' }).waitFor()
      const isDark = await page.evaluate(`document.documentElement.classList.contains('dark-mode')`)
      assert.equal(isDark, colorScheme === 'dark')
    }
  })

  test('the reference signs in by its form, and sends the token with its calls', async (t) => {
    const page = await open(t, '/docs')
    await page.getByRole('button', { name: 'Authorize' }).first().click()
    const form = page.locator('.auth-container', { hasText: 'signIn' })
    await form.getByLabel('username:').fill(EMAIL)
    await form.getByLabel('password:').fill(PASSWORD)
    await form.getByRole('button', { name: 'Apply given OAuth2 credentials' }).click()
    await form.getByText('Authorized', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Close', exact: true }).first().click()
    // Keep the token as the only credential.
    await page.context().clearCookies()
    await page.getByPlaceholder('Filter by tag').fill('accounts')
    const me = page.locator('#operations-accounts-get_accounts_me')
    const arrow = me.locator('.opblock-control-arrow')
    const tryIt = me.getByRole('button', { name: 'Try it out' })
    // Filtering redraws the list and closes its operations, so keep opening this one.
    await until('the operation is open', async () => {
      if ((await arrow.getAttribute('aria-expanded')) !== 'true') await arrow.click()
      return tryIt.isVisible()
    })
    await tryIt.click()
    await me.getByRole('button', { name: 'Execute' }).click()
    await me.locator('.live-responses-table').getByText(`"email": "${EMAIL}"`).waitFor()
  })

  test('a redrawn row keeps the focus, and a removed one passes it to the next', async (t) => {
    const page = await open(t, '/monitor')
    await signIn(page)
    const queues = findSection(page, 'Queues')
    const switched = async (table: Locator, from: string, to: string) => {
      await press(page, table.getByRole('button', { name: from, exact: true }))
      await waitForFocus(to, table.getByRole('button', { name: to, exact: true }))
    }
    await press(page, queues.getByRole('button', { name: /^Show \d+ idle queues$/ }))
    await switched(queues, 'Pause voice', 'Resume voice')
    await switched(queues, 'Resume voice', 'Pause voice')
    await switched(queues, 'Pause voice', 'Resume voice')
    await press(page, queues.getByRole('button', { name: 'Hide idle queues' }))
    const voice = queues.getByRole('button', { name: 'Resume voice' })
    await press(page, voice)
    await voice.waitFor({ state: 'detached' })
    await waitForFocus('the queues', queues, true)

    const workers = findSection(page, 'Workers')
    const [row] = await query('select name from worker_lease')
    await switched(workers, `Drain ${row!.name}`, `Resume ${row!.name}`)
    await switched(workers, `Resume ${row!.name}`, `Drain ${row!.name}`)

    const documentId = await crash.uploadText(client, 300, 'watched')
    const ids = [
      await crash.extract(client, documentId),
      await crash.extract(client, documentId, '&force=true'),
    ]
    const [running, waiting] = [findJobRow(page, 'Running', ids[0]!), findJobRow(page, 'Queued', ids[1]!)]
    await press(page, waiting.getByRole('button', { name: /^Cancel/ }))
    await waiting.waitFor({ state: 'detached' })
    await waitForFocus('what waits', findSection(page, 'Queued'), true)
    await press(page, running.getByRole('button', { name: /^Cancel/ }))
    await running.waitFor({ state: 'detached' })
    await waitForFocus('what runs', findSection(page, 'Running'), true)
  })

  test('an HTTP worker is listed with its language and can be drained; names that callers choose are text', async (t) => {
    const name = '<img src=x onerror=alert(1)>'
    const [{ id }] = (await query(
      `insert into worker_lease (id, name, queues, queue, info, ttl_seconds, expires_at)
       values (gen_random_uuid(), $1, '{images}', 'images', $2, 600, now() + interval '1 hour') returning id`,
      [name, { host: '<b>build-7</b>', language: 'python', version: '3.12' }],
    )) as [{ id: string }]
    await query(
      `insert into job (id, name, queue, mailbox, payload, status, label, max_tries, attempt, lease_id, started_at)
       values (gen_random_uuid(), 'images/resize', 'images', 'r', '{}', 'running', $1, 1, 1, $2, now())`,
      [name, id],
    )
    const page = await open(t, '/monitor')
    const dialogs: string[] = []
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message())
      void dialog.dismiss()
    })
    await signIn(page)
    const row = findSection(page, 'Workers').getByRole('row').filter({ hasText: 'python' })
    await row.getByText(name, { exact: true }).waitFor()
    await row.getByText('HTTP · python 3.12 · <b>build-7</b>', { exact: true }).waitFor()
    assert.deepEqual(
      (await row.getByRole('cell').allInnerTexts()).slice(1, 5),
      ['alive', '1', '–', '–'],
      'state, running jobs, threads and memory',
    )
    await findSection(page, 'Running').getByText(name, { exact: true }).first().waitFor()
    await press(page, row.getByRole('button', { name: `Drain ${name}`, exact: true }))
    await row.getByText('drained', { exact: true }).waitFor()
    const [lease] = await query('select drained_at from worker_lease where id = $1', [id])
    assert.ok(lease!.drained_at)
    await press(page, row.getByRole('button', { name: `Resume ${name}`, exact: true }))
    await row.getByText('alive', { exact: true }).waitFor()
    assert.deepEqual([await page.locator('main img').count(), dialogs], [0, []])
    await query('delete from job where lease_id = $1', [id])
    await query('delete from worker_lease where id = $1', [id])
  })

  test('failed jobs keep the focus when they move or are retried', async (t) => {
    const fail = (code: string, count: number) =>
      query(
        `insert into job (id, name, queue, mailbox, payload, status, max_tries, finished_at, error_code, error_detail)
         select gen_random_uuid(), 'system.noop', 'system', 'n', '{}', 'failed', 1, now(), $1, 'It broke'
         from generate_series(1, $2::int)`,
        [code, count],
      )
    await fail('database.busy', 1)
    await fail('internal', 2)
    const page = await open(t, '/monitor')
    await signIn(page)
    const groups = findSection(page, 'Failed in the last hour').getByRole('listitem')
    const retry = groups.filter({ hasText: 'database.busy' }).getByRole('button', { name: /^Retry all/ })
    await groups.first().getByText('internal', { exact: true }).waitFor()
    await press(page, retry)
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await waitForFocus('Retry all', retry)
    await fail('database.busy', 2)
    await query(`select pg_notify('job_events', '*')`)
    await groups.first().getByText('database.busy', { exact: true }).waitFor()
    await waitForFocus('Retry all, which has moved', retry)

    await page.goto(`http://127.0.0.1:${port}/monitor/jobs?code=internal`)
    const again = findSection(page, 'Jobs')
      .getByRole('button', { name: /^Retry system.noop/ })
      .first()
    await press(page, again)
    await page.getByText('Retrying system.noop').waitFor()
    await waitForFocus(
      'Retried',
      findSection(page, 'Jobs')
        .getByRole('link', { name: /^Retried: system.noop/ })
        .first(),
    )
  })

  test('after an edge restart the page reconnects without a reload and shows missed changes', async (t) => {
    const page = await open(t, '/monitor')
    await signIn(page)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.evaluate('globalThis.notReloaded = true')
    await edge.kill()
    await page.getByText('Connection lost, reconnecting').waitFor()
    // This edge stops at the end of this test, so this must be the last test.
    await startProcess('edge', url, { PORT: String(port) })
    const id = await crash.extract(client, await crash.uploadText(client, 200, 'meanwhile'))
    await page.getByText('Live', { exact: true }).waitFor()
    await findJobRow(page, 'Running', id)
      .getByText(/^Pages? (\d+ to )?\d+ of 200/)
      .waitFor()
    assert.equal(await page.evaluate('globalThis.notReloaded'), true)
    await client.fetch(`/api/v1/jobs/${id}`, { method: 'DELETE' })
  })
})
