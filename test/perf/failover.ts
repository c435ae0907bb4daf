import { type Death, type FailoverResult, failOver } from '../failover.ts'
import type { Finding, Measured } from './report.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
const BACK_MS = 5_000

/**
 * `npm run bench -- failover`: a primary with a synchronous standby dies or falls silent while two edges and a worker
 * write. Measures the time from the promotion until both edges write again. The database servers run without fsync.
 */
export async function failover(): Promise<Measured> {
  const deaths = { killed: await rounds('killed'), silent: await rounds('silent') }
  const findings = Object.entries(deaths).flatMap(([death, all]): Finding[] => [
    {
      name: `${death}: from the promotion to a write at each edge`,
      unit: 'ms',
      values: all.map(({ backMs }) => backMs),
      target: { of: 'value', atMost: BACK_MS },
    },
    {
      name: `${death}: from the promotion to the end of every job`,
      unit: 'ms',
      values: all.map(({ endedMs }) => endedMs),
    },
    {
      name: `${death}: acknowledged writes lost or doubled, jobs that did not end`,
      unit: '',
      values: all.map(
        ({ lost, doubled, unfinished: unended }) => lost.length + doubled.length + unended.length,
      ),
      target: { of: 'value', atMost: 0 },
    },
  ])
  const notes = Object.entries(deaths).map(
    ([death, all]) =>
      `${death}: ${all.map(({ acknowledged }) => JSON.stringify(acknowledged)).join(', ')} acknowledged.`,
  )
  return { rounds: ROUNDS, findings, notes, details: deaths }
}

async function rounds(death: Death): Promise<FailoverResult[]> {
  const all: FailoverResult[] = []
  for (let n = 0; n < ROUNDS; n++) all.push(await failOver({ death }))
  return all
}
