import axe from 'axe-core'
import type { Page } from 'playwright-core'

/** Returns the accessibility violations that axe-core finds in the current page, each with its rule and elements. */
export async function findViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  return page.evaluate<readonly string[]>(`axe.run().then(({ violations }) =>
    violations.map(({ id, help, nodes }) => [id, help, ...nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary)].join('\\n')))`)
}
