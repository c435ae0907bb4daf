import { type FailoverResult, type FailureKind, failOver } from '../failover.ts'
import type { Finding, Measured } from './report.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
const MAX_RECOVERY_MS = 5_000

/**
 * `npm run bench -- failover` lets a primary with a synchronous standby die or fall silent while two edges and a worker
 * write. It measures the time from the promotion until both edges write again. The database servers run without fsync.
 */
export async function measureFailover(): Promise<Measured> {
  const deaths = { killed: await runRounds('killed'), silent: await runRounds('silent') }
  const findings = Object.entries(deaths).flatMap(([death, all]): Finding[] => [
    {
      name: `${death}: from the promotion to a write at each edge`,
      unit: 'ms',
      values: all.map(({ recoveryMs }) => recoveryMs),
      target: { of: 'value', atMost: MAX_RECOVERY_MS },
    },
    {
      name: `${death}: from the promotion to the end of every job`,
      unit: 'ms',
      values: all.map(({ jobsEndedMs }) => jobsEndedMs),
    },
    {
      name: `${death}: acknowledged writes lost or doubled, jobs that did not end`,
      unit: '',
      values: all.map(
        ({ lost, duplicated, unfinished: unended }) => lost.length + duplicated.length + unended.length,
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

async function runRounds(death: FailureKind): Promise<FailoverResult[]> {
  const all: FailoverResult[] = []
  for (let n = 0; n < ROUNDS; n++) all.push(await failOver({ failure: death }))
  return all
}
