import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openQueueConnections, type RunnerPool } from '../../sql/connections/queue-pool.ts'
import type { ClaimedJob, Delivery } from '../../sql/jobs/claims.ts'
import type { AnyTask } from '../../tasks/task.ts'
import { type QueueRunnerOptions, startQueueRunner } from '../../workers/queue/runner.ts'
import { createTestDatabase } from '../database.ts'
import { stopAfterFile } from '../services.ts'
import { until } from '../until.ts'
import { createSettings, log } from './parts.ts'

/** Tests a queue runner: prefetched deliveries, claims and lost connections. */

const { url, query } = await createTestDatabase()
const TASK_NAME = 'test.prefetched'
const NOTHING = { jobs: [], isDone: true }
const countLocked = async (): Promise<number> =>
  Number(
    (await query(`select count(*) from graphile_worker._private_jobs where locked_at is not null`))[0]!.count,
  )

/** Starts a runner that fetches 300 deliveries: it handles 256 of them, and the rest wait in memory. */
async function startPrefetched(pool: RunnerPool) {
  await query('delete from graphile_worker._private_jobs')
  await query(`select graphile_worker.add_job($1, '{}') from generate_series(1, 300)`, [TASK_NAME])
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let claims = 0
  const runner = createRunner(pool, {
    // The first few claims resolve immediately, so that the runner fetches more. The others wait for `end`.
    claim: async () => {
      if (++claims > 3) await ended
      return NOTHING
    },
    redeliver: async () => {},
  })
  await until('the runner has fetched more than it can handle', async () => (await countLocked()) > 256)
  return { runner, end }
}

const createRunner = (
  pool: RunnerPool,
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
    onPoolChange: () => {},
    unlock: async (poolId) => {
      await query('select graphile_worker.force_unlock_workers(array[$1])', [poolId])
    },
    ...more,
  })

const addDelivery = (task: string, mailbox = task) =>
  query(
    `select graphile_worker.add_job($1, json_build_object('mailbox', $2::text, 'first', 1)), pg_notify('deliveries', $1 || ':1')`,
    [task, mailbox],
  )

async function openPool(tasks: readonly string[] = [TASK_NAME]): Promise<RunnerPool> {
  const connections = await openQueueConnections({
    url,
    directUrl: url,
    pooled: false,
    applicationName: 'queue-runner',
    size: 5,
    onError: () => {},
  })
  stopAfterFile(() => connections.end())
  return connections.poolFor(tasks)
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
      return NOTHING
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
  const runner = createRunner(
    await openPool([TASK_NAME, 'test.tool']),
    {
      claim: async ({ task }) => {
        claimedTasks.push(task)
        return { jobs: [{ name: task } as ClaimedJob], isDone: true }
      },
      redeliver: async () => {},
    },
    {
      tasks: [
        { name: TASK_NAME, pool: 'io' },
        { name: 'test.tool', pool: 'io', isTool: true },
      ] as AnyTask[],
      limits: { concurrency: 1, isDrained: false },
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

test('a paused queue runs only operators’ tools, and all of its tasks once it is resumed', async () => {
  await query('delete from graphile_worker._private_jobs')
  const claimedTasks: string[] = []
  const runner = createRunner(
    await openPool([TASK_NAME, 'test.tool']),
    {
      claim: async ({ task }) => {
        claimedTasks.push(task)
        return NOTHING
      },
      redeliver: async () => {},
    },
    {
      tasks: [
        { name: TASK_NAME, pool: 'io' },
        { name: 'test.tool', pool: 'io', isTool: true },
      ] as AnyTask[],
      limits: { concurrency: null, isDrained: true },
    },
  )
  await addDelivery(TASK_NAME)
  await addDelivery('test.tool')
  runner.setLimits({ concurrency: 0, isDrained: false })
  await until('the tool runs', () => claimedTasks.length === 1)
  runner.setLimits({ concurrency: null, isDrained: false })
  await until('the job runs', () => claimedTasks.length === 2)
  await runner.stop()
  assert.deepEqual(claimedTasks, ['test.tool', TASK_NAME])
})

describe('a delivery that a claim has not done', { concurrency: false }, () => {
  test('is claimed again, and returns to the queue when the runner stops', async () => {
    await query('delete from graphile_worker._private_jobs')
    let claims = 0
    const returned: Delivery[] = []
    const runner = createRunner(await openPool(), {
      claim: async () => {
        claims++
        return { jobs: [], isDone: false }
      },
      redeliver: async (delivery) => void returned.push(delivery),
    })
    await addDelivery(TASK_NAME, 'locked')
    await until('it is claimed again', () => claims >= 3)
    await runner.stop()
    assert.deepEqual(
      returned.map(({ mailbox }) => mailbox),
      ['locked'],
    )
  })
})

test('claims for several free places of a limited queue together', async () => {
  await query('delete from graphile_worker._private_jobs')
  const wanted: number[] = []
  const running: (() => void)[] = []
  const runner = createRunner(
    await openPool(),
    {
      claim: async ({ mailbox }, slots) => {
        wanted.push(slots)
        if (mailbox === 'second') return NOTHING
        return { jobs: Array.from({ length: slots }, () => ({}) as ClaimedJob), isDone: true }
      },
      redeliver: async () => {},
    },
    {
      limits: { concurrency: 10, isDrained: false },
      executor: { run: () => new Promise((resolve) => running.push(resolve)) },
    },
  )
  await addDelivery(TASK_NAME, 'first')
  await until('ten jobs run', () => running.length === 10)
  await addDelivery(TASK_NAME, 'second')
  for (const end of running.slice(0, 6)) end()
  await until('the second delivery is claimed', () => wanted.length === 2)
  for (const end of running) end()
  await runner.stop()
  assert.equal(wanted[0], 10)
  assert.ok(wanted[1]! >= 5, `claimed for ${wanted[1]} places`)
})

/**
 * Opens a pool that loses a connection once, at the next statement that contains `text`. `lost` selects whether the
 * database still executes that statement.
 */
async function openLosingPool(
  text: string,
  lost: 'statement' | 'answer',
): Promise<{ pool: RunnerPool; hasLost: () => boolean }> {
  const pool = await openPool()
  let hasLost = false
  const connect = async (listening?: Parameters<RunnerPool['connect']>[0]): Promise<unknown> => {
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
          return NOTHING
        },
        redeliver: async () => {},
      })
      await until('the delivery is handled', () => hasLost() && claims === 1)
      await runner.stop()
      assert.equal(await countLocked(), 0)
    })
