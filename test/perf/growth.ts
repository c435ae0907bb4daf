import { KNOWN, KNOWN_AT_FULL_SIZE } from './growth/known.ts'
import { FIXED_GROWTH, growthOf, MAX_GROWTH, maxBuffers } from './growth/limits.ts'
import { CALLS_UNTIL_PLANNED, type Cost } from './growth/measure.ts'
import { type Costs, measureShare } from './growth/share.ts'
import { createStatementNamer } from './growth/statement-names.ts'
import { alignColumns, type Finding, type Measured } from './report.ts'
import type { Stack } from './stack.ts'
import { percentile } from './stats.ts'

/** Sizes in percent; 100 is a million documents and proportionally large other tables. */
const SHARES = (process.env.BENCH_SHARES ?? '1,10,100')
  .split(',')
  .map(Number)
  .sort((a, b) => a - b)
/** Selects the calls whose names contain this text. */
const CALLS = process.env.BENCH_CALLS ?? ''
const isKnown = (name: string): boolean => name in KNOWN || name in KNOWN_AT_FULL_SIZE
const EFFORT = { warmUp: CALLS_UNTIL_PLANNED, calls: Number(process.env.BENCH_ROUNDS ?? 20), budgetMs: 5_000 }

/**
 * Measures how the cost of each GET in the reference grows with the data: duration, and shared buffers that it touches.
 * Buffers measure work independently of the machine.
 */
export async function measureGrowth(stack: Stack): Promise<Measured> {
  const nameOf = await createStatementNamer()
  const sizes: Costs[] = []
  for (const share of SHARES)
    sizes.push(await measureShare(stack, share, EFFORT, (line) => process.stderr.write(`${line}\n`), CALLS))
  const [first, last] = [sizes[0]!, sizes.at(-1)!]
  const names = [...last.keys()].sort(
    (a, b) => growthOf(first.get(b)!, last.get(b)!) - growthOf(first.get(a)!, last.get(a)!),
  )
  const reformed = names.filter(
    (name) => isKnown(name) && growthOf(first.get(name)!, last.get(name)!) <= FIXED_GROWTH,
  )
  return {
    rounds: EFFORT.calls,
    findings: names.filter((name) => last.get(name)!.buffers > 0).map((name) => toFinding(name, first, last)),
    notes: [
      `At most ${MAX_GROWTH} times as many buffers at ${SHARES.at(-1)} % as at ${SHARES[0]} %, except for known calls (test/perf/growth/known.ts).`,
      `Known, but at most ${FIXED_GROWTH} times as many: ${reformed.join(', ') || 'none'}.`,
      'p50 and p95 in ms, and the costliest statement of the last column with its buffers:',
      ...alignColumns([
        ['what', ...SHARES.map((share) => `${share} %`), 'statement'],
        ...names.map((name) => [
          name,
          ...sizes.map((size) => formatTimes(size.get(name)!)),
          findCostliest(last.get(name)!, nameOf),
        ]),
      ]),
    ],
    details: Object.fromEntries(sizes.map((size, i) => [`${SHARES[i]} %`, Object.fromEntries(size)])),
  }
}

function toFinding(name: string, first: Costs, last: Costs): Finding {
  const [small, large] = [first.get(name)!, last.get(name)!]
  return {
    name,
    unit: 'buffers',
    values: [large.buffers],
    reference: { name: `at ${SHARES[0]} %`, values: [small.buffers] },
    ...(isKnown(name)
      ? {}
      : { target: { of: 'value', atMost: maxBuffers(small), text: `${MAX_GROWTH} times` } }),
  }
}

const formatTimes = ({ ms }: Cost): string =>
  `${percentile(ms, 0.5).toFixed(1)} ${percentile(ms, 0.95).toFixed(1)}`

function findCostliest({ statements }: Cost, nameOf: (text: string) => string): string {
  const [max] = statements
  return max === undefined ? '' : `${max.buffers} ${nameOf(max.text)}`
}
