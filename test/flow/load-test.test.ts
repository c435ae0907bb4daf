import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { Client, launchProcess } from '../service.ts'
import { stopAfterFile } from '../services.ts'
import { until } from '../until.ts'

/** Runs tasks of the named queues, from the request to the result. */

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
const client = new Client(edge.port)
await client.register('tester@example.com')

async function enqueue(body: object, by = client): Promise<string> {
  const response = await by.post('/api/v1/tasks/enqueue', body)
  assert.equal(response.status, 202)
  return ((await response.json()) as { task_id: string }).task_id
}
// biome-ignore lint/suspicious/noExplicitAny: tests look into what came
const readResult = async (id: string, by = client): Promise<any> =>
  (await by.fetch(`/api/v1/tasks/result/${id}`)).json()
const waitForTask = (id: string, by = client) =>
  until(
    'the task has ended',
    async () => {
      const found = await readResult(id, by)
      return found.status === 'completed' || found.status === 'failed' ? found : undefined
    },
    60_000,
  )

test('every built-in task runs on both queues', async () => {
  const args: Record<string, object> = {
    io_simulation_task: { operations: 2, duration_ms: 5 },
    cpu_intensive_task: { duration_ms: 20 },
    memory_operations_task: { megabytes: 8, rounds: 1 },
    failure_testing_task: { probability: 0 },
    load_test_orchestrator: { count: 20, args: { operations: 1, duration_ms: 1 } },
  }
  const ids = await Promise.all(
    ['load_test', 'system'].flatMap((queue_type) =>
      Object.entries(args).map(([task_name, args]) => enqueue({ task_name, queue_type, args })),
    ),
  )
  for (const end of await Promise.all(ids.map((id) => waitForTask(id))))
    assert.equal(end.status, 'completed', JSON.stringify(end))
})

test('adds a load once, even if its worker dies, and its report adds up', async () => {
  const count = 60
  const id = await enqueue({
    task_name: 'load_test_orchestrator',
    queue_type: 'load_test',
    args: { task_name: 'failure_testing_task', count, args: { probability: 0.5 } },
  })
  // The task runs only briefly, so it may already have ended.
  await until('the load has been added', async () =>
    ['running', 'completed'].includes((await readResult(id)).status),
  )
  firstWorker.process.kill('SIGKILL')
  await startWorker()
  const { status, result: report } = await waitForTask(id)
  assert.equal(status, 'completed')
  assert.equal(report.completed + report.failed, count)
  assert.equal(report.cancelled, 0)
  assert.ok(report.per_second > 0 && report.seconds > 0)
  const { p50, p95, p99, max } = report.latency_ms
  assert.ok(p50 > 0 && p50 <= p95 && p95 <= p99 && p99 <= max, JSON.stringify(report.latency_ms))
  const [row] = await query(
    `select count(*)::int as n, (count(*) filter (where status = 'done'))::int as done from job
     where name = 'load_test.failure_testing_task' and created_at >= (select created_at from job where id = $1)`,
    [id],
  )
  assert.deepEqual(row, { n: count, done: report.completed })
})

test("tasks overtake most of another owner's flood, whether computing or waiting", async () => {
  const other = new Client(edge.port)
  const { id: otherId } = await other.register('other@example.com')
  // The first task keeps a thread busy for a minute. The second has more jobs than the worker has slots, and even its
  // first job ends after the late ones on a busy machine.
  const floods = {
    cpu_intensive_task: { count: 2000, args: { duration_ms: 30 } },
    io_simulation_task: { count: 4000, args: { operations: 1, duration_ms: 30_000 } },
  }
  for (const [task_name, flood] of Object.entries(floods))
    await enqueue({ task_name, queue_type: 'load_test', ...flood })
  await until('all slots are busy', async () => {
    const [row] = await query(
      `select count(*)::int as n from job where name = 'load_test.io_simulation_task' and status = 'running'`,
    )
    return (row!.n as number) >= 2048
  })
  const late = await Promise.all(
    Object.keys(floods).map((task_name) =>
      enqueue({ task_name, queue_type: 'load_test', args: { duration_ms: 30 } }, other),
    ),
  )
  for (const id of late) assert.equal((await waitForTask(id, other)).status, 'completed')
  const rows = await query(
    `select late.name, (count(*) filter (where flood.finished_at <= late.finished_at))::int as before, count(*)::int as n
     from job late join job flood on flood.name = late.name and flood.owner_id <> late.owner_id
     where late.owner_id = $1 group by late.name order by late.name`,
    [otherId],
  )
  assert.equal(rows.length, 2)
  for (const { name, before, n } of rows as unknown as { name: string; before: number; n: number }[])
    assert.ok(before < n / 10, `${name}: ${before} of ${n} had ended before`)
})
