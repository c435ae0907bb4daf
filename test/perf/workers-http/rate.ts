import { startChild } from '../children.ts'
import { measureOurs } from '../jobs.ts'
import type { HttpWorkerOrder } from '../load/http-worker.ts'
import { finishMaintenance, measurePace, type Pace } from '../pace.ts'
import type { Measured } from '../report.ts'
import { queryRows, type Stack } from '../stack.ts'
import { rotate } from '../stats.ts'
import { measureUndisturbed } from '../usage.ts'
import { startService } from './queues.ts'

const JOBS = Number(process.env.BENCH_JOBS ?? 60_000)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
// The most that one request may add.
const CHUNK = 10_000
const MAX = 100
const CLAIMS = 4
const REPORTS = 2

/** Measures no-op jobs through one HTTP worker, compared with the same work in our worker. */
export async function measureRate(stack: Stack): Promise<Measured> {
  const runs = [
    { name: 'http', run: () => measureHttp(stack) },
    { name: 'own', run: () => measureOurs(stack) },
  ] as const
  const paces = { http: [] as Pace[], own: [] as Pace[] }
  for (let round = 0; round < ROUNDS; round++)
    for (const { name, run } of rotate(runs, round)) paces[name].push(await measureUndisturbed(run))
  const pair = (name: string, unit: string, of: (pace: Pace) => number) => ({
    name,
    unit,
    values: paces.http.map(of),
    reference: { name: 'our worker', values: paces.own.map(of) },
  })
  return {
    rounds: ROUNDS,
    findings: [
      {
        ...pair('no-op jobs through one HTTP worker', 'jobs/s', ({ perSecond }) => perSecond),
        target: { of: 'ratio', atLeast: 0.4 },
      },
      pair('CPU of edge and worker', 'µs/job', ({ cpuMicroseconds }) => cpuMicroseconds.worker),
      pair('CPU of PostgreSQL', 'µs/job', ({ cpuMicroseconds }) => cpuMicroseconds.postgres),
    ],
    notes: [
      `${JOBS} jobs per round; ${CLAIMS} claims of up to ${MAX} jobs and ${REPORTS} reports open at a time; each job ran once, in one attempt.`,
    ],
    details: paces,
  }
}

async function measureHttp(stack: Stack): Promise<Pace> {
  const service = await startService(stack)
  const { url, edge, account, client } = service
  await service.addQueue('bench')
  for (let added = 0; added < JOBS; added += CHUNK) {
    const count = Math.min(CHUNK, JOBS - added)
    const job = { task_name: 'noop', queue_type: 'bench', args: { echo: `job ${added}` }, count }
    await client.call('POST', '/api/v1/tasks/enqueue', job)
  }
  await finishMaintenance(url)
  const worker = await startChild(new URL('../load/http-worker.ts', import.meta.url))
  await worker.ask({
    port: edge.port,
    token: account.token,
    queue: 'bench',
    max: MAX,
    claims: CLAIMS,
    reports: REPORTS,
  } satisfies HttpWorkerOrder)
  const pace = await measurePace(stack, url, {
    pids: [edge.pid, worker.pid],
    jobs: JOBS,
    done: `select count(*)::int as n from job where finished_at is not null and name = 'bench/noop'`,
    begun: 'select exists (select from job where finished_at is not null) as yes',
    over: `select sum(queued + running) = 0 as yes from job_count where queue = 'bench'`,
  })
  await worker.stop()
  await service.stop()
  await verifyJobs(url)
  return pace
}

async function verifyJobs(url: string): Promise<void> {
  const [row] = await queryRows(
    url,
    `select count(*)::int as jobs, count(*) filter (where status = 'done' and attempt = 1
       and result ->> 'echo' = payload ->> 'echo')::int as done from job where name = 'bench/noop'`,
  )
  if (row!.done !== JOBS || row!.jobs !== JOBS)
    throw new Error(`Jobs were lost or run twice: ${JSON.stringify(row)}`)
}
