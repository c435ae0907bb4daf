import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from 'pg'
import { connect } from '../../sql/connections/driver.ts'
import { createDatabase, type Database } from '../../sql/db.ts'
import { enqueueMany } from '../../tasks/task.ts'
import { createJobSettings } from '../job-settings.ts'
import { type Child, startChild } from './children.ts'
import type { Measured } from './report.ts'
import { effect } from './servers/effects.ts'
import { queryRows, SECRET, type Stack } from './stack.ts'
import { percentile } from './stats.ts'

/**
 * `npm run bench -- recovery` repeatedly kills workers at random moments while jobs with effects are running. It
 * measures how soon other workers restart these jobs. No job may be lost, and each must have exactly one effect.
 */

const KILLS = Number(process.env.BENCH_KILLS ?? 200)
const WORKERS = 3
// At this rate each worker always has about 15 running jobs.
const JOBS_PER_SECOND = 100
const TICK_MS = 100
const MAX_JOB_MS = 400
const TIMEOUT_MS = 60_000
const POLL_INTERVAL_MS = 10

interface Kill {
  /** Number of jobs that the killed worker was running, according to the ledger. */
  readonly jobs: number
  /** Time in ms until other workers had restarted all jobs of the killed worker. */
  readonly ms: number
}

export async function measureRecovery(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  await queryRows(
    url,
    'create table effect (job_id uuid not null, attempt integer not null, at timestamptz not null default clock_timestamp())',
  )
  const client = await connect({ url, applicationName: 'bench' })
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => startWorker(url)))
  const load = startLoad(url)
  const kills: Kill[] = []
  // Let each worker start jobs before the first kill.
  await delay(1000)
  for (let n = 0; n < KILLS; n++) {
    await delay(Math.random() * 500)
    kills.push(await killWorker(client, workers, n % WORKERS, url))
  }
  const jobs = await load.stop()
  await waitUntilDrained(client)
  const [row] = (
    await client.query(`select (select count(*)::int from job where status = 'done' and name = 'effects.write') as done,
      (select count(*)::int from effect) as effects, (select count(distinct job_id)::int from effect) as distinct,
      (select count(*)::int from job where attempt > 1) as again, (select max(attempt)::int from job) as attempts`)
  ).rows as Record<string, number>[]
  await client.end()
  await Promise.all(workers.map((worker) => worker.stop()))
  if (row!.done !== jobs || row!.effects !== jobs || row!.distinct !== jobs)
    throw new Error(`Jobs were lost or effects doubled: ${JSON.stringify({ jobs, ...row })}`)
  return summarize(kills, jobs, row!)
}

function summarize(kills: readonly Kill[], jobs: number, row: Record<string, number>): Measured {
  const ms = kills.filter((kill) => kill.jobs > 0).map((kill) => kill.ms)
  const at = (share: number): number => percentile(ms, share)
  return {
    rounds: kills.length,
    findings: [
      { name: 'from SIGKILL to the last job restarted, p50', unit: 'ms', values: [at(0.5)] },
      {
        name: 'from SIGKILL to the last job restarted, p99',
        unit: 'ms',
        values: [at(0.99)],
        target: { of: 'value', atMost: 3000 },
      },
      { name: 'from SIGKILL to the last job restarted, max', unit: 'ms', values: [at(1)] },
      { name: 'jobs lost', unit: '', values: [jobs - row.done!], target: { of: 'value', atMost: 0 } },
      {
        name: 'effects doubled',
        unit: '',
        values: [row.effects! - row.distinct!],
        target: { of: 'value', atMost: 0 },
      },
    ],
    notes: [
      `${kills.length} kills of ${WORKERS} workers, ${ms.length} of them with running jobs (${kills.reduce((sum, kill) => sum + kill.jobs, 0)} in total); ${jobs} jobs, ${row.again} with several attempts, at most ${row.attempts}.`,
    ],
    details: { kills },
  }
}

function startWorker(url: string): Promise<Child> {
  return startChild(new URL('./servers/effect-worker.ts', import.meta.url), {
    DATABASE_URL: url,
    SECRET_KEY: SECRET,
    NODE_ENV: 'production',
  })
}

/** Adds jobs at a steady rate until `stop`, which returns their number. */
function startLoad(url: string): { stop(): Promise<number> } {
  const db: Database = createDatabase({ url, applicationName: 'bench', size: 1, validateRows: false })
  let count = 0
  let current: Promise<void> = Promise.resolve()
  const tick = async (): Promise<void> => {
    const payloads = Array.from({ length: (JOBS_PER_SECOND * TICK_MS) / 1000 }, () => ({
      before_ms: Math.floor(Math.random() * MAX_JOB_MS),
      after_ms: Math.floor(Math.random() * MAX_JOB_MS),
    }))
    await db.transaction((tx) =>
      enqueueMany(tx, effect, payloads, { ownerId: null, settings: createJobSettings(3) }),
    )
    count += payloads.length
  }
  const timer = setInterval(() => {
    current = current.then(tick)
  }, TICK_MS)
  return {
    stop: async () => {
      clearInterval(timer)
      await current
      await db.close()
      return count
    },
  }
}

/** Kills a worker, starts a replacement, and waits until all jobs of the killed one have been restarted. */
async function killWorker(client: Client, workers: Child[], n: number, url: string): Promise<Kill> {
  const { lease } = await workers[n]!.ask<{ lease: string }>('lease')
  workers[n]!.process.kill('SIGKILL')
  const killedAt = performance.now()
  const next = startWorker(url)
  const { rows } = await client.query<{ id: string; attempt: number }>(
    `select id, attempt from job where lease_id = $1 and status = 'running'`,
    [lease],
  )
  const values = [rows.map(({ id }) => id), rows.map(({ attempt }) => attempt)]
  for (;;) {
    const { rows: left } = await client.query(
      `select from unnest($1::uuid[], $2::int[]) as old(id, attempt) join job using (id) where job.attempt = old.attempt
        and job.finished_at is null limit 1`,
      values,
    )
    if (left.length === 0) break
    if (performance.now() - killedAt > TIMEOUT_MS)
      throw new Error('Jobs of a killed worker were not restarted')
    await delay(POLL_INTERVAL_MS)
  }
  const ms = performance.now() - killedAt
  workers[n] = await next
  return { jobs: rows.length, ms }
}

async function waitUntilDrained(client: Client): Promise<void> {
  for (const end = performance.now() + TIMEOUT_MS; ; await delay(100)) {
    const { rows } = await client.query(
      `select from job where finished_at is null and name = 'effects.write' limit 1`,
    )
    if (rows.length === 0) return
    if (performance.now() > end) throw new Error('Jobs were left behind')
  }
}
