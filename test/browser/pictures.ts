import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { createTestDatabase } from '../database.ts'
import { createLedger } from '../edge/ledger.ts'
import * as crash from '../flow/crash.ts'
import { shareStoredKey } from '../keys.ts'
import { buildMixedPdf } from '../pdfs.ts'
import { Client, startProcess } from '../service.ts'
import { until } from '../until.ts'
import { findChromium, launch, SKIP_REASON } from './chromium.ts'
import { createContext, fillAll, waitUntilSettled } from './every-page.ts'
import { signIn } from './watched-service.ts'

/** Retakes the README's screenshots from a running service (`npm run pictures`). */

const PICTURES_FOLDER = new URL('../../edge/pages/pictures/', import.meta.url)
const MAX_BYTES = 150_000
const WIDE_VIEWPORT = { width: 1280, height: 800 }
const NARROW_VIEWPORT = { width: 390, height: 844 }

const database = await createTestDatabase()
const { url, query } = database
await shareStoredKey(database.db)
const ledger = createLedger(database)
await crash.recordWrites(query, 350)
// The job history is replaced for each theme. An edge caches past statistics, so each theme needs its own edge.
const edges = { light: await startEdge(), dark: await startEdge() }
const QUEUES = 'accounts,blog,comms,documents,payments,pictures,system'
await startProcess('worker', url, { WORKER_THREADS: '2', WORKER_QUEUES: QUEUES })
let client = edges.light
const chromium = findChromium()

async function startEdge(): Promise<Client> {
  return new Client((await startProcess('edge', url)).ready.port!)
}

/** Inserts jobs that ended within the last ten minutes, instead of running real ones. */
async function insertHistory(): Promise<void> {
  await query(`delete from job where payload = '{}' and finished_at is not null`)
  await query(`
    insert into job (id, name, queue, mailbox, payload, status, max_tries, attempt, created_at, started_at, finished_at, error_code, error_detail)
    select gen_random_uuid(), name, queue, name || '/0', '{}', case when failed then 'failed' else 'done' end, 3, case when failed then 3 else 1 end,
      at - ms * interval '1 ms', at - ms * interval '0.8 ms', at,
      case when failed then code end, case when failed then detail end
    from (
      select *, now() - interval '600 s' * (n::float8 / count) as at, n % misses = misses - 1 as failed,
        base * (1 + 0.35 * sin(n * 40.0 / count)) * (0.5 + random()) as ms
      from (values
        ('documents.extract', 'documents', 900, 1900.0, 173, 'document.bytes_missing', 'The document is missing from storage'),
        ('comms.email', 'comms', 2600, 240.0, 1301, 'email.failed', 'The email provider could not be reached or failed: connection timed out'),
        ('payments.event', 'payments', 1700, 42.0, 1000000, '', ''),
        ('blog.import', 'blog', 60, 900.0, 1000000, '', ''),
        ('documents.draw', 'pictures', 1500, 95.0, 1000000, '', '')
      ) as kinds (name, queue, count, base, misses, code, detail), generate_series(1, count) n
      where random() < 0.35 + 0.6 * abs(sin(n * 9.0 / count))) ended`)
}

/** Uploads documents and extracts them. Returns the id of the first document. */
async function extractDocuments(edition: string): Promise<number> {
  const read = async (pages: number, title: string): Promise<number> => {
    const line = (n: number): string => `${title}, ${edition}, page ${n}`
    const bytes = await buildMixedPdf(pages, [1, 3], { sentences: 16, line })
    const { id } = (await (await client.upload(bytes, `${title}.pdf`)).json()) as { id: number }
    await crash.extract(client, id)
    return id
  }
  const id = await read(40, 'Annual report')
  for (const title of ['Harbour ledger', 'Minutes of the second committee', 'Letters from the coast'])
    await read(60, title)
  return id
}

