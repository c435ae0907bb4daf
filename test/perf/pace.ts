import { setTimeout as delay } from 'node:timers/promises'
import { connect } from '../../sql/connections/driver.ts'
import { queryRows, type Stack } from './stack.ts'
import { listFamilyPids, startCpuMeter, waitUntilQuiet } from './usage.ts'

/** Measures the drain rate of a queue, in jobs a second. */

// Polling every 10 ms took a tenth of the measured time, with any query plan.
const POLL_INTERVAL_MS = 25
const TIMEOUT_MS = 300_000

export interface Pace {
  readonly perSecond: number
  /** CPU time per job. */
  readonly cpuMicroseconds: { readonly worker: number; readonly postgres: number }
  readonly foreignCores: number
}

/**
 * Completes the database's follow-up work after the queue was filled, so that it does not run during the measurement.
 */
export async function finishMaintenance(url: string): Promise<void> {
  await queryRows(url, 'vacuum analyze')
  await queryRows(url, 'checkpoint')
  await waitUntilQuiet()
}

/**
 * Statements that poll the state of a run. They must be cheap, because they run during the measurement. Only `done`
 * counts rows.
 */
export interface PollStatements {
  /** Processes that count as the worker. */
  readonly pids: readonly number[]
  readonly jobs: number
  /** Returns the number of finished jobs. */
  readonly done: string
  /** These return true once the first job (`begun`) or the last job (`over`) has finished. */
  readonly begun: string
  readonly over: string
}

/** Measures the rate between the first and the last finished job. */
export async function measurePace(stack: Stack, url: string, watched: PollStatements): Promise<Pace> {
  const client = await connect({ url, applicationName: 'bench' })
  // In a nearly empty queue, most rows are dead or finished. Do not read all of them at each poll.
  await client.query('set enable_seqscan = off')
  const until = async (name: 'begun' | 'over'): Promise<number> => {
    for (
      const limit = performance.now() + TIMEOUT_MS;
      performance.now() < limit;
      await delay(POLL_INTERVAL_MS)
    ) {
      const at = performance.now()
      if ((await client.query<{ yes: boolean }>({ name, text: watched[name] })).rows[0]!.yes) return at
    }
    throw new Error('The jobs were not done in time')
  }
  try {
    await until('begun')
    const startedAt = performance.now()
    const before = (await client.query<{ n: number }>(watched.done)).rows[0]!.n
    const meter = startCpuMeter({
      worker: () => watched.pids,
      postgres: () => listFamilyPids(stack.postmaster),
      bench: () => [process.pid],
    })
    const ms = (await until('over')) - startedAt
    const { used, foreign } = meter()
    const jobs = watched.jobs - before
    const perJob = (ms: number): number => (ms * 1000) / jobs
    return {
      perSecond: (jobs * 1000) / ms,
      cpuMicroseconds: { worker: perJob(used.worker), postgres: perJob(used.postgres) },
      foreignCores: foreign / ms,
    }
  } finally {
    await client.end()
  }
}
