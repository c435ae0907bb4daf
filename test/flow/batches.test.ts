import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { Client, launchProcess } from '../service.ts'
import { stopAfterFile } from '../services.ts'
import { until } from '../until.ts'

/** Runs batches, dependencies and rates with real workers, of which some are killed. */

const { url, query } = await createTestDatabase()
const edge = await startEdge(url)
async function startWorker() {
  const worker = await launchProcess('worker', url, {
    WORKER_QUEUES: 'load_test,system',
    WORKER_THREADS: '1',
  })
  stopAfterFile(() => worker.kill())
  return worker
}
const firstWorker = await startWorker()
await startWorker()
const client = new Client(edge.port)
const { id: owner } = await client.register('tester@example.com')
await query(`update account set role = 'admin' where id = $1`, [owner])

const post = async <T>(path: string, body: object = {}): Promise<T> => {
  const response = await client.post(path, body)
  assert.ok(response.status < 300, `${path}: ${response.status}`)
  return (await response.json()) as T
}
const io = (more: object = {}) => ({
  ...{ task_name: 'io_simulation_task', queue_type: 'load_test', args: { operations: 1, duration_ms: 1 } },
  ...more,
})
interface Added {
  readonly batch_id: string
  readonly job_ids: readonly string[]
}
const addBatch = (jobs: readonly object[], more: object = {}) =>
  post<Added>('/api/v1/batches', { jobs, ...more })
const statusOf = async (id: string) =>
  (await query('select status from job where id = $1', [id]))[0]!.status as string
const hasEnded = async (id: string) => ['done', 'failed', 'cancelled'].includes(await statusOf(id))
const waitForEnd = (id: string) => until(`${id} has ended`, () => hasEnded(id), 60_000)
const resultOf = async (id: string) => (await query('select result from job where id = $1', [id]))[0]!.result

test('a graph runs in its order, and the batch counts it, although a worker is killed', async () => {
  const width = 100
  const jobs = [
    io(),
    ...Array.from({ length: width }, () => io({ after: [0] })),
    io({ after: [1], args: { operations: 1, duration_ms: 20 } }),
    ...Array.from({ length: width }, (_, n) => io({ after: [n + 1, width + 1] })),
    { task_name: 'failure_testing_task', queue_type: 'load_test', args: { probability: 1 }, after: [0] },
    io({ after: [2 * width + 2] }),
    io({ after: [2 * width + 3], after_outcome: 'any' }),
  ]
  const { batch_id, job_ids } = await addBatch(jobs)
  await until('the first job has started', async () => (await statusOf(job_ids[0]!)) !== 'available')
  firstWorker.process.kill('SIGKILL')
  await startWorker()
  await waitForEnd(batch_id)
  assert.deepEqual(await resultOf(batch_id), {
    total: jobs.length,
    done: jobs.length - 2,
    failed: 1,
    cancelled: 1,
  })
  const early = await query(
    `select count(*)::int as n from job cross join lateral unnest(job.after) a(id) join job before on before.id = a.id
     where job.batch_id = $1 and job.status = 'done' and job.started_at < before.finished_at`,
    [batch_id],
  )
  assert.equal(early[0]!.n, 0, 'no job starts before its dependencies have ended')
})

test('a load test works under a queue limit of 1, and holds no slot while it waits', async () => {
  await client.fetch('/api/v1/queues/load_test', {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ limit: 1 }),
  })
  const { task_id } = await post<{ task_id: string }>('/api/v1/tasks/enqueue', {
    ...{ task_name: 'load_test_orchestrator', queue_type: 'load_test' },
    args: { count: 5, args: { operations: 1, duration_ms: 1 } },
  })
  await waitForEnd(task_id)
  assert.equal(((await resultOf(task_id)) as { completed: number }).completed, 5)
  await client.fetch('/api/v1/queues/load_test', {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ limit: null }),
  })
})

test('cancelling a load test cancels its load, and ends after it', async () => {
  const { task_id } = await post<{ task_id: string }>('/api/v1/tasks/enqueue', {
    ...{ task_name: 'load_test_orchestrator', queue_type: 'load_test' },
    args: { count: 3000, args: { operations: 1, duration_ms: 60_000 } },
  })
  await until('it waits for its load', async () => (await statusOf(task_id)) === 'waiting')
  const { status } = await client.fetch(`/api/v1/jobs/${task_id}`, { method: 'DELETE' })
  assert.equal(status, 202)
  await waitForEnd(task_id)
  const rows = await query('select status, count(*)::int as n from job where batch_id = $1 group by status', [
    task_id,
  ])
  assert.deepEqual(rows, [{ status: 'cancelled', n: 3000 }])
  const [late] = await query(
    'select count(*)::int as n from job m join job b on b.id = m.batch_id where b.id = $1 and m.finished_at > b.finished_at',
    [task_id],
  )
  assert.equal(late!.n, 0)
})

test('a key with a rate starts no more jobs than that in any period, in all workers', async () => {
  const { batch_id } = await addBatch(
    Array.from({ length: 30 }, () => io({ key: 'rated', rate: '20/1', limit: 5 })),
  )
  await waitForEnd(batch_id)
  const starts = (
    await query(
      'select extract(epoch from started_at)::float8 as at from job where batch_id = $1 order by 1',
      [batch_id],
    )
  ).map(({ at }) => at as number)
  // Starts of one claim have the time of its transaction, a moment before its rate was counted.
  for (const [n, at] of starts.entries())
    if (n >= 20) assert.ok(at - starts[n - 20]! > 0.9, `${at - starts[n - 20]!} s for 20 starts`)
})
