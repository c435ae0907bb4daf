import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from 'pg'
import { connect } from '../../sql/connections/driver.ts'
import { createDatabase, type Database } from '../../sql/db.ts'
import { noop } from '../../tasks/system/noop.task.ts'
import { enqueueMany } from '../../tasks/task.ts'
import { createJobSettings } from '../job-settings.ts'
import type { Measured } from './report.ts'
import type { Stack } from './stack.ts'
import { waitUntilQuiet } from './usage.ts'

const SECONDS_BEFORE_SNAPSHOT = Number(process.env.BENCH_BEFORE_SECONDS ?? 45)
const SNAPSHOT_SECONDS = Number(process.env.BENCH_HELD_SECONDS ?? 180)
// Seconds that a new worker needs to warm up, which are not measured.
const WARM_UP_SECONDS = Number(process.env.BENCH_WARM_UP_SECONDS ?? 15)
// Seconds at the end of each phase, without and with the snapshot, whose rates are compared.
const COMPARED_SECONDS = 30
const CHUNK = 500
// Enough jobs that the worker never waits: more than it runs during the two seconds by which the counts lag.
const MAX_WAITING = 100_000
// The finish time of a job is the start time of its transaction, so the jobs of a second are counted a second later.
const COUNT_LAG_SECONDS = 1

/**
 * `npm run bench -- snapshot` measures the cost of a long-open snapshot. While it is open, vacuum cannot remove dead
 * rows, and each job leaves several.
 */
export async function measureSnapshot(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  const db = createDatabase({ url, applicationName: 'bench', size: 2, validateRows: false })
  const client = await connect({ url, applicationName: 'bench' })
  const holder = await connect({ url, applicationName: 'bench-holder' })
  const worker = await stack.worker(url, { WORKER_QUEUES: 'system' })
  await waitUntilQuiet()
  const feed = startFeeding(db, client)
  await delay(SECONDS_BEFORE_SNAPSHOT * 1000)
  const before = feed.perSecond.slice(WARM_UP_SECONDS)
  await holder.query('begin isolation level repeatable read')
  await holder.query('select count(*) from account')
  const heldFrom = feed.perSecond.length
  await delay(SNAPSHOT_SECONDS * 1000)
  const held = feed.perSecond.slice(heldFrom + COUNT_LAG_SECONDS)
  await holder.query('commit')
  await feed.stop()
  const [dead] = (
    await client.query(`select n_dead_tup::int as job from pg_stat_user_tables where relname = 'job'`)
  ).rows
  await Promise.all([holder.end(), client.end(), worker.stop()])
  await db.close()
  const without = before.slice(-COMPARED_SECONDS)
  const last = held.slice(-COMPARED_SECONDS)
  return {
    rounds: 1,
    findings: [
      {
        name: `no-op jobs, after ${SNAPSHOT_SECONDS} s of a held snapshot`,
        unit: 'jobs/s',
        values: [mean(last)],
        reference: { name: 'before', values: [mean(without)] },
        target: { of: 'ratio', atLeast: 0.9 },
      },
    ],
    notes: [
      `Jobs are added as fast as they end, on the same cores; ${feed.perSecond.reduce((sum, n) => sum + n, 0)} ended. ${dead?.job} dead rows of \`job\` at the end.`,
      ...(held.length < 20 ? [] : [`Every 20 s: ${averageByTwenty(held).join(', ')} jobs/s.`]),
    ],
    details: { before, held },
  }
}

// Adding and running jobs alternate, so a single second means little.
const mean = (values: readonly number[]): number => values.reduce((sum, n) => sum + n, 0) / values.length
const averageByTwenty = (values: readonly number[]): number[] =>
  Array.from({ length: Math.floor(values.length / 20) }, (_, i) =>
    Math.round(mean(values.slice(i * 20, i * 20 + 20))),
  )

/** Keeps jobs waiting until stopped, and counts the ended jobs of each second. */
function startFeeding(db: Database, client: Client): { perSecond: number[]; stop(): Promise<void> } {
  const perSecond: number[] = []
  let added = 0
  let ended = 0
  let over = false
  const add = async (): Promise<void> => {
    while (!over) {
      if (added - ended > MAX_WAITING) {
        await delay(10)
        continue
      }
      const payloads = Array.from({ length: CHUNK }, (_, i) => ({ echo: String(added + i) }))
      await db.transaction((tx) =>
        enqueueMany(tx, noop, payloads, { ownerId: null, settings: createJobSettings(3) }),
      )
      added += CHUNK
    }
  }
  const count = async (): Promise<void> => {
    const { rows } = await client.query<{ now: Date }>('select now() as now')
    for (let from = rows[0]!.now.getTime(); !over; from += 1000) {
      await delay(Math.max(0, from + (1 + COUNT_LAG_SECONDS) * 1000 - Date.now()))
      // With the predicate of `job_finished_at_idx`: reading the whole table would slow the jobs down.
      const counted = await client.query<{ n: number }>(
        `select count(*)::int as n from job where finished_at >= $1 and finished_at < $2 and status <> 'failed'`,
        [new Date(from), new Date(from + 1000)],
      )
      perSecond.push(counted.rows[0]!.n)
      ended += counted.rows[0]!.n
    }
  }
  const working = Promise.all([add(), count()])
  return {
    perSecond,
    stop: async () => {
      over = true
      await working
    },
  }
}
