import { setTimeout as delay } from 'node:timers/promises'
import { createDatabase } from '../../sql/db.ts'
import { connect } from '../../sql/driver.ts'
import { noop } from '../../tasks/system/noop.ts'
import { enqueueMany } from '../../tasks/task.ts'
import { startChild } from './children.ts'
import type { Measured } from './report.ts'
import { ask, type Stack } from './stack.ts'
import { rotated } from './stats.ts'
import { cpuMeter, family, undisturbed, untilQuiet } from './usage.ts'

// The same number for both, since graphile-worker slows down with the length of its table; tuned it is done in a moment.
const JOBS = { ours: 20_000, plain: 20_000, tuned: 60_000 } as const
type Runner = keyof typeof JOBS
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const CHUNK = 1000
const LOOK_MS = 25
const LIMIT_MS = 300_000

interface Pace {
  readonly perSecond: number
  /** CPU time per job. */
  readonly cpuMicroseconds: { readonly worker: number; readonly postgres: number }
  readonly foreignCores: number
}

/** No-op jobs through the whole kernel, their results kept, against graphile-worker by itself. */
export async function jobs(stack: Stack): Promise<Measured> {
  const runs = [
    { name: 'ours', run: () => ours(stack) },
    { name: 'plain', run: () => plain(stack, 'plain') },
    { name: 'tuned', run: () => plain(stack, 'tuned') },
  ] as const
  const results = new Map<Runner, Pace[]>(runs.map(({ name }) => [name, []]))
  for (let round = 0; round < ROUNDS; round++) {
    for (const { name, run } of rotated(runs, round)) results.get(name)!.push(await undisturbed(run))
  }
  const rate = (name: Runner): number[] => results.get(name)!.map(({ perSecond }) => perSecond)
  const cpu = (name: Runner, of: 'worker' | 'postgres') => ({
    name: `CPU of ${of === 'worker' ? 'the worker' : 'PostgreSQL'}, ${name}`,
    unit: 'µs/job',
    values: results.get(name)!.map(({ cpuMicroseconds }) => cpuMicroseconds[of]),
  })
  return {
    rounds: ROUNDS,
    findings: [
      {
        name: 'no-op jobs',
        unit: 'jobs/s',
        values: rate('ours'),
        reference: { name: 'graphile-worker, concurrency 8', values: rate('plain') },
        target: { of: 'ratio', atLeast: 5 },
      },
      {
        name: 'no-op jobs',
        unit: 'jobs/s',
        values: rate('ours'),
        reference: { name: 'graphile-worker, prefetching and batching', values: rate('tuned') },
      },
      ...runs.flatMap(({ name }) => [cpu(name, 'worker'), cpu(name, 'postgres')]),
    ],
    notes: [
      `${JOBS.ours} jobs a round; every one ran once, in one attempt, with its result and both events kept and its delivery gone.`,
      'From the first jobs seen finished to the last; process start and the first batch do not count.',
    ],
    details: Object.fromEntries(results),
  }
}

async function ours(stack: Stack): Promise<Pace> {
  const url = await stack.database()
  const db = createDatabase({ url, applicationName: 'bench', size: 2, validateRows: false })
  for (let from = 0; from < JOBS.ours; from += CHUNK) {
    const payloads = Array.from({ length: Math.min(CHUNK, JOBS.ours - from) }, (_, i) => ({
      echo: `job ${from + i}`,
    }))
    await db.transaction((tx) => enqueueMany(tx, noop, payloads, { ownerId: null, maxTries: 3 }))
  }
  await db.close()
  await settle(url)
  const worker = await stack.worker(url, { WORKER_QUEUES: 'system' })
  const done = `select count(*)::int as n from job where finished_at is not null and name = 'system.noop'`
  const pace = await paceOf(stack, url, { pid: worker.pid, jobs: JOBS.ours, done })
  await verify(url)
  await worker.stop()
  return pace
}

async function plain(stack: Stack, runner: 'plain' | 'tuned'): Promise<Pace> {
  const url = await stack.emptyDatabase()
  const script = new URL('./servers/plain-worker.ts', import.meta.url)
  const jobs = JOBS[runner]
  const worker = await startChild(script, {
    DATABASE_URL: url,
    JOBS: String(jobs),
    NODE_ENV: 'production',
    NO_LOG_SUCCESS: '1',
    TUNED: runner === 'tuned' ? '1' : '0',
  })
  await settle(url)
  await worker.ask('go')
  const done = `select ${jobs} - count(*)::int as n from graphile_worker._private_jobs`
  const pace = await paceOf(stack, url, { pid: worker.pid, jobs, done })
  const count = await worker.ask<{ executed: number; distinct: number }>('count')
  if (count.executed !== jobs || count.distinct !== jobs)
    throw new Error(`The reference lost jobs: ${JSON.stringify(count)}`)
  await worker.stop()
  return pace
}

/** Nothing of the filling is left to be done while the emptying is measured. */
async function settle(url: string): Promise<void> {
  await ask(url, 'vacuum analyze')
  await ask(url, 'checkpoint')
  await untilQuiet()
}

/** Watches the number of finished jobs: the rate from the first that are seen to the last. */
async function paceOf(
  stack: Stack,
  url: string,
  worker: { pid: number; jobs: number; done: string },
): Promise<Pace> {
  const client = await connect({ url, applicationName: 'bench' })
  const look = async () => ({
    at: performance.now(),
    n: (await client.query<{ n: number }>(worker.done)).rows[0]!.n,
  })
  const until = async (enough: number): Promise<{ at: number; n: number }> => {
    for (const limit = performance.now() + LIMIT_MS; performance.now() < limit; await delay(LOOK_MS)) {
      const now = await look()
      if (now.n >= enough) return now
    }
    throw new Error('The jobs were not done in time')
  }
  try {
    const first = await until(1)
    const meter = cpuMeter({ worker: [worker.pid], postgres: family(stack.postmaster), bench: [process.pid] })
    const last = await until(worker.jobs)
    const { used, foreign } = meter()
    const jobs = last.n - first.n
    const perJob = (ms: number): number => (ms * 1000) / jobs
    return {
      perSecond: (jobs * 1000) / (last.at - first.at),
      cpuMicroseconds: { worker: perJob(used.worker), postgres: perJob(used.postgres) },
      foreignCores: foreign / (last.at - first.at),
    }
  } finally {
    await client.end()
  }
}

/** Every job done once with its own result, its events without a gap, and nothing left in the queue. */
async function verify(url: string): Promise<void> {
  await delay(500)
  const [row] = await ask(
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