test('takes the screenshots', { skip: chromium === null && SKIP_REASON, timeout: 240_000 }, async (t) => {
  mkdirSync(PICTURES_FOLDER, { recursive: true })
  await client.register('admin@example.com')
  const later = { queue: 'blog', name: 'blog.import', delay_ms: 3_600_000 }
  for (let n = 0; n < 3; n++) await ledger.add(null, later)
  const browser = await launch(chromium!)
  t.after(() => browser.close())
  for (const colorScheme of ['light', 'dark'] as const) {
    edges[colorScheme].token = client.token
    client = edges[colorScheme]
    const id = await extractDocuments(colorScheme)
    await insertHistory()
    const context = await browser.newContext({ colorScheme, viewport: WIDE_VIEWPORT })
    const page = await context.newPage()
    page.on('pageerror', (error) => t.diagnostic(String(error)))
    await page.goto(`${client.base}/monitor`)
    await signIn(page, 'admin@example.com')
    await page.locator('#link.live').waitFor()
    await page.locator('progress[value]').nth(1).waitFor()
    await page.waitForTimeout(1000)
    await takeScreenshot(page, `monitor-${colorScheme}`)
    await page.setViewportSize(NARROW_VIEWPORT)
    await takeScreenshot(page, `phone-${colorScheme}`)
    await page.setViewportSize(WIDE_VIEWPORT)
    await page.goto(`${client.base}/documents/${id}`)
    await page.locator('.page:not(.waits) img').first().waitFor()
    await until('the page is drawn', () =>
      page.evaluate(`document.querySelector('.page img').naturalWidth > 0`),
    )
    await page.waitForTimeout(300)
    await takeScreenshot(page, `document-${colorScheme}`)
    await page.goto(`${client.base}/docs`)
    await page.getByPlaceholder('Filter by tag').fill('documents')
    await page.locator('#operations-documents-post_documents_by_id_extract').click()
    await page.evaluate('scrollTo(0, 320)')
    await page.waitForTimeout(700)
    await takeScreenshot(page, `reference-${colorScheme}`)
    for (const { id } of await query(`select id from job where finished_at is null`))
      await client.fetch(`/api/v1/jobs/${id}`, { method: 'DELETE' })
    await context.close()
  }
})

test('takes a picture of every page', {
  skip: chromium === null && SKIP_REASON,
  timeout: 600_000,
}, async (t) => {
  mkdirSync(new URL('pages/', PICTURES_FOLDER), { recursive: true })
  // The other database writes slowly, so that progress can be seen.
  const full = await createTestDatabase()
  await shareStoredKey(full.db)
  const viewer = new Client((await startProcess('edge', full.url)).ready.port!)
  await viewer.register('admin@example.com')
  const [admin] = await full.query('select id from account order by id limit 1')
  const addresses = await fillAll({ query: full.query, accountId: admin!.id as number })
  const browser = await launch(chromium!)
  t.after(() => browser.close())
  const context = await createContext(browser, { port: Number(new URL(viewer.base).port) })
  for (const address of addresses) {
    const page = await context.newPage()
    await page.goto(viewer.base + address)
    await waitUntilSettled(page)
    for (const [width, height, colorScheme] of [
      [1440, 900, 'light'],
      [390, 844, 'dark'],
    ] as const) {
      await page.setViewportSize({ width, height })
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      const words = address.replace(/#.*/, '').split('/').filter(Boolean)
      const name =
        words.map((word) => (/^\d+$|^[\da-f-]{20,}$/.test(word) ? 'one' : word)).join('-') || 'home'
      await takeScreenshot(page, `pages/${name}-${width}`)
    }
    await page.close()
  }
})

/** Takes a picture with few colours, which a repository can keep. */
async function takeScreenshot(page: Page, name: string): Promise<void> {
  const picture = await sharp(await page.screenshot())
    .png({ palette: true, colours: 128, effort: 10 })
    .toBuffer()
  assert.ok(picture.length < MAX_BYTES, `${name}: ${picture.length} bytes`)
  writeFileSync(new URL(`${name}.png`, PICTURES_FOLDER), picture)
}
