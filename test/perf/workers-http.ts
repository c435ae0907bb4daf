import type { Measured } from './report.ts'
import type { Stack } from './stack.ts'
import { measureWaitingClaims } from './workers-http/claims.ts'
import { measureLatency } from './workers-http/latency.ts'
import { measureNeighbours } from './workers-http/neighbours.ts'
import { measureRate } from './workers-http/rate.ts'

const PARTS = {
  rate: measureRate,
  latency: measureLatency,
  claims: measureWaitingClaims,
  neighbours: measureNeighbours,
} as const
type Part = keyof typeof PARTS
// Parts to measure, separated by commas; all if unset.
const CHOSEN = process.env.BENCH_PARTS?.split(',') ?? Object.keys(PARTS)

/**
 * Measures workers that claim jobs over HTTP: the rate and latency of their jobs, waiting claims, and the effect on
 * other queues.
 */
export async function measureHttpWorkers(stack: Stack): Promise<Measured> {
  const parts: [Part, Measured][] = []
  for (const [name, measure] of Object.entries(PARTS) as [Part, (stack: Stack) => Promise<Measured>][])
    if (CHOSEN.includes(name)) parts.push([name, await measure(stack)])
  return {
    rounds: Math.max(...parts.map(([, { rounds }]) => rounds)),
    findings: parts.flatMap(([, { findings }]) => findings),
    notes: parts.flatMap(([, { notes }]) => notes),
    details: Object.fromEntries(parts.map(([name, { details }]) => [name, details])),
  }
}
