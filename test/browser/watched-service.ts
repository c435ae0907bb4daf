import assert from 'node:assert/strict'
import { after } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { createTestDatabase, type TestDatabase } from '../database.ts'
import * as crash from '../flow/crash.ts'
import { findFreePort } from '../free-port.ts'
import { shareStoredKey } from '../keys.ts'
import { Client, startProcess } from '../service.ts'
import { until } from '../until.ts'
import { launch } from './chromium.ts'

/** Runs a service and the system's Chromium to test the pages in a browser. */

export const EMAIL = 'admin@example.com'
export const READER_EMAIL = 'reader@example.com'
export const PASSWORD = 'correct horse'

export interface WatchedService {
  readonly url: string
  readonly query: TestDatabase['query']
  readonly port: number
  readonly edge: Awaited<ReturnType<typeof startProcess>>
  /** A client signed in as the admin. */
  readonly client: Client
  /** Opens a page in a new browser context. Errors in the page fail the test. */
  open(t: { after(work: () => unknown): void }, path: string): Promise<Page>
}

/** Starts a service with a worker, an admin and a reader account, and a browser. All stop after the suite. */
export async function startWatchedService(
  chromium: string,
  more: Readonly<Record<string, string>> = {},
): Promise<WatchedService> {
  const { url, db, query } = await createTestDatabase()
  await shareStoredKey(db)
  // Slow enough that the test can observe the progress.
  await crash.recordWrites(query, 60)
  const port = Number(more.PORT ?? (await findFreePort()))
  const edge = await startProcess('edge', url, { PORT: String(port), RAG_EMBEDDINGS: 'lexical', ...more })
  await startProcess('worker', url, { RAG_EMBEDDINGS: 'lexical', ...more, PORT: '0' })
  const client = new Client(port)
  await client.register(EMAIL)
  await new Client(port).register(READER_EMAIL)
  const browser = await launch(chromium)
  after(() => browser.close())
  const open: WatchedService['open'] = async (t, path) => {
    const context = await browser.newContext()
    const page = await context.newPage()
    const problems: string[] = []
    page.on('pageerror', (error) => problems.push(String(error)))
    page.on('console', (message) => {
      // Ignore error responses and lost connections, which the browser itself logs.
      if (message.type() === 'error' && !/Failed to load resource|ERR_/.test(message.text()))
        problems.push(message.text())
    })
    t.after(async () => {
      await context.close()
      assert.deepEqual(problems, [])
    })
    await page.goto(`http://127.0.0.1:${port}${path}`)
    return page
  }
  return { url, query, port, edge, client, open }
}

export async function signIn(page: Page, email = EMAIL): Promise<void> {
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Presses a button or another element with the keyboard. */
export async function press(page: Page, button: Locator): Promise<void> {
  await button.focus()
  await page.keyboard.press('Enter')
}

/** Waits until an element has the keyboard focus. With `within`, the focus may be on an element inside it. */
export async function waitForFocus(name: string, node: Locator, within = false): Promise<void> {
  const selector = within ? ':focus, :focus-within' : ':focus'
  await until(`${name} has the focus`, () => node.evaluate((one, at) => one.matches(at), selector))
}

export const findSection = (page: Page, name: string): Locator =>
  page.getByRole('region', { name, exact: true })

export const findJobRow = (page: Page, list: string, id: string): Locator =>
  findSection(page, list)
    .getByRole('listitem')
    .filter({ hasText: id.slice(-8) })
