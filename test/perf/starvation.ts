import { setTimeout as delay } from 'node:timers/promises'
import { connect } from '../../sql/connections/driver.ts'
import { createDatabase } from '../../sql/db.ts'
import { namedTasks } from '../../tasks/load-test/index.ts'
import { enqueueMany } from '../../tasks/task.ts'
import { createJobSettings } from '../job-settings.ts'
import type { Measured } from './report.ts'
import { queryRows, type Stack, signUp } from './stack.ts'
import { percentile } from './stats.ts'

const FLOOD_SIZE = Number(process.env.BENCH_WAITING ?? 100_000)
const SAMPLES = Number(process.env.BENCH_SAMPLES ?? 200)
const CHUNK = 5000
const PACE_MS = 50
const TIMEOUT_MS = 60_000

/** Measures the delay until tasks of one queue start while another queue holds a flood of tasks. */
export async function measureStarvation(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  const edge = await stack.edge(url)
  const account = await signUp(edge.port)
  const worker = await stack.worker(url, { WORKER_QUEUES: 'load_test,system' })
  const sample = async (): Promise<number[]> => {
    const ids: string[] = []
    for (let i = 0; i < SAMPLES; i++) {
      const response = await fetch(`http://127.0.0.1:${edge.port}/api/v1/tasks/enqueue`, {
        method: 'POST',
        headers: { authorization: `Bearer ${account.token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ task_name: 'noop', queue_type: 'system' }),
      })
      ids.push(((await response.json()) as { task_id: string }).task_id)
      await delay(PACE_MS)
    }
    return waitForStartTimes(url, ids)
  }
  const idle = await sample()
  await addFlood(url, account.id)
  const before = await countWaiting(url)
  const busy = await sample()
  const left = await countWaiting(url)
  if (left < FLOOD_SIZE / 2) throw new Error(`The flood ended too early: ${left} waiting of ${before}`)
  await worker.stop()
  const at = (share: number, target?: number) => ({
    name: `enqueued to started, p${share * 100}`,
    unit: 'ms',
    values: [percentile(busy, share)],
    reference: { name: 'with empty queues', values: [percentile(idle, share)] },
    ...(target === undefined ? {} : { target: { of: 'value' as const, atMost: target } }),
  })
  return {
    rounds: SAMPLES,
    findings: [at(0.5), at(0.95), at(0.99, 100)],
    notes: [
      `${before} to ${left} tasks waited on load_test, whose slots were full; one task every ${PACE_MS} ms on system.`,
    ],
    details: { idle, busy },
  }
}

/** Adds tasks that occupy their slots during the whole measurement. */
async function addFlood(url: string, ownerId: number): Promise<void> {
  const db = createDatabase({ url, applicationName: 'bench', size: 1, validateRows: false })
  const task = namedTasks.get('load_test')!.get('io_simulation_task')!
  for (let from = 0; from < FLOOD_SIZE; from += CHUNK) {
    const payloads = Array.from(
      { length: CHUNK },
      () => ({ operations: 1, duration_ms: TIMEOUT_MS }) as never,
    )
    await db.transaction((tx) => enqueueMany(tx, task, payloads, { ownerId, settings: createJobSettings(3) }))
  }
  await db.close()
}

async function countWaiting(url: string): Promise<number> {
  const [row] = await queryRows(
    url,
    `select count(*)::int as n from job where queue = 'load_test' and status = 'available'`,
  )
  return row!.n as number
}

async function waitForStartTimes(url: string, ids: readonly string[]): Promise<number[]> {
  const client = await connect({ url, applicationName: 'bench' })
  try {
    for (;;) {
      const { rows } = await client.query<{ ms: number | null }>(
        `select extract(epoch from started_at - created_at)::float8 * 1000 as ms from job where id = any($1::uuid[])`,
        [ids as string[]],
      )
      const ms = rows.flatMap((row) => row.ms ?? [])
      if (ms.length === ids.length) return ms
      await delay(100)
    }
  } finally {
    await client.end()
  }
}
