import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { QueuePool } from '../../sql/driver.ts'
import type { ClaimedJob } from '../../sql/jobs/claims.ts'
import { openQueuePool } from '../../sql/queue-pool.ts'
import type { AnyTask } from '../../tasks/task.ts'
import { type QueueRunnerOptions, startQueueRunner } from '../../workers/queue/runner.ts'
import { createTestDatabase } from '../database.ts'
import { stopAfterFile } from '../services.ts'
import { until } from '../until.ts'
import { createSettings, log } from './parts.ts'

/** Tests a queue runner: prefetched deliveries, claims and lost connections. */

const { url, query } = await createTestDatabase()
const TASK_NAME = 'test.prefetched'
const countLocked = async (): Promise<number> =>
  Number(
    (await query(`select count(*) from graphile_worker._private_jobs where locked_at is not null`))[0]!.count,
  )

/** Starts a runner that fetches 300 deliveries: it handles 256 of them, and the rest wait in memory. */
async function startPrefetched(pool: QueuePool) {
  await query('delete from graphile_worker._private_jobs')
  await query(`select graphile_worker.add_job($1, '{}') from generate_series(1, 300)`, [TASK_NAME])
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let claims = 0
  const runner = createRunner(pool, {
    // The first few claims resolve immediately, so that the runner fetches more. The others wait for `end`.
    claim: async () => {
      if (++claims > 3) await ended
      return []
    },
    redeliver: async () => {},
  })
  await until('the runner has fetched more than it can handle', async () => (await countLocked()) > 256)
  return { runner, end }
}

const createRunner = (
  pool: QueuePool,
  ledger: QueueRunnerOptions['ledger'],
  more: Partial<QueueRunnerOptions> = {},
) =>
  startQueueRunner({
    queue: 'test',
    tasks: [{ name: TASK_NAME, pool: 'io' } as AnyTask],
    settings: createSettings(url),
    pool,
    log,
    ledger,
    executor: { run: async () => {} },
    cron: new Map(),
    onPoolChange: () => {},
    unlock: async (poolId) => {
      await query('select graphile_worker.force_unlock_workers(array[$1])', [poolId])
    },
    ...more,
  })

async function openPool(): Promise<QueuePool> {
  const pool = await openQueuePool({
    url,
    directUrl: url,
    pooled: false,
    applicationName: 'queue-runner',
    size: 5,
    onError: () => {},
  })
  stopAfterFile(() => pool.end())
  return pool
}

describe('prefetched deliveries of a stopping runner', { concurrency: false }, () => {
  test('return to the queue before the runner has stopped', async () => {
    const { runner, end } = await startPrefetched(await openPool())
    const stopping = runner.stop()
    await until('deliveries that are not being handled are back', async () => (await countLocked()) <= 256)
    end()
    await stopping
    assert.equal(await countLocked(), 0)
  })

  test('stay locked during a database outage, without an unhandled rejection', async (t) => {
    const pool = await openPool()
    const { runner, end } = await startPrefetched(pool)
    const unhandled = t.mock.fn()
    process.on('unhandledRejection', unhandled)
    t.after(() => process.off('unhandledRejection', unhandled))
    const away = async (): Promise<never> => {
      throw new Error('The database is away')
    }
    t.mock.method(pool, 'connect', away)
    t.mock.method(pool, 'query', away)
    end()
    await runner.stop()
    assert.equal(unhandled.mock.callCount(), 0)
  })
})

test('reserves no more slots for a delivery than it can fill', async () => {
  await query('delete from graphile_worker._private_jobs')
  const deliveries = [
    { mailbox: 'actor', limit: 1, first: 1 },
    { mailbox: 'pair', limit: 2, first: 1 },
    { mailbox: 'all', limit: null, first: 1 },
  ]
  for (const delivery of deliveries)
    await query('select graphile_worker.add_job($1, $2::json)', [
      TASK_NAME,
      JSON.stringify({ ...delivery, owner: null }),
    ])
  const places = new Map<string, number>()
  const runner = createRunner(await openPool(), {
    claim: async ({ mailbox }, max) => {
      places.set(mailbox, max)
      return []
    },
    redeliver: async () => {},
  })
  await until('all deliveries are claimed', () => places.size === deliveries.length)
  await runner.stop()
  assert.deepEqual(Object.fromEntries(places), { actor: 1, pair: 2, all: 1000 })
})

test("an operator's tool runs although jobs use up the limit of its queue", async () => {
  await query('delete from graphile_worker._private_jobs')
  const [jobsEnd, claimedTasks] = [Promise.withResolvers<void>(), [] as string[]]
  const addDelivery = (task: string) =>
    query('select graphile_worker.add_job($1, $2::json)', [
      task,
      JSON.stringify({ mailbox: task, limit: null, first: 1, owner: 1 }),
    ])
  const runner = createRunner(
    await openPool(),
    {
      claim: async ({ task }) => {
        claimedTasks.push(task)
        return [{ name: task } as ClaimedJob]
      },
      redeliver: async () => {},
    },
    {
      tasks: [
        { name: TASK_NAME, pool: 'io' },
        { name: 'test.tool', pool: 'io', isTool: true },
      ] as AnyTask[],
      concurrency: 1,
      executor: { run: ({ name }) => (name === TASK_NAME ? jobsEnd.promise : Promise.resolve()) },
    },
  )
  await addDelivery(TASK_NAME)
  await until('a job runs', () => claimedTasks.length === 1)
  await addDelivery(TASK_NAME)
  await addDelivery('test.tool')
  await until('the tool runs', () => claimedTasks.includes('test.tool'))
  assert.deepEqual(claimedTasks, [TASK_NAME, 'test.tool'])
  jobsEnd.resolve()
  await runner.stop()
})

/**
 * Opens a pool that loses a connection once, at the next statement that contains `text`. `lost` selects whether the
 * database still executes that statement.
 */
async function openLosingPool(
  text: string,
  lost: 'statement' | 'answer',
): Promise<{ pool: QueuePool; hasLost: () => boolean }> {
  const pool = await openPool()
  let hasLost = false
  const connect = async (listening?: Parameters<QueuePool['connect']>[0]): Promise<unknown> => {
    if (listening !== undefined) return pool.connect(listening)
    const client = await pool.connect()
    const query = async (statement: string | { text: string }, values?: unknown[]): Promise<unknown> => {
      const send = () => client.query(statement as string, values)
      if (hasLost || typeof statement === 'string' || !statement.text.includes(text)) return send()
      hasLost = true
      if (lost === 'answer') await send()
      throw new Error('Connection terminated unexpectedly')
    }
    return { query, release: () => client.release() }
  }
  return { pool: Object.assign(Object.create(pool), { connect }), hasLost: () => hasLost }
}

for (const [what, text] of [
  ['the lookup of tasks', '_private_tasks as tasks (identifier)'],
  ['a fetch', 'limit 256'],
] as const)
  for (const lost of ['statement', 'answer'] as const)
    test(`handles deliveries within moments after the ${lost} of ${what} is lost`, async () => {
      await query('delete from graphile_worker._private_jobs')
      await query(`select graphile_worker.add_job($1, '{}')`, [TASK_NAME])
      const { pool, hasLost } = await openLosingPool(text, lost)
      let claims = 0
      const runner = createRunner(pool, {
        claim: async () => {
          claims++
          return []
        },
        redeliver: async () => {},
      })
      await until('the delivery is handled', () => hasLost() && claims === 1)
      await runner.stop()
      assert.equal(await countLocked(), 0)
    })
