import { setTimeout as delay } from 'node:timers/promises'
import { createDatabase } from '../../sql/db.ts'
import { noop } from '../../tasks/system/noop.task.ts'
import { enqueueMany } from '../../tasks/task.ts'
import { createJobSettings } from '../job-settings.ts'
import { startChild } from './children.ts'
import { finishMaintenance, measurePace, type Pace, type PollStatements } from './pace.ts'
import type { Finding, Measured, Target } from './report.ts'
import { queryRows, type Stack } from './stack.ts'
import { rotate } from './stats.ts'
import { measureUndisturbed } from './usage.ts'

const SHARE = Number(process.env.BENCH_SHARE ?? 1)
// Each run takes about four seconds, so that all warm up equally. `short` is shorter, to show how graphile-worker slows
// down as its table grows.
const JOBS = {
  ours: 160_000 * SHARE,
  plain: 20_000 * SHARE,
  short: 5_000 * SHARE,
  tuned: 200_000 * SHARE,
  boss: 120_000 * SHARE,
  burst: 120_000 * SHARE,
} as const
// pg-boss fetches and completes jobs in batches, and larger ones are faster.
const BATCH_SIZES = { boss: 100, burst: 1000 } as const
type Runner = keyof typeof JOBS
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
// Runners to measure, separated by commas; all if unset.
const RUNNERS = process.env.BENCH_RUNNERS?.split(',')
const CHUNK = 1000

/**
 * Measures no-op jobs through the whole kernel, with results stored, compared with plain graphile-worker and pg-boss.
 */
export async function measureJobs(stack: Stack): Promise<Measured> {
  const all: readonly { readonly name: Runner; readonly run: () => Promise<Pace> }[] = [
    { name: 'ours', run: () => measureOurs(stack) },
    { name: 'plain', run: () => measurePlain(stack, 'plain') },
    { name: 'short', run: () => measurePlain(stack, 'short') },
    { name: 'tuned', run: () => measurePlain(stack, 'tuned') },
    { name: 'boss', run: () => measureBoss(stack, 'boss') },
    { name: 'burst', run: () => measureBoss(stack, 'burst') },
  ]
  const runs = all.filter(({ name }) => RUNNERS?.includes(name) ?? true)
  const results = new Map<Runner, Pace[]>(runs.map(({ name }) => [name, []]))
  for (let round = 0; round < ROUNDS; round++) {
    for (const { name, run } of rotate(runs, round)) results.get(name)!.push(await measureUndisturbed(run))
  }
  const rate = (name: Runner): number[] => results.get(name)!.map(({ perSecond }) => perSecond)
  const against = (name: Runner, text: string, target?: Target): readonly Finding[] => {
    if (!results.has('ours') || !results.has(name)) return []
    const reference = { name: text, values: rate(name) }
    const finding = { name: 'no-op jobs', unit: 'jobs/s', values: rate('ours'), reference }
    return [target === undefined ? finding : { ...finding, target }]
  }
  const cpu = (name: Runner, of: 'worker' | 'postgres') => ({
    name: `CPU of ${of === 'worker' ? 'the worker' : 'PostgreSQL'}, ${name}`,
    unit: 'µs/job',
    values: results.get(name)!.map(({ cpuMicroseconds }) => cpuMicroseconds[of]),
  })
  return {
    rounds: ROUNDS,
    findings: [
      ...against('plain', 'graphile-worker, concurrency 8', { of: 'ratio', atLeast: 8 }),
      ...against('short', `graphile-worker, concurrency 8, ${JOBS.short} jobs`),
      ...against('tuned', 'graphile-worker, prefetching and batching'),
      ...against('boss', `pg-boss, batches of ${BATCH_SIZES.boss}`, { of: 'ratio', atLeast: 2 }),
      ...against('burst', `pg-boss, batches of ${BATCH_SIZES.burst}`),
      ...runs.flatMap(({ name }) => [cpu(name, 'worker'), cpu(name, 'postgres')]),
    ],
    notes: [
      `${JOBS.ours} jobs per round; each ran once, in one attempt, with its result and both events stored and its delivery deleted.`,
      'Measured from the first finished jobs to the last, without process start and the first batch.',
    ],
    details: Object.fromEntries(results),
  }
}

