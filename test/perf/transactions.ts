import { setTimeout as delay } from 'node:timers/promises'
import { connect } from '../../sql/connections/driver.ts'
import { createDatabase } from '../../sql/db.ts'
import { namedTasks } from '../../tasks/load-test/index.ts'
import { enqueueMany } from '../../tasks/task.ts'
import { createJobSettings } from '../job-settings.ts'
import { Statements } from './growth/statements.ts'
import type { Finding, Measured } from './report.ts'
import { queryRows, type Stack, signUp } from './stack.ts'
import { listFamilyPids, startCpuMeter } from './usage.ts'

const IDLE_SECONDS = Number(process.env.BENCH_IDLE_SECONDS ?? 20)
const JOBS = Number(process.env.BENCH_JOBS ?? 1000)
const JOB_MS = 50
const LIMITS = [10, 40, null].slice(0, Number(process.env.BENCH_LIMITS ?? 3))
const DELETIONS = 500
const BULK_JOBS = 10_000
// Idle connections report their statistics within 10 s.
const STATISTICS_MS = 11_000

/**
 * Measures the transactions and the CPU time of an idle edge and worker. Counts the transactions of a job with
 * and without a queue limit, of a DELETE and of a bulk action. Subtracts those of idle processes.
 */
export async function measureTransactions(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  const edge = await stack.edge(url)
  const { id, token } = await signUp(edge.port)
  const worker = await stack.worker(url)
  await delay(3000)
  const statements = await Statements.of(url)
  await statements.reset()
  await delay(STATISTICS_MS)
  const cpu = { processes: 0, postgres: 0 }
  const idle = await countTransactions(url, async () => {
    const meter = startCpuMeter({
      processes: () => [edge.pid, worker.pid],
      postgres: () => listFamilyPids(stack.postmaster),
    })
    await delay(IDLE_SECONDS * 1000)
    Object.assign(cpu, meter().used)
  })
  const toPercent = (ms: number): number => ms / (IDLE_SECONDS * 10)
  const details: Record<string, unknown> = { idle: await statements.list() }
  const idlePerSecond = idle.transactions / idle.seconds
  const measure = async (name: string, jobs: number, work: () => Promise<void>): Promise<number> => {
    await statements.reset()
    const { transactions, seconds } = await countTransactions(url, work)
    details[name] = { seconds, statements: await statements.list() }
    return Math.max(0, transactions - idlePerSecond * seconds) / jobs
  }
  const findings: Finding[] = [
    {
      name: 'idle edge and worker',
      unit: 'transactions/s',
      values: [idlePerSecond],
      target: { of: 'value', atMost: 10 },
    },
    {
      name: 'CPU of an idle edge and worker',
      unit: '% of a core',
      values: [toPercent(cpu.processes)],
      target: { of: 'value', atMost: 1 },
    },
    { name: 'CPU of PostgreSQL meanwhile', unit: '% of a core', values: [toPercent(cpu.postgres)] },
  ]
  for (const limit of LIMITS) {
    await queryRows(
      url,
      `insert into queue_control (queue, most_running) values ('load_test', $1)
       on conflict (queue) do update set most_running = excluded.most_running returning pg_notify('queue_changed', queue)`,
      [limit],
    )
    await delay(1000)
    const name = limit === null ? 'a job without a limit' : `a job of a queue with limit ${limit}`
    const values = [await measure(name, JOBS, () => runJobs(url, id))]
    findings.push({ name, unit: 'transactions', values, target: { of: 'value', atMost: 0.5 } })
  }
  const ids = await addJobs(url, id, DELETIONS, 3600)
  const values = [await measure('cancelled by requests', DELETIONS, () => cancelAll(edge.port, token, ids))]
  findings.push({ name: `a DELETE of a job, ${DELETIONS} at once`, unit: 'transactions', values })
  await addJobs(url, id, BULK_JOBS, 3600)
  await queryRows(
    url,
    `update queue_control set paused_at = now() returning pg_notify('queue_changed', queue)`,
  )
  for (const action of ['cancel', 'retry'] as const) {
    const work = () => runBulkAction(edge.port, token, action)
    findings.push({
      name: `a job of a bulk action: ${action}`,
      unit: 'transactions',
      values: [await measure(`bulk: ${action}`, BULK_JOBS, work)],
      target: { of: 'value', atMost: 0.05 },
    })
    await queryRows(
      url,
      `update job set status = 'failed', error_code = 'internal', error_detail = 'x' where status = 'cancelled' returning 1`,
    )
  }
  await statements.close()
  return { rounds: 1, findings, notes: [`Jobs take ${JOB_MS} ms.`], details }
}

async function addJobs(url: string, ownerId: number, count: number, seconds = 0): Promise<readonly string[]> {
  const db = createDatabase({ url, applicationName: 'bench', size: 1, validateRows: false })
  const task = namedTasks.get('load_test')!.get('io_simulation_task')!
  const payloads = Array.from({ length: count }, () => ({ operations: 1, duration_ms: JOB_MS }) as never)
  const settings = createJobSettings(3)
  const added = await db.transaction((tx) =>
    enqueueMany(tx, task, payloads, { ownerId, settings, delayMs: seconds * 1000 }),
  )
  await db.close()
  return added.map(({ jobId }) => jobId)
}

async function runJobs(url: string, ownerId: number): Promise<void> {
  await addJobs(url, ownerId, JOBS)
  const client = await connect({ url, applicationName: 'bench' })
  for (;;) {
    const { rows } = await client.query(`select 1 from job where status in ('available', 'running') limit 1`)
    if (rows.length === 0) break
    await delay(250)
  }
  await client.end()
}

/** Cancels or retries all jobs of the queue `load_test` in one job, and waits for it. */
async function runBulkAction(port: number, token: string, action: 'cancel' | 'retry'): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ action, filter: { queue: 'load_test' } })
  const jobs = `http://127.0.0.1:${port}/api/v1/jobs`
  let job = (await (await fetch(`${jobs}/bulk`, { method: 'POST', headers, body })).json()) as BulkJob
  while (job.result === null) {
    await delay(250)
    job = (await (await fetch(`${jobs}/${job.job_id}`, { headers })).json()) as BulkJob
  }
  if (job.result.done < BULK_JOBS) throw new Error(`Only ${job.result.done} jobs took part`)
}

interface BulkJob {
  readonly job_id: string
  readonly result: { readonly done: number } | null
}

async function cancelAll(port: number, token: string, ids: readonly string[]): Promise<void> {
  const answers = await Promise.all(
    ids.map((id) =>
      fetch(`http://127.0.0.1:${port}/api/v1/jobs/${id}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${token}` },
      }),
    ),
  )
  const refused = answers.filter(({ ok }) => !ok).length
  if (refused > 0) throw new Error(`${refused} of ${ids.length} DELETEs were refused`)
}

/** Runs work, and returns its time and the number of transactions in the database meanwhile. */
async function countTransactions(url: string, work: () => Promise<void>) {
  const read = async (): Promise<number> => {
    const [row] = await queryRows(
      url,
      'select (xact_commit + xact_rollback)::float8 as n from pg_stat_database where datname = current_database()',
    )
    return row!.n as number
  }
  // Few transactions follow the wait of the previous call.
  const before = await read()
  const startedAt = performance.now()
  await work()
  await delay(STATISTICS_MS)
  return {
    transactions: (await read()) - before,
    seconds: (performance.now() - startedAt) / 1000,
  }
}
