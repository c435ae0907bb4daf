import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import * as crash from '../flow/crash.ts'
import { until } from '../until.ts'
import { findViolations } from './axe.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { insertTriedJob } from './tried-job.ts'
import {
  EMAIL,
  findJobRow,
  findSection,
  press,
  READER_EMAIL,
  signIn,
  startWatchedService,
  waitForFocus,
} from './watched-service.ts'

/** Tests the admin pages for usage, jobs, queues and schedules. */

const chromium = findChromium()

describe('admin pages', { skip: chromium === null && SKIP_REASON, concurrency: false }, async () => {
  if (chromium === null) return
  const { query, port, client, open } = await startWatchedService(chromium)

  test('the usage page shows table sizes, and the models and messages of the chosen days', async (t) => {
    await query(`insert into ai_usage (user_id, action, vendor, model, input_tokens, output_tokens, cost, estimated, success, created_at)
      select 'u', 'chat', 'openai', 'gpt-4o-mini', 900, 100, 0.5, false, true, now() - n * interval '20 days' from generate_series(0, 3) n`)
    await query(`insert into comms_send (id, channel, job_id, recipients, status, message, requested_at, settled_at)
      select gen_random_uuid(), 'sms', gen_random_uuid(), '{x}', 'unknown', '{}', now(), now() from generate_series(1, 7)`)
    await query('analyze')
    const page = await open(t, '/monitor')
    await signIn(page)
    await page.getByRole('link', { name: 'Usage', exact: true }).click()
    const cost = findSection(page, 'Model costs')
    await cost.getByRole('row', { name: 'gpt-4o-mini openai 2 2,000 $1.00' }).waitFor()
    await cost.getByRole('img', { name: 'Model costs by day, $1.00 in total' }).waitFor()
    await findSection(page, 'Messages').getByRole('row', { name: 'unknown 0 7' }).waitFor()
    const tables = findSection(page, 'Tables')
    await tables
      .locator('summary')
      .getByText(/^\d+ small tables, /)
      .click()
    await tables.getByRole('row', { name: /^ai_usage 4 .* 365 days 0$/ }).waitFor()
    await page.getByLabel('The last').selectOption('90 days')
    await cost.getByRole('row', { name: 'gpt-4o-mini openai 4 4,000 $2.00' }).waitFor()
    await cost.locator('summary', { hasText: 'By day' }).focus()
    await page.keyboard.press('Enter')
    const days = cost.getByRole('row', { name: /^\d{4}-\d\d-\d\d .* \$0\.50$/ })
    await until('a row for each day', async () => (await days.count()) === 4)
    const other = await open(t, '/monitor/usage')
    await signIn(other, READER_EMAIL)
    await other.getByRole('heading', { name: 'Admins only' }).waitFor()
  })

  test('a running job shows its progress and can be cancelled by keyboard', async (t) => {
    const page = await open(t, '/monitor')
    await signIn(page)
    const id = await crash.extract(client, await crash.uploadText(client, 300, 'too long'))
    const row = findJobRow(page, 'Running', id)
    await row.getByText(/^Pages? (\d+ to )?\d+ of 300/).waitFor()
    const value = () =>
      row.getByRole('progressbar').evaluate((bar) => (bar as unknown as { value: number }).value)
    const before = await value()
    await until('the progress increases', async () => (await value()) > before)
    await row.getByRole('button', { name: /^Cancel/ }).focus()
    await page.keyboard.press('Enter')
    await row.waitFor({ state: 'detached' })
    const job = await (await client.fetch(`/api/v1/jobs/${id}`)).json()
    assert.equal((job as { status: string }).status, 'cancelled')
  })

  test('a failed job shows its error, can be retried, and links to its retry', async (t) => {
    const documentId = await crash.uploadText(client, 3, 'again')
    const failed = await crash.extract(client, documentId)
    await crash.waitForJob(query, failed)
    await query(
      `update job set status = 'failed', result = null, error_code = 'job.crashed', error_detail = '<b>It broke</b>' where id = $1`,
      [failed],
    )
    const page = await open(t, '/monitor')
    await signIn(page)
    const group = findSection(page, 'Failed in the last hour')
      .getByRole('listitem')
      .filter({ hasText: 'job.crashed' })
    await group.getByText('<b>It broke</b>').waitFor()
    await group.getByText('1×').waitFor()
    await group.getByRole('link').click()
    const row = findSection(page, 'Jobs')
      .getByRole('row')
      .filter({ hasText: failed.slice(-8) })
    await row.getByText('job.crashed: <b>It broke</b>').waitFor()
    await row.getByRole('button', { name: /^Retry/ }).click()
    await page.getByText('Retrying documents.extract').waitFor()
    await page.reload()
    await row.getByRole('link', { name: /^Retried: documents.extract/ }).click()
    await page.getByRole('heading', { name: 'documents.extract' }).waitFor()
    await findSection(page, 'Job').locator('.status').getByText('done').waitFor()
    const before = findSection(page, 'Retries').getByRole('link')
    assert.equal(await before.getAttribute('href'), `/monitor/jobs/${failed}`)
    await findSection(page, 'Events').getByText('Opening the document').first().waitFor()
    await page.getByText('"skipped": 3').waitFor()
  })

  test('one job retries all failures of a kind, and its page shows their outcomes', async (t) => {
    await query(`insert into job (id, name, queue, mailbox, payload, status, attempt, tries, max_tries, error_code, error_detail, finished_at)
      select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'system.noop', 'system', 'n', '{}', 'failed', 1, 1, 1, 'internal', 'It broke ' || n, now() from generate_series(1, 30) n`)
    const page = await open(t, '/monitor/jobs?task=system.noop&status=failed')
    await signIn(page)
    await findSection(page, 'Jobs').getByText('30 in all', { exact: true }).waitFor()
    await query(`update job set attempt = 2 where error_detail = 'It broke 7'`)
    await page.getByLabel('Order').selectOption('most attempts first')
    await findSection(page, 'Jobs').getByRole('row').nth(1).getByText('It broke 7').waitFor()
    await page.getByLabel('Label or error text').fill('broke 7')
    await page.keyboard.press('Enter')
    await until(
      'one job is left',
      async () => (await findSection(page, 'Jobs').getByRole('row').count()) === 2,
    )
    assert.equal(new URL(page.url()).searchParams.get('search'), 'broke 7')
    await page.locator('summary', { hasText: 'All that match' }).click()
    await page.getByRole('button', { name: 'Delete all' }).click()
    await page.getByRole('dialog').getByText('text broke 7').waitFor()
    await page.getByRole('button', { name: 'Delete 1 job' }).waitFor()
    await page.keyboard.press('Escape')
    await page.goto(`http://127.0.0.1:${port}/monitor`)
    const group = findSection(page, 'Failed in the last hour')
      .getByRole('listitem')
      .filter({ hasText: 'internal' })
    await group.getByText('30×').waitFor()
    await group.getByText(/^retry until /).waitFor()
    await group.getByRole('button', { name: /^Retry all/ }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Retry 30 jobs' }).click()
    await page.getByRole('heading', { name: 'jobs.bulk' }).waitFor()
    await findSection(page, 'Job').locator('.status').getByText('done').waitFor()
    await until('each job has its retry', async () => {
      const [row] = await query(
        `select count(*)::int as n from job where retry_of is not null and name = 'system.noop'`,
      )
      return row!.n === 30
    })
  })

  test('a queue row can be paused, limited and resumed, and idle queues are folded', async (t) => {
    const page = await open(t, '/monitor')
    await signIn(page)
    const queues = findSection(page, 'Queues')
    await queues.getByRole('button', { name: /^Show \d+ idle queues$/ }).click()
    const voice = queues.getByRole('row').filter({ hasText: 'voice' })
    await voice.getByRole('button', { name: 'Pause voice' }).click()
    await voice.getByText('paused', { exact: true }).waitFor()
    await voice.getByLabel('Limit of voice').fill('3')
    await page.keyboard.press('Tab')
    await until('the limit is stored', async () => {
      const [row] = await query(`select most_running, paused_at from queue_control where queue = 'voice'`)
      return row?.most_running === 3 && row.paused_at !== null
    })
    await queues.getByRole('button', { name: 'Hide idle queues' }).click()
    await voice.getByRole('button', { name: 'Resume voice' }).click()
    await voice.getByText('paused', { exact: true }).waitFor({ state: 'hidden' })
    await queues.getByLabel('The last').selectOption('week')
    await queues.getByRole('img', { name: /^Jobs of documents that finished in the last week/ }).waitFor()
    await query('delete from queue_control')
  })

  test('axe finds no violations, wide or narrow, light or dark', async (t) => {
    const page = await open(t, '/monitor')
    await signIn(page)
    await page.getByText('Live', { exact: true }).waitFor()
    for (const [width, colorScheme] of [
      [1280, 'light'],
      [390, 'dark'],
    ] as const) {
      await page.setViewportSize({ width, height: 844 })
      await page.emulateMedia({ colorScheme })
      for (const path of [
        '/monitor',
        '/monitor/jobs',
        '/monitor/jobs?view=failures',
        '/monitor/charts',
        '/monitor/worker-queues',
        '/monitor/usage',
        '/documents',
        '/setup',
        '/',
      ]) {
        await page.goto(`http://127.0.0.1:${port}${path}`)
        await page.getByRole('heading').first().waitFor()
        await page.waitForLoadState('networkidle')
        assert.deepEqual(await findViolations(page), [], `${path}, ${width}, ${colorScheme}`)
      }
    }
  })

  const scheduleIn = (page: Page, name: string) =>
    findSection(page, 'Schedules')
      .getByRole('row')
      .filter({ has: page.getByText(name, { exact: true }) })

  test('a schedule can be run, paused and resumed by keyboard, and shows changes by others', async (t) => {
    const page = await open(t, '/monitor')
    await signIn(page)
    await page.getByRole('navigation').getByRole('link', { name: 'Schedules' }).click()
    const row = scheduleIn(page, 'rag-purge')
    await row.getByText('43 * * * *').waitFor()
    await row.getByText(/^in (\d+ min )?\d+ s$/).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    const button = (name: string) => row.getByRole('button', { name })
    const pressed = async (name: string, said: string, then: string) => {
      await press(page, button(name))
      await page.getByRole('status').getByText(said, { exact: true }).waitFor()
      await waitForFocus(then, button(then))
    }
    await pressed('Run now', 'Started rag-purge', 'Run now')
    // The schedule also runs by itself at minute 43.
    const outcome = row.getByRole('link', { name: /^rag-purge, .*: done$/ }).first()
    await outcome.waitFor()

    await pressed('Pause', 'Paused rag-purge', 'Resume')
    await row.getByText('paused', { exact: true }).waitFor()
    const [paused] = await query(
      `select email from schedule join account on account.id = paused_by where schedule.id = 'rag-purge'`,
    )
    assert.equal(paused!.email, EMAIL)
    await pressed('Resume', 'Resumed rag-purge', 'Pause')
    await row.getByText(/^in /).waitFor()

    await client.fetch('/api/v1/schedules/collect/pause', { method: 'POST' })
    await scheduleIn(page, 'collect').getByText('paused', { exact: true }).waitFor()
    await client.fetch('/api/v1/schedules/collect/resume', { method: 'POST' })
    await scheduleIn(page, 'collect').getByText(/^in /).waitFor()
    await outcome.click()
    await page.getByRole('heading', { name: 'rag.purge' }).waitFor()
  })

  test('an account sees only its own schedules', async (t) => {
    const page = await open(t, '/monitor/schedules')
    await signIn(page, READER_EMAIL)
    await page.getByText('You have no schedules.').waitFor()
  })

  test('axe finds no violations on the schedules page, light and dark, wide and narrow', async (t) => {
    await query(
      `insert into job (id, name, queue, mailbox, payload, status, max_tries, finished_at, error_code, error_detail)
       select gen_random_uuid(), 'llm.sync', 'system', status, '{}', status, 1, now(), case when status = 'failed' then 'internal' end,
         'It broke' from unnest(array['failed', 'cancelled', 'done']) status`,
    )
    // One schedule for each outcome, of which one is paused.
    await query(
      `update schedule set last_job_id = job.id, recent_job_ids = array[job.id], last_run_at = now(), paused_at = case status when 'failed' then now() end,
         next_at = case when status <> 'failed' then next_at end
       from job where job.name = 'llm.sync' and mailbox = status
         and schedule.id = case status when 'failed' then 'retention' when 'done' then 'llm-sync' else 'blog-retag' end`,
    )
    const page = await open(t, '/monitor/schedules')
    await signIn(page)
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [1280, 390]) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width, height: 800 })
        await scheduleIn(page, 'retention')
          .getByRole('link', { name: /: failed$/ })
          .waitFor()
        assert.deepEqual(await findViolations(page), [], `${colorScheme}, ${width}`)
      }
    await client.fetch('/api/v1/schedules/retention/resume', { method: 'POST' })
  })

  test('a job page shows attempts, subject, payload and retries, and works by keyboard', async (t) => {
    const { id, failed } = await insertTriedJob(query, 1, 7)
    const page = await open(t, `/monitor/jobs/${id}`)
    await signIn(page)
    const attempts = findSection(page, 'Attempts').getByRole('listitem')
    await attempts.nth(2).waitFor()
    assert.equal(await attempts.count(), 3)
    for (const [n, texts] of [
      ['failed, retried', 'mill/1', 'Waited 1.5 s', 'Ran 302 ms', 'database.busy'],
      ['interrupted', 'mill/2', 'Waited 20 ms', 'Ran 2.5 s'],
      ['done', 'mill/3', 'Waited 5 ms', 'Ran 40 ms'],
    ].entries())
      for (const text of texts) await attempts.nth(n).getByText(text, { exact: true }).waitFor()
    const facts = findSection(page, 'Job')
    for (const text of [EMAIL, 'document:7', 'r-tried', '10 s'])
      await facts.getByText(text, { exact: true }).waitFor()
    const link = findSection(page, 'Related').getByRole('link', { name: 'Document 7' })
    assert.equal(await link.getAttribute('href'), '/documents/7')
    const before = findSection(page, 'Retries').getByRole('link')
    assert.equal(await before.getAttribute('href'), `/monitor/jobs/${failed}`)

    const events = findSection(page, 'Events').getByRole('row')
    assert.equal(await events.count(), 1 + 7)
    assert.deepEqual((await findSection(page, 'Events').locator('.chip').allTextContents()).toReversed(), [
      'running',
      'queued',
      'running',
      'progress',
      'queued',
      'running',
      'done',
    ])
    await page.locator('summary', { hasText: 'Payload' }).focus()
    await page.getByRole('region', { name: 'Payload' }).getByText('"sealedPassword": "***"').waitFor()
    await page.keyboard.press('Tab')
    assert.equal(await page.evaluate('document.activeElement.tagName'), 'PRE')
  })

  test('a short job shows its duration in milliseconds', async (t) => {
    const { id } = await insertTriedJob(query, 1, 8)
    await query(
      `update job set attempt = 1, retry_of = null, finished_at = started_at + interval '302 ms', run_at = created_at where id = $1`,
      [id],
    )
    await query('delete from job_event_row where job_id = $1', [id])
    const page = await open(t, `/monitor/jobs/${id}`)
    await signIn(page)
    const took = findSection(page, 'Job').locator('dl > div').filter({ hasText: 'Took' })
    await took.getByText('302 ms', { exact: true }).waitFor()
    await findSection(page, 'Attempts').getByText('Ran 302 ms').waitFor()
    await findSection(page, 'Events')
      .getByText(/^\d\d:\d\d:\d\d\.\d{3}$/)
      .first()
      .waitFor()
    assert.equal(await findSection(page, 'Retries').count(), 0)
  })

  test('a waiting job shows what it waits for until it may run', async (t) => {
    const documentId = await crash.uploadText(client, 300, 'before it')
    const [first, next] = [
      await crash.extract(client, documentId),
      await crash.extract(client, documentId, '&force=true'),
    ]
    const page = await open(t, `/monitor/jobs/${next}`)
    await signIn(page)
    const waits = findSection(page, 'Waiting for')
    await waits.getByText('It is next in its mailbox.').waitFor()
    assert.equal(await waits.getByRole('link').getAttribute('href'), `/monitor/jobs/${first}`)
    await findSection(page, 'Attempts').getByText('No worker has claimed this job yet.').waitFor()
    assert.deepEqual(await findViolations(page), [])
    await client.fetch(`/api/v1/jobs/${first}`, { method: 'DELETE' })
    await findSection(page, 'Attempts').getByText('Attempt 1', { exact: true }).waitFor()
    assert.equal(await waits.count(), 0)
    await findSection(page, 'Attempts')
      .getByText(/^Running for/)
      .waitFor()
    await client.fetch(`/api/v1/jobs/${next}`, { method: 'DELETE' })
    await findSection(page, 'Attempts').getByText('cancelled', { exact: true }).waitFor()
    await findSection(page, 'Log').getByText('An attempt ended').waitFor()
    assert.deepEqual(await findViolations(page), [])
  })

  test('a job page fits a narrow screen, light and dark, without axe violations', async (t) => {
    const { id } = await insertTriedJob(query, 1, 9)
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open(t, `/monitor/jobs/${id}`)
      await page.emulateMedia({ colorScheme })
      await signIn(page)
      await findSection(page, 'Attempts').getByRole('listitem').first().waitFor()
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 844 })
        const wider = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
        assert.equal(await page.evaluate(wider), 0, `${width}`)
        assert.deepEqual(await findViolations(page), [], `${colorScheme}, ${width}`)
      }
    }
  })

  test('a narrow screen scrolls only vertically, and a screen reader finds headings, tables and one main part', async (t) => {
    const page = await open(t, '/monitor')
    await signIn(page)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.setViewportSize({ width: 360, height: 740 })
    for (const path of [
      '/monitor',
      '/monitor/jobs',
      '/monitor/schedules',
      '/monitor/charts',
      '/monitor/worker-queues',
      '/documents',
      '/monitor/usage',
      '/setup',
      '/',
      '/payment/success',
      '/payment/cancel',
    ]) {
      await page.goto(`http://127.0.0.1:${port}${path}`)
      await page.getByRole('heading').first().waitFor()
      const wider = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
      assert.equal(await page.evaluate(wider), 0, path)
      assert.equal(await page.getByRole('main').count(), 1, path)
      assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, path)
    }
  })
})
