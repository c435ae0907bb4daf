import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { Failure } from '../../sql/errors.ts'
import { uuidv7 } from '../../sql/ids.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { cpuIntensive } from '../../tasks/load-test/cpu-intensive.task.ts'
import { failureTesting } from '../../tasks/load-test/failure-testing.task.ts'
import { loadTestTasks, namedTasks } from '../../tasks/load-test/index.ts'
import { ioSimulation } from '../../tasks/load-test/io-simulation.task.ts'
import { memoryOperations } from '../../tasks/load-test/memory-operations.task.ts'
import type { TaskDefinition } from '../../tasks/task.ts'

/** Runs a built-in task in the test's own process. */

function runTask<P, R>(
  [task]: readonly TaskDefinition<P, R>[],
  payload: object,
  signal?: AbortSignal,
): Promise<R> {
  const job = { id: uuidv7(), attempt: 1, ownerId: null, requestId: null }
  const context = { job, signal: signal ?? new AbortController().signal } as TaskContext
  return task!.run(context, task!.payload.parse(payload)).then((result) => task!.result.parse(result))
}

test('each task is on both queues, with different names', () => {
  const names = loadTestTasks.map(({ name }) => name)
  assert.equal(new Set(names).size, 10)
  for (const { name, queue } of loadTestTasks) assert.ok(name.startsWith(`${queue}.`), name)
  assert.deepEqual([...namedTasks.get('load_test')!.keys()].sort(), [
    'cpu_intensive_task',
    'failure_testing_task',
    'io_simulation_task',
    'load_test_orchestrator',
    'memory_operations_task',
  ])
  assert.ok(namedTasks.get('system')!.has('prune'))
})

test('I/O simulation waits as often and as long as requested, and reports its duration', async () => {
  const { operations, total_ms } = await runTask(ioSimulation, { operations: 4, duration_ms: 5 })
  assert.deepEqual(
    operations.map(({ operation }) => operation),
    [1, 2, 3, 4],
  )
  // A timer may fire a fraction of a millisecond early.
  for (const { duration_ms } of operations) assert.ok(duration_ms > 4, String(duration_ms))
  assert.ok(total_ms >= operations.reduce((sum, { duration_ms }) => sum + duration_ms, 0) - 1)
})

test('waiting and burning end when the job is cancelled', async () => {
  const abort = new AbortController()
  const both = [
    runTask(ioSimulation, { duration_ms: 60_000 }, abort.signal),
    runTask(cpuIntensive, { duration_ms: 60_000 }, abort.signal),
  ]
  setImmediate(() => abort.abort())
  for (const end of await Promise.allSettled(both)) assert.equal(end.status, 'rejected')
})

test('CPU work computes a chain of hashes for its time', async () => {
  const { hashes, digest, duration_ms } = await runTask(cpuIntensive, { duration_ms: 30 })
  assert.ok(duration_ms >= 30 && hashes > 0)
  let link: Buffer = Buffer.alloc(32)
  for (let n = 0; n < hashes; n++) link = createHash('sha256').update(link).digest()
  assert.equal(digest, link.toString('hex'))
})

test('memory work allocates, touches and frees the requested amount', async () => {
  const result = await runTask(memoryOperations, { megabytes: 33, rounds: 2 })
  const bytes = 33 * 2 ** 20
  assert.equal(result.allocated_bytes, 2 * bytes)
  assert.equal(result.checksum, (2 * bytes) / 4096)
  assert.ok(result.peak_bytes >= bytes, String(result.peak_bytes))
  assert.ok(result.peak_bytes - result.left_bytes >= bytes / 2, JSON.stringify(result))
})

test('the failing task fails with the requested probability, permanently or not', async () => {
  const ends = await Promise.allSettled(
    Array.from({ length: 400 }, () => runTask(failureTesting, { probability: 0.5 })),
  )
  const failed = ends.filter(({ status }) => status === 'rejected').length
  // Six standard deviations: a correct task exceeds this with a probability below 10^-8.
  assert.ok(Math.abs(failed - 200) < 60, `${failed} of 400`)
  await runTask(failureTesting, { probability: 0 })
  for (const curable of [false, true])
    await assert.rejects(runTask(failureTesting, { probability: 1, curable }), (error) => {
      assert.ok(error instanceof Failure)
      return error.retryable === curable
    })
})
