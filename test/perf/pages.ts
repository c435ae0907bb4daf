import type { BrowserContext } from 'playwright-core'
import pages from '../../edge/pages/pages.json' with { type: 'json' }
import { findChromium, launch, SKIP_REASON } from '../browser/chromium.ts'
import { until } from '../until.ts'
import type { Measured } from './report.ts'
import { PASSWORD, type Stack, signUp } from './stack.ts'
import { waitUntilQuiet } from './usage.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
// A page without scripts, whose paint is the least that the browser and the edge need.
const REFERENCE = '/payment/success'
const MAX_PAINT_MS = 300

interface Load {
  /** Time of the first contentful paint, in ms after the navigation. */
  readonly paint: number
  /** Time until every section has loaded, in ms after the navigation. */
  readonly settled: number
}

/** Measures the first paint of every page in a browser with a warm cache, compared with a page without scripts. */
export async function measurePages(stack: Stack): Promise<Measured> {
  const chromium = findChromium()
  if (chromium === null) throw new Error(SKIP_REASON)
  const edge = await stack.edge(await stack.createDatabase())
  await signUp(edge.port)
  const browser = await launch(chromium)
  const base = `http://127.0.0.1:${edge.port}`
  try {
    const context = await browser.newContext()
    await context.request.post(`${base}/api/v1/auth/token`, {
      form: { username: 'bench@example.com', password: PASSWORD },
    })
    const addresses = pages.map(({ path }) => path).filter((path) => !path.includes(':'))
    for (const address of [...addresses, REFERENCE]) await load(context, base, address)
    const ours: Load[] = []
    const reference: Load[] = []
    const slowest: Record<string, number> = {}
    for (let round = 0; round < ROUNDS; round++) {
      await waitUntilQuiet()
      for (const address of addresses) {
        const loaded = await load(context, base, address)
        slowest[address] = Math.max(slowest[address] ?? 0, loaded.paint)
        ours.push(loaded)
        reference.push(await load(context, base, REFERENCE))
      }
    }
    return {
      rounds: ROUNDS,
      findings: [
        {
          name: 'first paint, every page',
          unit: 'ms',
          values: ours.map(({ paint }) => paint),
          reference: { name: 'a page without scripts', values: reference.map(({ paint }) => paint) },
          target: { of: 'value', atMost: MAX_PAINT_MS },
        },
        {
          name: 'all sections shown, every page',
          unit: 'ms',
          values: ours.map(({ settled }) => settled),
          reference: { name: 'a page without scripts', values: reference.map(({ settled }) => settled) },
        },
      ],
      notes: [
        `${addresses.length} pages without rows, one after the other in one browser, whose cache has them.`,
      ],
      details: { slowest },
    }
  } finally {
    await browser.close()
    await edge.stop()
  }
}

/** Opens a page in a new tab and waits until all sections have loaded. */
async function load(context: BrowserContext, base: string, address: string): Promise<Load> {
  const page = await context.newPage()
  await page.goto(base + address)
  const settled = await until(`${address} has settled`, () =>
    page.evaluate<number | null>(
      `document.querySelector('main h1:not(.hidden)') !== null && document.querySelector('[aria-busy=true], .skeleton') === null
        && performance.getEntriesByName('first-contentful-paint').length > 0 ? performance.now() : null`,
    ),
  )
  const paint = await page.evaluate<number>(
    `performance.getEntriesByName('first-contentful-paint')[0].startTime`,
  )
  await page.close()
  return { paint, settled }
}
