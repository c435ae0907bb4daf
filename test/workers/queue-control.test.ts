import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { cancelJobs } from '../../sql/jobs/jobs.ts'
import {
  pauseQueue,
  readQueueShares,
  resumeQueue,
  setQueueLimit,
  setWorkerDrained,
} from '../../sql/jobs/queues.ts'
import { createTaskFinder, loadTasks } from '../../tasks/index.ts'
import { enqueueMany, type TaskDefinition } from '../../tasks/task.ts'
import { createTestDatabase } from '../database.ts'
import { createJobSettings } from '../job-settings.ts'
import { TERMINAL_STATUSES } from '../sql/ledger-help.ts'
import { until } from '../until.ts'
import { startTestWorker, TASKS_MODULE } from './parts.ts'

/** Tests pauses and limits of queues with real workers. */

const { db, query, url } = await createTestDatabase()
const findTask = createTaskFinder(await loadTasks([TASKS_MODULE]))
// This worker runs the jobs of the first tests. A later test stops it before another starts a worker under a limit.
const firstWorker = await startTestWorker(url, 'io,other')

async function addJobs(name: string, payload: unknown, count: number): Promise<string[]> {
  const task = findTask(name) as unknown as TaskDefinition<unknown, unknown>
  const refs = await db.transaction((tx) =>
    enqueueMany(tx, task, new Array(count).fill(payload), { ownerId: null, settings: createJobSettings(3) }),
  )
  return refs.map(({ jobId }) => jobId)
}
const countJobs = async (ids: readonly string[], ...statuses: readonly string[]): Promise<number> =>
  (
    await query('select count(*)::int as n from job where id = any($1) and status = any($2)', [ids, statuses])
  )[0]!.n as number
const waitForEnd = (ids: readonly string[]) =>
  until('all jobs have finished', async () => (await countJobs(ids, ...TERMINAL_STATUSES)) === ids.length)

describe('a paused queue', { concurrency: false }, () => {
  test('starts no jobs until it is resumed, and does not affect other queues', async () => {
    await waitForEnd(await addJobs('io.echo', 1, 3))
    await db.run(pauseQueue('io', null))
    // A worker pauses only when the notification arrives, so it may still start jobs that it fetched before.
    const held = await until('no job starts', async () => {
      const ids = await addJobs('io.echo', 2, 5)
      await waitForEnd(await addJobs('other.echo', 2, 5))
      return (await countJobs(ids, 'available')) === ids.length && ids
    })
    const late = await startTestWorker(url, 'io')
    await waitForEnd(await addJobs('other.echo', 3, 5))
    assert.equal(await countJobs(held, 'available'), held.length, 'a worker that starts knows of it')
    await db.run(resumeQueue('io'))
    await waitForEnd(held)
    await late.worker.stop()
    const [row] = await query(
      `select count(*)::int as n from job where status <> 'done' and queue <> 'schedules'`,
    )
    assert.equal(row!.n, 0)
  })

  test('lets running jobs finish', async () => {
    const ids = await addJobs('io.sleep', { ms: 300 }, 3)
    await until('all jobs have started', async () => (await countJobs(ids, 'available')) === 0)
    await db.run(pauseQueue('io', null))
    await waitForEnd(ids)
    assert.equal(await countJobs(ids, 'done'), ids.length)
    await db.run(resumeQueue('io'))
  })

  test('does not delay the stop of a worker', async () => {
    await db.run(pauseQueue('io', null))
    const { worker, warnings } = await startTestWorker(url, 'io')
    await worker.stop()
    // A warning would list jobs that did not finish in time.
    assert.deepEqual(warnings, [])
    await db.run(resumeQueue('io'))
  })
})

describe('a limited queue', { concurrency: false }, () => {
  after(() => db.run(setQueueLimit('io', null)))

  test('runs no more jobs than its limit across all workers, and finishes all of them', async () => {
    await db.run(setQueueLimit('io', 3))
    const other = await startTestWorker(url, 'io')
    const readAllShares = async () => {
      const leases = await query('select id::text from worker_lease where expires_at > now() order by id')
      const all = await Promise.all(leases.map(({ id }) => db.any(readQueueShares(id as string))))
      return all.flat().map(({ concurrency }) => concurrency)
    }
    await until('the workers divide the limit', async () => {
      const given = await readAllShares()
      return given.reduce<number>((sum, concurrency) => sum + concurrency!, 0) === 3 && given.length >= 2
    })
    // By the time these jobs finish, each worker has been notified of the other's lease.
    await waitForEnd(await addJobs('io.echo', 1, 4))
    const ids = await addJobs('io.sleep', { ms: 40 }, 60)
    let max = 0
    await until('all jobs are done', async () => {
      max = Math.max(max, await countJobs(ids, 'running'))
      return (await countJobs(ids, 'done')) === ids.length
    })
    assert.ok(max >= 2 && max <= 3, `${max} at once`)
    await Promise.all([firstWorker.worker.stop(), other.worker.stop()])
  })

  test('starts more jobs immediately after its limit is removed', async () => {
    await db.run(setQueueLimit('io', 1))
    await startTestWorker(url, 'io')
    const ids = await addJobs('io.sleep', { ms: 60_000 }, 12)
    await until('one job is running', async () => (await countJobs(ids, 'running')) === 1)
    await db.run(setQueueLimit('io', null))
    await until('many jobs are running', async () => (await countJobs(ids, 'running')) > 5)
    for (const id of ids) await db.any(cancelJobs([id]))
    await waitForEnd(ids)
  })
})

test('a drained worker starts no jobs until it is resumed, while other workers do', async () => {
  const [one, other] = await Promise.all([startTestWorker(url, 'io'), startTestWorker(url, 'io')])
  const countRunning = async (ids: readonly string[], lease: string): Promise<number> =>
    (await query('select count(*)::int as n from job where id = any($1) and lease_id = $2', [ids, lease]))[0]!
      .n as number
  await db.run(setWorkerDrained(one.worker.lease.id, true))
  const ids = await until('all jobs run in the other worker', async () => {
    const some = await addJobs('io.sleep', { ms: 300 }, 8)
    await until('all jobs have started', async () => (await countJobs(some, 'available')) === 0)
    const [here, there] = [
      await countRunning(some, one.worker.lease.id),
      await countRunning(some, other.worker.lease.id),
    ]
    await waitForEnd(some)
    return here === 0 && there === 8 && some
  })
  assert.equal(await countJobs(ids, 'done'), 8)
  await db.run(setWorkerDrained(other.worker.lease.id, true))
  const held = await addJobs('io.echo', 1, 3)
  await db.run(setWorkerDrained(one.worker.lease.id, false))
  await waitForEnd(held)
  await Promise.all([one.worker.stop(), other.worker.stop()])
  assert.equal(await db.maybeOne(setWorkerDrained(one.worker.lease.id, true)), null)
})

test('reports no change for a state that is already set', async () => {
  await query('delete from queue_control')
  assert.equal(await db.maybeOne(resumeQueue('io')), null)
  assert.notEqual(await db.maybeOne(pauseQueue('io', null)), null)
  const [first] = await query('select paused_at from queue_control')
  assert.equal(await db.maybeOne(pauseQueue('io', null)), null)
  assert.deepEqual((await query('select paused_at from queue_control'))[0], first)
  assert.notEqual(await db.maybeOne(setQueueLimit('io', 7)), null)
  assert.equal(await db.maybeOne(setQueueLimit('io', 7)), null)
  await query('delete from queue_control')
})
