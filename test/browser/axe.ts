import axe from 'axe-core'
import type { Page } from 'playwright-core'

/** What axe-core finds wrong with a page as it is now: its rule, and the elements. */
export async function findingsOf(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  return page.evaluate<readonly string[]>(`axe.run().then(({ violations }) =>
    violations.map(({ id, help, nodes }) => [id, help, ...nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary)].join('\\n')))`)
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

/** What axe-core finds in a page. */

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Found {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
  }[]
}

/** One line for each element with something wrong. */
export async function axeFindings(page: Page): Promise<string[]> {
  await page.evaluate(source)
  const { violations } = await page.evaluate<Found>('axe.run(document)')
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}\n${failureSummary}`),
  )
}
