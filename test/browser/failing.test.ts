import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Page, Route } from 'playwright-core'
import pages from '../../edge/pages/pages.json' with { type: 'json' }
import { findChromium, launch, SKIP_REASON } from './chromium.ts'
import { checkLooks, createContext, waitUntilSettled } from './every-page.ts'
import { startWatchedService } from './watched-service.ts'

/** Opens every page while the API fails, at two widths and in both themes. */

const isApi = (url: URL): boolean => /^\/(api|rag|llm|voice|ai)\//.test(url.pathname)
const isAccount = (route: Route): boolean =>
  new URL(route.request().url()).pathname === '/api/v1/auth/sign-in'

const PROBLEM = { detail: 'The service failed to answer', code: 'internal' }

/** Makes requests of the API fail. */
const FAILURES: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  'with status 500': (page) =>
    page.route(isApi, (route) =>
      isAccount(route)
        ? route.continue()
        : route.fulfill({ status: 500, json: PROBLEM, headers: { 'x-request-id': 'r-1' } }),
    ),
  'without a network': (page) =>
    page.route(isApi, (route) => (isAccount(route) ? route.continue() : route.abort('internetdisconnected'))),
  'without a session': (page) =>
    page.route(isApi, (route) =>
      route.fulfill({ status: 401, json: { detail: 'Not authenticated', code: 'auth.required' } }),
    ),
}

const chromium = findChromium()

describe('every page', { skip: chromium === null && SKIP_REASON, concurrency: false }, async () => {
  if (chromium === null) return
  const service = await startWatchedService(chromium)
  const browser = await launch(chromium)
  // No row is read, so any id and any token will do.
  const addresses = pages.map(({ path }) =>
    path === '/write/preview' ? `${path}#token=1` : path.replace(/:\w+/g, '1'),
  )

  for (const [name, fail] of Object.entries(FAILURES))
    test(`says so and stays accessible ${name}`, async (t) => {
      const context = await createContext(browser, service)
      for (const address of addresses)
        await t.test(address, async () => {
          const page = await context.newPage()
          const errors: string[] = []
          page.on('pageerror', (error) => errors.push(String(error)))
          await fail(page)
          await page.goto(`http://127.0.0.1:${service.port}${address}`)
          await waitUntilSettled(page)
          if (name === 'without a session' && !OPEN.has(address.split('#')[0]!))
            await page
              .getByRole('heading', { name: address === '/' ? /Sign in|Millrace/ : 'Sign in' })
              .first()
              .waitFor()
          // The home page reports failed checks among its findings.
          else if (address === '/') await page.getByText('Some checks failed').waitFor()
          else if (!isStatic(address)) await page.getByRole('alert').first().waitFor()
          await checkLooks(page, address, name)
          assert.deepEqual(errors, [])
          await page.close()
        })
      await context.close()
    })

  test('stays usable without the account', async () => {
    const context = await createContext(browser, service)
    const page = await context.newPage()
    await page.route(isApi, (route) => route.abort('internetdisconnected'))
    await page.goto(`http://127.0.0.1:${service.port}/account`)
    await page.getByRole('heading', { name: 'Offline' }).waitFor()
    await page.unroute(isApi)
    await page.getByRole('link', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Account', level: 1 }).waitFor()
    await context.close()
    await browser.close()
  })
})

/** Returns true for a page that reads nothing before a person acts. */
function isStatic(address: string): boolean {
  return STATIC.has(pages.find(({ path }) => path === address)?.path ?? '')
}

const STATIC = new Set(['/write/import'])

/** Pages that people without an account see, and that report a refusal. */
const OPEN = new Set(['/write/preview'])
