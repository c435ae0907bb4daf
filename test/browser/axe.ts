import axe from 'axe-core'
import type { Page } from 'playwright-core'

/** What axe-core finds wrong with a page as it is now: its rule, and the elements. */
export async function findingsOf(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  return page.evaluate<readonly string[]>(`axe.run().then(({ violations }) =>
    violations.map(({ id, help, nodes }) => [id, help, ...nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary)].join('\\n')))`)
}
