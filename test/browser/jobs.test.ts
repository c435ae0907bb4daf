import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { Client } from '../service.ts'
import { until } from '../until.ts'
import { findViolations } from './axe.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { fill } from './fill/monitor.ts'
import {
  EMAIL,
  findSection,
  PASSWORD,
  READER_EMAIL,
  signIn,
  startWatchedService,
  waitForFocus,
} from './watched-service.ts'

/** Tests the home page, and the pages where owners and operators work with jobs. */

const chromium = findChromium()

const WIDER = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'

/** Checks that a page has no violations and scrolls only vertically, wide and narrow. */
async function checkLayout(page: Page, name: string): Promise<void> {
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 })
    assert.equal(await page.evaluate(WIDER), 0, `${name}, ${width}`)
    assert.deepEqual(await findViolations(page), [], `${name}, ${width}`)
  }
  await page.setViewportSize({ width: 1440, height: 900 })
}

describe('jobs in a browser', { skip: chromium === null && SKIP_REASON, concurrency: false }, async () => {
  if (chromium === null) return
  const { query, port, client, open } = await startWatchedService(chromium)
  const base = `http://127.0.0.1:${port}`
  const addBatch = async (body: object): Promise<string> => {
    const response = await client.post('/api/v1/batches', body)
    return ((await response.json()) as { batch_id: string }).batch_id
  }

  test('the home page introduces the service, then says what needs a look, or that all is well', async (t) => {
    const page = await open(t, '/')
    await page.getByRole('link', { name: 'API reference' }).waitFor()
    await checkLayout(page, 'welcome')
    await client.post('/api/v1/queues/voice/pause')
    await query(
      `insert into job (id, name, queue, mailbox, payload, status, max_tries, finished_at, error_code, error_detail)
       select gen_random_uuid(), 'system.noop', 'system', 'n', '{}', 'failed', 1, now(), 'internal', 'It broke' from generate_series(1, 12)`,
    )
    await signIn(page)
    const state = findSection(page, 'State')
    await state.getByText('12 system.noop jobs failed in the last 10 minutes').waitFor()
    await state.getByText('Your admin account has no second factor').waitFor()
    await state.getByText('The queue voice is paused').waitFor()
    await checkLayout(page, 'home')
    await state.getByRole('button', { name: 'Resume voice' }).click()
    await state.getByText('The queue voice is paused').waitFor({ state: 'detached' })
    await state
      .getByRole('link', { name: /^Show the jobs: 12 system.noop/ })
      .first()
      .click()
    await findSection(page, 'Jobs').getByText('12 in all').waitFor()

    const reader = await open(t, '/')
    await signIn(reader, READER_EMAIL)
    const link = findSection(reader, 'State').getByRole('link', { name: /^Verify it/ })
    assert.equal(await link.getAttribute('href'), '/account')
    await query('update account set is_verified = true where email = $1', [READER_EMAIL])
    await reader.reload()
    await findSection(reader, 'State').getByText('All is well. Nothing needs you.').waitFor()
    await reader.getByText('No failed jobs.').waitFor()
    await checkLayout(reader, "an owner's home")
  })

  test('an owner adds a job, finds it, runs it again and deletes both', async (t) => {
    const page = await open(t, '/monitor/jobs')
    await signIn(page, READER_EMAIL)
    const jobs = findSection(page, 'Jobs')
    await jobs.getByText('No jobs yet.').waitFor()
    await jobs.getByRole('button', { name: 'New job' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Task').fill('io_simulation_task')
    await dialog.getByText('Number of consecutive waits').waitFor()
    await dialog.getByLabel('Arguments').fill('{"operations": 1, "duration_ms": 5}')
    assert.deepEqual(await findViolations(page), [])
    await dialog.getByRole('button', { name: 'Add job' }).click()
    await page.getByRole('heading', { name: 'system.io_simulation_task' }).waitFor()
    await findSection(page, 'Job').locator('.status').getByText('done').waitFor()
    await findSection(page, 'Attempts').getByText('Attempt 1').waitFor()
    await findSection(page, 'Job')
      .getByRole('button', { name: 'Run again: system.io_simulation_task' })
      .click()
    await dialog.getByText('Length of each wait').waitFor()
    assert.match(await dialog.getByLabel('Arguments').inputValue(), /"duration_ms": 5/)
    const first = page.url()
    await dialog.getByRole('button', { name: 'Add job' }).click()
    // Another navigation must not abort this one.
    await page.waitForURL(({ href }) => href !== first)
    await until('the second job', async () => {
      const rows = await query(
        `select from job where name = 'system.io_simulation_task' and finished_at is not null`,
      )
      return rows.length === 2
    })

    await page.goto(`${base}/monitor/jobs`)
    await jobs.getByRole('combobox', { name: /^State/ }).selectOption('done')
    await jobs.getByRole('combobox', { name: 'Task', exact: true }).fill('system.io_simulation_task')
    await until('the address has the filters', () => page.url().includes('task=system.io'))
    await jobs.locator('summary', { hasText: 'Columns' }).click()
    const attempts = jobs.getByRole('checkbox', { name: 'Attempts' })
    await attempts.check()
    await page.keyboard.press('Escape')
    await attempts.waitFor({ state: 'hidden' })
    await waitForFocus('the menu', jobs.locator('summary', { hasText: 'Columns' }))
    await page.keyboard.press('Enter')
    await attempts.waitFor()
    await page.getByRole('heading', { level: 1 }).click()
    await attempts.waitFor({ state: 'hidden' })
    await page.reload()
    await jobs.getByRole('columnheader', { name: 'Attempts' }).waitFor()
    assert.equal(await jobs.getByRole('row').count(), 3)
    assert.equal(await jobs.getByRole('columnheader', { name: 'Owner' }).count(), 0)
    await checkLayout(page, 'jobs')
    await jobs
      .getByRole('link', { name: /^system.io_simulation_task/ })
      .first()
      .click()
    await page.getByRole('link', { name: '← Back to the filtered jobs' }).click()
    await jobs.getByLabel('Select all').check()
    await jobs.getByRole('group', { name: 'Selected rows' }).getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete 2 jobs' }).click()
    await jobs.getByText('Nothing matches these filters.').waitFor()
    await page.goto(`${base}/monitor/jobs/00000000-0000-7000-8000-000000000000`)
    await page.getByText('No such job').waitFor()
    await page.getByRole('link', { name: 'All jobs' }).waitFor()
  })

  test('a batch shows its jobs as a graph with live states, and retries what failed', async (t) => {
    const jobs = [
      { task_name: 'noop' },
      { task_name: 'io_simulation_task', queue_type: 'load_test', after: [0] },
      { task_name: 'failure_testing_task', after: [0], args: { probability: 1 } },
      { task_name: 'noop', after: [1, 2] },
    ]
    await client.post('/api/v1/queues/load_test/pause')
    const id = await addBatch({ name: 'Four jobs', jobs })
    const page = await open(t, `/monitor/jobs/${id}`)
    await signIn(page)
    await page.getByRole('heading', { name: 'Four jobs' }).waitFor()
    const graph = page.getByRole('group', { name: 'Graph of jobs' })
    await graph.getByRole('link', { name: /^load_test.io_simulation_task \w+: queued$/ }).waitFor()
    await graph.getByRole('link', { name: /^system.failure_testing_task \w+: failed$/ }).waitFor()
    await graph.getByRole('link', { name: /^system.noop \w+: cancelled$/ }).waitFor()
    await client.post('/api/v1/queues/load_test/resume')
    await graph.getByRole('link', { name: /^load_test.io_simulation_task \w+: done$/ }).waitFor()
    assert.equal(await graph.locator('path').count(), 4)
    await findSection(page, 'Timeline')
      .getByText(/^load_test.io_simulation_task/)
      .waitFor()
    const batch = findSection(page, 'Jobs of the batch')
    await batch.getByText('4 of 4 jobs have ended.').waitFor()
    await checkLayout(page, 'batch')
    await batch.getByRole('button', { name: 'Retry what failed in Four jobs' }).click()
    await page.waitForURL((url) => url.pathname !== `/monitor/jobs/${id}`)
    await page.getByText('2 of 2 jobs have ended.').waitFor()

    const open2 = await addBatch({ name: 'An open batch', jobs: [], open: true })
    await page.goto(`${base}/monitor/jobs/${open2}`)
    await page.getByText('The batch has no jobs yet.').waitFor()
    await page.getByRole('button', { name: 'Close An open batch' }).click()
    await findSection(page, 'Job').locator('.status').getByText('done').waitFor()
  })

  test('an owner creates, runs, changes, pauses and deletes a schedule', async (t) => {
    const page = await open(t, '/monitor/schedules')
    await signIn(page, READER_EMAIL)
    await page.getByRole('button', { name: 'New schedule' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Nightly')
    await dialog.getByLabel('Task').fill('noop')
    await dialog.getByLabel('Times (cron)').fill('30 2 * *')
    await dialog.getByRole('button', { name: 'Create schedule' }).click()
    await dialog.getByText(/must be five cron fields/).waitFor()
    await dialog.getByLabel('Times (cron)').fill('30 2 * * mon-fri')
    await dialog.getByLabel('Time zone').fill('Europe/Berlin')
    await dialog.getByRole('button', { name: 'Create schedule' }).click()
    const row = page.getByRole('row').filter({ hasText: 'Nightly' })
    await row.getByText('Europe/Berlin').waitFor()
    await row.getByRole('button', { name: 'Run now: Nightly' }).click()
    await row.getByRole('link', { name: /^Nightly, .*: done$/ }).waitFor()
    await row.getByRole('button', { name: 'Edit Nightly' }).click()
    await dialog.getByLabel('Times (cron)').fill('')
    await dialog.getByLabel('Or an interval in seconds').fill('7200')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await row.getByText('every 2 hours').waitFor()
    await row.getByRole('button', { name: 'Pause Nightly' }).click()
    await row.getByText('paused', { exact: true }).waitFor()
    await checkLayout(page, 'schedules')
    await row.getByRole('button', { name: 'Delete Nightly' }).click()
    await page.getByRole('button', { name: 'Delete schedule' }).click()
    await page.getByText('You have no schedules.').waitFor()
  })

  test('an owner makes a worker queue, declares a task, and adds a job that a worker takes', async (t) => {
    const page = await open(t, '/monitor/worker-queues')
    await signIn(page, READER_EMAIL)
    await page.getByRole('button', { name: 'New worker queue' }).first().click()
    const dialog = page.getByRole('dialog').last()
    await dialog.getByLabel('Name').fill('images')
    await dialog.getByLabel('Description').fill('Pictures of products')
    await dialog.getByRole('button', { name: 'Create queue' }).click()
    const row = page.getByRole('row').filter({ hasText: 'Pictures of products' })
    await row.getByRole('button', { name: 'Tasks of images' }).click()
    await page.getByRole('button', { name: 'Declare a task' }).click()
    await dialog.getByLabel('Task name').fill('resize')
    await dialog
      .getByLabel('JSON Schema of the arguments')
      .fill(
        '{"type": "object", "properties": {"url": {"type": "string", "description": "Address of the picture"}}}',
      )
    await dialog.getByRole('button', { name: 'Declare task' }).click()
    await page.getByRole('dialog').getByText('resize', { exact: true }).waitFor()
    await checkLayout(page, 'tasks of a worker queue')
    await page.keyboard.press('Escape')
    await row.getByText('resize', { exact: true }).waitFor()

    await page.goto(`${base}/monitor/jobs`)
    await page.getByRole('button', { name: 'New job' }).first().click()
    await dialog.getByLabel('Queue').selectOption('images')
    await dialog.getByLabel('Task').fill('resize')
    await dialog.getByText('Address of the picture').waitFor()
    await dialog.getByLabel('Arguments').fill('{"url": "https://example.com/a.png"}')
    await dialog.getByRole('button', { name: 'Add job' }).click()
    await page.getByRole('heading', { name: 'images/resize' }).waitFor()
    const worker = new Client(port)
    await worker.signIn(READER_EMAIL, PASSWORD)
    const claims = await worker.post('/api/v1/worker-queues/images/claims', { worker: 'a test' })
    assert.equal(claims.status, 200)
    await findSection(page, 'Job').locator('.status').getByText('running').waitFor()
    await page.goto(`${base}/monitor/worker-queues`)
    await row.getByText('1 connected').waitFor()
    await row.getByRole('link', { name: '1 running jobs of images' }).waitFor()
    await checkLayout(page, 'worker queues')
    await row.getByRole('button', { name: 'Delete images' }).click()
    await page.getByRole('dialog').getByText('Its 1 unfinished job is cancelled').waitFor()
    await page.getByRole('button', { name: 'Delete queue' }).click()
    await page.getByText('You have no worker queues.').waitFor()
  })

  test('charts show queues over time, and 10,000 jobs keep every page in order', async (t) => {
    const [admin] = await query('select id from account where email = $1', [EMAIL])
    const paths = await fill({ query, accountId: admin!.id as number })
    const page = await open(t, '/monitor/charts?window=24h')
    await signIn(page)
    await page.getByRole('img', { name: 'Jobs ended per minute' }).waitFor()
    await page.getByRole('img', { name: 'Jobs by time' }).waitFor()
    await page.getByRole('button', { name: 'The last 7 days' }).click()
    await page.getByRole('img', { name: 'Jobs failed each 2 h' }).waitFor()
    assert.match(page.url(), /window=7d/)
    await page.getByRole('region', { name: 'Wait time, median' }).locator('summary').click()
    await page.getByRole('group', { name: 'Wait time, median: values' }).getByRole('row').nth(5).waitFor()
    await page.getByLabel('of').selectOption('comms')
    await page.getByLabel('Show').selectOption('wait times')
    assert.match(page.url(), /queue=comms&measure=waits/)
    await checkLayout(page, 'charts')
    const shown = {
      '/monitor': 'Failures by task',
      '/monitor/jobs': '50 shown',
      '/monitor/jobs?view=failures': 'Jobs that failed, by task and error code',
      '/monitor/schedules': '50 shown',
      '/monitor/worker-queues': '50 shown',
      '/monitor/usage': 'Size of tables by day',
      [paths['/monitor/jobs/:job_id']!]: '240 of 300 jobs have ended.',
      '/': /things need a look/,
    }
    for (const [path, text] of Object.entries(shown)) {
      await page.goto(base + path)
      await page.getByText(text).first().waitFor()
      await checkLayout(page, path)
    }
  })
})
