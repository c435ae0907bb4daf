import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { EDGE_SETTINGS } from '../perf/growth/edge.ts'
import { KNOWN, KNOWN_AT_FULL_SIZE } from '../perf/growth/known.ts'
import { FIXED_GROWTH, growthOf, MAX_GROWTH } from '../perf/growth/limits.ts'
import { CALLS_UNTIL_PLANNED } from '../perf/growth/measure.ts'
import { measureCalls, measureShare, seedShare } from '../perf/growth/share.ts'
import { createStatementNamer } from '../perf/growth/statement-names.ts'
import { COUNTING_SETTINGS } from '../perf/growth/statements.ts'
import { startStack } from '../perf/stack.ts'
import { IS_LONG } from '../runs.ts'
import { startEdge } from './harness.ts'

/**
 * The cost of a read must depend on the page size, not on the table size. `npm run bench -- growth` shows the times.
 */

const { url } = await createTestDatabase()
// At half this share, some calls would have no row to request.
await seedShare(url, 0.1)
const { port } = await startEdge(url, { env: EDGE_SETTINGS })
const noCounter = { begin: async () => {}, end: async () => [] }

test('every GET route has valid arguments, and every known offender is a call', async () => {
  const costs = await measureCalls({ url, port }, noCounter, { warmUp: 0, calls: 1, budgetMs: 0 })
  assert.deepEqual(
    Object.keys({ ...KNOWN, ...KNOWN_AT_FULL_SIZE }).filter((name) => !costs.has(name)),
    [],
  )
})

if (IS_LONG)
  test(`ten times the data costs a read at most ${MAX_GROWTH} times the buffers`, async () => {
    // Use a dedicated server, because it counts the buffers that each statement touches, including those of other
    // tests.
    const stack = await startStack(COUNTING_SETTINGS)
    after(() => stack.stop())
    const effort = { warmUp: CALLS_UNTIL_PLANNED, calls: 3, budgetMs: 5_000 }
    const nameOf = await createStatementNamer()
    const [small, large] = [await measureShare(stack, 1, effort), await measureShare(stack, 10, effort)]
    const offenders: string[] = []
    const reformed: string[] = []
    for (const [name, cost] of large) {
      const from = small.get(name)!
      const growth = growthOf(from, cost)
      const most = cost.statements[0]
      const line = `${name}: ${from.buffers} buffers, then ${cost.buffers}${most === undefined ? '' : `, most of them for ${nameOf(most.text)}`}`
      if (growth > MAX_GROWTH && !(name in KNOWN)) offenders.push(line)
      if (growth <= FIXED_GROWTH && name in KNOWN) reformed.push(line)
    }
    // If this fails for a call that no longer grows, remove the call from test/perf/growth/known.ts.
    assert.deepEqual({ offenders, reformed }, { offenders: [], reformed: [] })
  })
