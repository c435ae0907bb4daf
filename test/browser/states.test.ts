import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import pages from '../../edge/pages/pages.json' with { type: 'json' }
import { findChromium, launch, SKIP_REASON } from './chromium.ts'
import {
  checkLooks,
  checkShift,
  createContext,
  fillAll,
  pagesWithoutRows,
  waitUntilSettled,
} from './every-page.ts'
import { READER_EMAIL, startWatchedService } from './watched-service.ts'

/** Opens every page empty and with 10,000 rows, at two widths and in both themes. */

const chromium = findChromium()

describe('every page', { skip: chromium === null && SKIP_REASON, concurrency: false }, async () => {
  if (chromium === null) return
  const service = await startWatchedService(chromium)
  const { port, query } = service
  const browser = await launch(chromium)

  /** Opens a page, waits until it has settled, and returns its errors. */
  async function openPage(
    context: BrowserContext,
    address: string,
  ): Promise<{ page: Page; errors: string[] }> {
    const page = await context.newPage()
    const errors: string[] = []
    page.on('pageerror', (error) => errors.push(String(error)))
    await page.goto(`http://127.0.0.1:${port}${address}`)
    await waitUntilSettled(page)
    return { page, errors }
  }

  async function checkAll(t: TestContext, addresses: readonly string[], state: string): Promise<void> {
    const context = await createContext(browser, service)
    for (const address of addresses)
      await t.test(`${address}, ${state}`, async () => {
        const { page, errors } = await openPage(context, address)
        try {
          await checkShift(page, address)
          assert.equal(await page.locator('main .failure').count(), 0)
          await checkLooks(page, address, state)
          assert.deepEqual(errors, [])
        } finally {
          await page.close()
        }
      })
    await context.close()
  }

  test('is accessible and fits both widths while there is nothing', async (t) =>
    checkAll(t, pagesWithoutRows, 'empty'))

  test('is accessible and fits both widths with 10,000 rows', async (t) => {
    const [admin] = await query('select id from account order by id limit 1')
    const addresses = await fillAll({ query, accountId: admin!.id as number })
    assert.equal(addresses.length, pages.length, 'each page with a parameter has an address')
    await checkAll(t, addresses, 'full')
  })

  test('that is for admins says so to others', async (t) => {
    const context = await createContext(browser, service, READER_EMAIL)
    for (const { path } of pages.filter((page) => page.for === 'admin'))
      await t.test(path, async () => {
        const { page } = await openPage(context, path.replace(/:\w+/g, '1'))
        await page.getByRole('heading', { name: 'Admins only' }).waitFor()
        await page.close()
      })
    await context.close()
    await browser.close()
  })
})
