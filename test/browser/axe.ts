import axe from 'axe-core'
import type { Page } from 'playwright-core'

/**
 * Returns the accessibility violations that axe-core finds in the current page, each with its rule and elements.
 * @param rules the rules to check; null for all.
 */
export async function findViolations(
  page: Page,
  rules: readonly string[] | null = null,
): Promise<readonly string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source)
  const options = rules === null ? '' : JSON.stringify({ runOnly: rules })
  return page.evaluate<readonly string[]>(`axe.run(${options}).then(({ violations }) =>
    violations.map(({ id, help, nodes }) => [id, help, ...nodes.slice(0, 5).map(({ html, failureSummary }) => html + ' ' + failureSummary)].join('\\n')))`)
}