/** Measures no-op jobs through our worker, in a database of their own. */
export async function measureOurs(stack: Stack): Promise<Pace> {
  const url = await stack.createDatabase()
  const db = createDatabase({ url, applicationName: 'bench', size: 2, validateRows: false })
  for (let from = 0; from < JOBS.ours; from += CHUNK) {
    const payloads = Array.from({ length: Math.min(CHUNK, JOBS.ours - from) }, (_, i) => ({
      echo: `job ${from + i}`,
    }))
    await db.transaction((tx) =>
      enqueueMany(tx, noop, payloads, { ownerId: null, settings: createJobSettings(3) }),
    )
  }
  await db.close()
  await finishMaintenance(url)
  const worker = await stack.worker(url, { WORKER_QUEUES: 'system' })
  const pace = await measurePace(stack, url, {
    pids: [worker.pid],
    jobs: JOBS.ours,
    done: `select count(*)::int as n from job where finished_at is not null and name = 'system.noop'`,
    begun: 'select exists (select from job where finished_at is not null) as yes',
    over: `select sum(queued + running) = 0 as yes from job_count where queue = 'system'`,
  })
  await verifyJobs(url)
  await worker.stop()
  return pace
}

function measurePlain(stack: Stack, runner: 'plain' | 'short' | 'tuned'): Promise<Pace> {
  const jobs = JOBS[runner]
  const env = { NODE_ENV: 'production', NO_LOG_SUCCESS: '1', TUNED: runner === 'tuned' ? '1' : '0' }
  return measureReference(stack, 'plain-worker', jobs, env, {
    done: `select ${jobs} - count(*)::int as n from graphile_worker._private_jobs`,
    begun: `select count(*) < ${jobs} as yes from graphile_worker._private_jobs`,
    over: 'select not exists (select from graphile_worker._private_jobs) as yes',
  })
}

function measureBoss(stack: Stack, runner: 'boss' | 'burst'): Promise<Pace> {
  return measureReference(
    stack,
    'boss-worker',
    JOBS[runner],
    { BATCH: String(BATCH_SIZES[runner]) },
    {
      done: `select count(*)::int as n from pgboss.job where name = 'noop' and state = 'completed'`,
      begun: `select exists (select from pgboss.job where name = 'noop' and state = 'completed') as yes`,
      over: `select not exists (select from pgboss.job where name = 'noop' and state < 'completed') as yes`,
    },
  )
}

/** Runs the same work in another library. The script fills the queue and starts on the message `go`. */
async function measureReference(
  stack: Stack,
  script: string,
  jobs: number,
  env: Readonly<Record<string, string>>,
  looks: Pick<PollStatements, 'done' | 'begun' | 'over'>,
): Promise<Pace> {
  const url = await stack.createEmptyDatabase()
  const worker = await startChild(new URL(`./servers/${script}.ts`, import.meta.url), {
    DATABASE_URL: url,
    JOBS: String(jobs),
    ...env,
  })
  await finishMaintenance(url)
  await worker.ask('go')
  const pace = await measurePace(stack, url, { pids: [worker.pid], jobs, ...looks })
  const count = await worker.ask<{ executed: number; distinct: number }>('count')
  if (count.executed !== jobs || count.distinct !== jobs)
    throw new Error(`The reference lost jobs: ${JSON.stringify(count)}`)
  await worker.stop()
  return pace
}

/** Asserts that every job ran once with its own result and all events, and that the queue is empty. */
async function verifyJobs(url: string): Promise<void> {
  await delay(500)
  const [row] = await queryRows(
    url,
    `select count(*) filter (where status = 'done' and attempt = 1 and result ->> 'echo' = payload ->> 'echo')::int as done,
      count(distinct payload ->> 'echo')::int as distinct,
      (select count(*)::int from job_event e join job j on j.id = e.job_id where j.name = 'system.noop') as events,
      (select count(*)::int from graphile_worker.jobs where task_identifier = 'system.noop') as deliveries
    from job where name = 'system.noop'`,
  )
  const expected = { done: JOBS.ours, distinct: JOBS.ours, events: JOBS.ours * 2, deliveries: 0 }
  if (JSON.stringify(row) !== JSON.stringify(expected))
    throw new Error(`Jobs were lost or run twice: ${JSON.stringify(row)}`)
}
