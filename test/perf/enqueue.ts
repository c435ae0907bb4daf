import { runMigrations } from 'graphile-worker'
import { createQueuePool } from '../../sql/connections/driver.ts'
import { startChild } from './children.ts'
import { formatRequest, type LoadResult, ORDER_DEFAULTS, startGenerator } from './load/load.ts'
import type { Measured } from './report.ts'
import { queryRows, type Stack, signUp } from './stack.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const TASK = { task_name: 'io_simulation_task', queue_type: 'load_test' }

/**
 * Measures POSTs that each add a job and are answered after its commit. The reference is a bare server that calls
 * `add_job` once per POST.
 */
export async function enqueue(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  const edge = await stack.edge(url)
  const account = await signUp(edge.port)
  const referenceUrl = await stack.createEmptyDatabase()
  await migrateQueue(referenceUrl)
  const reference = await startChild(new URL('./servers/add-job.ts', import.meta.url), {
    DATABASE_URL: referenceUrl,
  })
  const generator = await startGenerator()
  const head = formatRequest('POST', '/api/v1/tasks/enqueue', account.token, TASK)
  const load = (port: number, pid: number): Promise<LoadResult> =>
    generator.run({
      ...ORDER_DEFAULTS,
      port,
      head,
      status: 202,
      serverPids: [pid],
      postmaster: stack.postmaster,
    })
  const ours: LoadResult[] = []
  const theirs: LoadResult[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const turns = [
      async () => ours.push(await load(edge.port, edge.pid)),
      async () => theirs.push(await load(reference.ready.port!, reference.pid)),
    ]
    for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn()
  }
  await generator.stop()
  await reference.stop()
  await verifyJobs(url, referenceUrl, ours, theirs)
  return summarize(ours, theirs)
}

function summarize(ours: readonly LoadResult[], theirs: readonly LoadResult[]): Measured {
  const pair = (name: string, unit: string, of: (result: LoadResult) => number) => ({
    name,
    unit,
    values: ours.map(of),
    reference: { name: 'bare uWS, one add_job per POST', values: theirs.map(of) },
  })
  return {
    rounds: ROUNDS,
    findings: [
      {
        ...pair('POSTs that add a job', 'requests/s', ({ perSecond }) => perSecond),
        target: { of: 'ratio' as const, atLeast: 5 },
      },
      pair('p50', 'ms', ({ p50 }) => p50),
      pair('p99', 'ms', ({ p99 }) => p99),
      pair('CPU of the server', 'µs/request', ({ cpuMicroseconds }) => cpuMicroseconds.server),
      pair('CPU of PostgreSQL', 'µs/request', ({ cpuMicroseconds }) => cpuMicroseconds.postgres),
    ],
    notes: [
      'Every POST was answered with 202 and is one job in the database, in the mailbox of its owner, which has a delivery; 64 connections, no worker running.',
    ],
    details: { ours, theirs },
  }
}

async function verifyJobs(
  url: string,
  referenceUrl: string,
  ours: readonly LoadResult[],
  theirs: readonly LoadResult[],
): Promise<void> {
  const answered = (results: readonly LoadResult[]): number =>
    results.reduce((sum, result) => sum + result.answered, 0)
  const [row] = await queryRows(
    url,
    `select (select count(*)::int from job) as jobs, (select count(*)::int from job where status = 'available') as waiting,
      (select count(*)::int from graphile_worker._private_jobs) as deliveries`,
  )
  const [reference] = await queryRows(referenceUrl, 'select count(*)::int as jobs from graphile_worker.jobs')
  // A disturbed run is repeated. Its jobs exist, but its answers are not in the results, so there may be more jobs than
  // answers.
  const hasTooFewJobs = (jobs: unknown, results: readonly LoadResult[]): boolean =>
    Number(jobs) < answered(results)
  if (
    row!.jobs !== row!.waiting ||
    row!.deliveries === 0 ||
    hasTooFewJobs(row!.jobs, ours) ||
    hasTooFewJobs(reference!.jobs, theirs)
  ) {
    throw new Error(
      `Jobs do not match answers: ${JSON.stringify({ row, ours: answered(ours), reference, theirs: answered(theirs) })}`,
    )
  }
}

async function migrateQueue(url: string): Promise<void> {
  const pgPool = createQueuePool({ url, applicationName: 'bench', size: 1, onError: () => {} })
  await runMigrations({ pgPool })
  await pgPool.end()
}
