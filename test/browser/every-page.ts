import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import pages from '../../edge/pages/pages.json' with { type: 'json' }
import { until } from '../until.ts'
import { findViolations } from './axe.ts'
import { fill as fillAccount } from './fill/account.ts'
import { fill as fillChat } from './fill/chat.ts'
import { fill as fillDocuments } from './fill/documents.ts'
import type { FillInput } from './fill/fill.ts'
import { fill as fillMessages } from './fill/messages.ts'
import { fill as fillMonitor } from './fill/monitor.ts'
import { fill as fillOrganizations } from './fill/organizations.ts'
import { fill as fillPayments } from './fill/payments.ts'
import { fill as fillWrite } from './fill/write.ts'
import { EMAIL, PASSWORD, type WatchedService } from './watched-service.ts'

/** Opens every page of `pages.json` and checks what must hold for each, in any state. */

const FILLS = [
  fillAccount,
  fillChat,
  fillDocuments,
  fillMessages,
  fillMonitor,
  fillOrganizations,
  fillPayments,
  fillWrite,
]

/** Inserts the rows of all areas. Returns the address of each page. */
export async function fillAll(input: FillInput): Promise<readonly string[]> {
  let addresses: Record<string, string> = {}
  for (const fill of FILLS) addresses = { ...addresses, ...(await fill(input)) }
  return pages.map(({ path }) => addresses[path] ?? path).filter((path) => !path.includes(':'))
}

/** Addresses of the pages that need no row. */
export const pagesWithoutRows: readonly string[] = pages
  .map(({ path }) => path)
  .filter((path) => !path.includes(':'))

/** Width and theme of each look at a page. */
const LOOKS = [
  { width: 1440, height: 900, colorScheme: 'light', rules: null },
  { width: 1440, height: 900, colorScheme: 'dark', rules: ['color-contrast'] },
  { width: 390, height: 844, colorScheme: 'dark', rules: ['color-contrast'] },
  { width: 390, height: 844, colorScheme: 'light', rules: null },
] as const

/** Sums the layout shifts of a page, apart from those that follow an input. */
const OBSERVE_SHIFTS = `window.shift = 0
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value
}).observe({ type: 'layout-shift', buffered: true })`

// A shift above this value disturbs readers (web.dev/articles/cls). Pages stay far below it.
const MAX_SHIFT = 0.05

/** Creates a browser context that is signed in, or has no session. */
export async function createContext(
  browser: { newContext(): Promise<BrowserContext> },
  { port }: Pick<WatchedService, 'port'>,
  email: string | null = EMAIL,
): Promise<BrowserContext> {
  const context = await browser.newContext()
  await context.addInitScript(OBSERVE_SHIFTS)
  if (email !== null)
    await context.request.post(`http://127.0.0.1:${port}/api/v1/auth/token`, {
      form: { username: email, password: PASSWORD },
    })
  return context
}

/** Waits until every section of a page has loaded or failed. */
export const waitUntilSettled = (page: Page): Promise<unknown> =>
  until(`${page.url()} has settled`, () =>
    page.evaluate<boolean>(
      `document.querySelector('main h1:not(.hidden), main .failure') !== null
        && document.querySelector('main [aria-busy=true], main .skeleton') === null`,
    ),
  )

/**
 * Checks a page that has settled: no violation of accessibility, no sideways scrolling, one heading of the first level.
 * Takes a picture of each look into the folder that PAGE_PICTURES names.
 */
export async function checkLooks(page: Page, address: string, state: string): Promise<void> {
  const problems: string[] = []
  for (const { rules, ...look } of LOOKS) {
    const name = `${address}, ${state}, ${look.width}, ${look.colorScheme}`
    await page.setViewportSize({ width: look.width, height: look.height })
    await page.emulateMedia({ colorScheme: look.colorScheme, reducedMotion: 'reduce' })
    const wider = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    )
    if (wider !== 0) problems.push(`${name}: ${String(wider)} px too wide`)
    await takePicture(page, `${address}-${state}-${look.width}-${look.colorScheme}`)
    for (const violation of await findViolations(page, rules)) problems.push(`${name}: ${violation}`)
  }
  if ((await page.getByRole('heading', { level: 1 }).count()) !== 1)
    problems.push(`${address}, ${state}: not one h1`)
  if ((await page.getByRole('main').count()) !== 1) problems.push(`${address}, ${state}: not one main`)
  assert.deepEqual(problems, [])
}

/** Checks that nothing moved while the page loaded. */
export async function checkShift(page: Page, address: string): Promise<void> {
  const shift = await page.evaluate<number>('window.shift')
  assert.ok(shift < MAX_SHIFT, `${address}: layout shift of ${shift}`)
}

async function takePicture(page: Page, name: string): Promise<void> {
  const folder = process.env.PAGE_PICTURES
  if (!folder) return
  mkdirSync(folder, { recursive: true })
  const file = name.replace(/^\/|[^\w-]+/g, '_')
  await page.screenshot({ path: join(folder, `${file}.png`), fullPage: false })
}
