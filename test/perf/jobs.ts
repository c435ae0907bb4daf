import { setTimeout as delay } from 'node:timers/promises'
import { createDatabase } from '../../sql/db.ts'
import { connect } from '../../sql/driver.ts'
import { noop } from '../../tasks/system/noop.ts'
import { enqueueMany } from '../../tasks/task.ts'
import { startChild } from './children.ts'
import type { Measured } from './report.ts'
import { ask, type Stack } from './stack.ts'
import { rotated } from './stats.ts'
import { cpuMeter, family, untilQuiet } from './usage.ts'

const JOBS = Number(process.env.BENCH_JOBS ?? 20_000)
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
    { name: 'plain', run: () => plain(stack, false) },
    { name: 'tuned', run: () => plain(stack, true) },
  ]
  const results = new Map<string, Pace[]>(runs.map(({ name }) => [name, []]))
  for (let round = 0; round < ROUNDS; round++) {
    for (const { name, run } of rotated(runs, round)) results.get(name)!.push(await run())
  }
  const rate = (name: string): number[] => results.get(name)!.map(({ perSecond }) => perSecond)
  const cpu = (name: string, of: 'worker' | 'postgres') => ({
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
      ...['ours', 'plain', 'tuned'].flatMap((name) => [cpu(name, 'worker'), cpu(name, 'postgres')]),
    ],
    notes: [
      `${JOBS} jobs a round; every one ran once, in one attempt, with its result and both events kept and its delivery gone.`,
      'From the first jobs seen finished to the last; process start and the first batch do not count.',
    ],
    details: Object.fromEntries(results),
  }
}

async function ours(stack: Stack): Promise<Pace> {
  const url = await stack.database()
  const db = createDatabase({ url, applicationName: 'bench', size: 2, validateRows: false })
  for (let from = 0; from < JOBS; from += CHUNK) {
    const payloads = Array.from({ length: Math.min(CHUNK, JOBS - from) }, (_, i) => ({
      echo: `job ${from + i}`,
    }))
    await db.transaction((tx) => enqueueMany(tx, noop, payloads, { ownerId: null, maxTries: 3 }))
  }
  await db.close()
  await settle(url)
  const worker = await stack.worker(url, { WORKER_QUEUES: 'system' })
  const done = `select count(*)::int as n from job where finished_at is not null and name = 'system.noop'`
  const pace = await paceOf(stack, url, worker.pid, done)
  await verify(url)
  await worker.stop()
  return pace
}

async function plain(stack: Stack, tuned: boolean): Promise<Pace> {
  const url = await stack.emptyDatabase()
  const script = new URL('./servers/plain-worker.ts', import.meta.url)
  const env = {
    DATABASE_URL: url,
    JOBS: String(JOBS),
    NODE_ENV: 'production',
    NO_LOG_SUCCESS: '1',
    TUNED: tuned ? '1' : '0',
  }
  const worker = await startChild(script, env)
  await settle(url)
  await worker.ask('go')
  const pace = await paceOf(
    stack,
    url,
    worker.pid,
    `select ${JOBS} - count(*)::int as n from graphile_worker._private_jobs`,
  )
  const count = await worker.ask<{ executed: number; distinct: number }>('count')
  if (count.executed !== JOBS || count.distinct !== JOBS)
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
async function paceOf(stack: Stack, url: string, pid: number, query: string): Promise<Pace> {
  const client = await connect({ url, applicationName: 'bench' })
  const limit = performance.now() + LIMIT_MS
  let first: { at: number; n: number; meter: ReturnType<typeof cpuMeter<'worker' | 'postgres'>> } | null =
    null
  try {
    for (;;) {
      const at = performance.now()
      const n = (await client.query<{ n: number }>(query)).rows[0]!.n
      if (first === null && n > 0)
        first = { at, n, meter: cpuMeter({ worker: [pid], postgres: family(stack.postmaster) }) }
      if (first !== null && n === JOBS) {
        const seconds = (at - first.at) / 1000
        const { used, foreign } = first.meter()
        const perJob = (ms: number): number => (ms * 1000) / (JOBS - first!.n)
        const cpuMicroseconds = { worker: perJob(used.worker), postgres: perJob(used.postgres) }
        return {
          perSecond: (JOBS - first.n) / seconds,
          cpuMicroseconds,
          foreignCores: foreign / (seconds * 1000),
        }
      }
      if (at > limit) throw new Error(`Only ${n} of ${JOBS} jobs were done in time`)
      await delay(LOOK_MS)
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
  const expected = { done: JOBS, distinct: JOBS, events: JOBS * 2, deliveries: 0 }
  if (JSON.stringify(row) !== JSON.stringify(expected))
    throw new Error(`Jobs were lost or run twice: ${JSON.stringify(row)}`)
}
