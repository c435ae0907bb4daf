import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { uuidv7 } from '../../sql/ids.ts'
import {
  createIsolatedRunner,
  type IsolatedRunner,
  type IsolatedRunnerOptions,
} from '../../workers/processes/isolated-runner.ts'
import type { Outcome } from '../../workers/threads/protocol.ts'
import { sharedDatabase } from '../sql/shared-database.ts'
import { until } from '../until.ts'
import { createSettings, log, TASKS_MODULE } from './parts.ts'

/** The isolated runner survives whatever its jobs do to their process. */

const { url } = await sharedDatabase()
const events: { id: string; n: number; kind: string; data: unknown }[] = []

function openRunner(more: Partial<IsolatedRunnerOptions> = {}): IsolatedRunner {
  const isolated = createIsolatedRunner({
    settings: createSettings(url),
    databaseUrl: url,
    taskModules: [TASKS_MODULE],
    log,
    onEvent: (event) => void events.push(event),
    ...more,
  })
  after(() => isolated.close())
  return isolated
}
const isolatedRunner = openRunner()
// Ids of the jobs that are running.
const runningJobs = new Set<string>()

function startJob(name: string, payload: unknown = {}, among = isolatedRunner) {
  const id = uuidv7()
  const pool = name.startsWith('cpu') ? 'cpu' : 'io'
  const job = {
    id,
    attempt: 3,
    name,
    payload: JSON.stringify(payload),
    owner_id: null,
    request_id: null,
    trace_parent: null,
  }
  const onBegun = () => void runningJobs.add(id)
  return {
    id,
    outcome: among.run(name.split('.')[0]!, pool, job, onBegun).finally(() => runningJobs.delete(id)),
  }
}
const parseResult = (outcome: Outcome) => outcome.kind === 'done' && JSON.parse(outcome.result)

interface RunResult {
  readonly pid: number
  readonly began: number
  readonly ended: number
}

test('each job has its own process, up to four at a time', async () => {
  const ran: RunResult[] = await Promise.all(
    Array.from({ length: 8 }, async () => parseResult(await startJob('io.pid', { ms: 200 }).outcome)),
  )
  for (const one of ran) {
    const bystanders = ran.filter(
      (other) => other !== one && other.began < one.ended && one.began < other.ended,
    )
    assert.ok(bystanders.every(({ pid }) => pid !== one.pid && pid !== process.pid))
    assert.ok(bystanders.filter(({ began }) => began <= one.began).length < 4)
  }
  assert.ok(new Set(ran.map(({ pid }) => pid)).size <= 4, 'one that outlives its job has the next')
})

test('progress arrives in order, before the end', async () => {
  const { id, outcome } = startJob('io.steps', { steps: 40 })
  assert.deepEqual(await outcome, { kind: 'done', result: '40' })
  const notes = events.filter((event) => event.id === id && event.kind === 'note')
  assert.deepEqual(
    notes.map(({ data }) => (data as { step: number }).step),
    Array.from({ length: 40 }, (_, i) => i + 1),
  )
})

test('failures are the same as in a thread', async () => {
  const failed = await startJob('io.fail', { code: 'document.missing' }).outcome
  assert.deepEqual([failed.kind, failed.kind === 'failed' && failed.code], ['failed', 'document.missing'])
})

for (const name of ['io.kill', 'io.exit', 'cpu.memory'])
  test(`${name}: the death counts as the job's own crash, and the next one runs`, async () => {
    const [dying, next] = [startJob(name), startJob('io.echo', 1)]
    assert.deepEqual(await dying.outcome, { kind: 'crashed', host: 'isolated' })
    assert.deepEqual(await next.outcome, { kind: 'done', result: '1' })
  })

test('an abort reaches a job that runs, ignores its signal, or waits', async () => {
  const [running, ...others] = [60_000, 50, 50, 50].map((ms) => startJob('io.sleep', { ms }))
  const waiting = startJob('io.sleep', { ms: 60_000 })
  isolatedRunner.abort(waiting.id, 3, 'superseded')
  isolatedRunner.abort(running!.id, 2, 'cancelled')
  isolatedRunner.abort(running!.id, 3, 'cancelled')
  assert.deepEqual(await running!.outcome, { kind: 'aborted', reason: 'cancelled' })
  assert.deepEqual(await waiting.outcome, { kind: 'aborted', reason: 'superseded' })
  for (const { outcome } of others) assert.equal((await outcome).kind, 'done')
  const deaf = startJob('io.deaf', { ms: 60_000 })
  isolatedRunner.abort(deaf.id, 3, 'timeout')
  assert.deepEqual(await deaf.outcome, { kind: 'aborted', reason: 'timeout' })
})

test('a job that waits for a process has not begun, and an abort ends it immediately', async () => {
  const running = Array.from({ length: 4 }, () => startJob('io.sleep', { ms: 60_000 }))
  const waiting = startJob('io.sleep', { ms: 60_000 })
  await until('four jobs run', () => runningJobs.size === 4)
  isolatedRunner.abort(waiting.id, 3, 'cancelled')
  assert.deepEqual(await waiting.outcome, { kind: 'aborted', reason: 'cancelled' })
  assert.deepEqual(runningJobs, new Set(running.map(({ id }) => id)))
  for (const { id, outcome } of running) {
    isolatedRunner.abort(id, 3, 'cancelled')
    await outcome
  }
})

test("a process that cannot start is not the job's crash", async () => {
  const broken = openRunner({ taskModules: ['file:///nowhere/tasks.ts'], settings: null as never })
  assert.deepEqual(await startJob('io.echo', 1, broken).outcome, { kind: 'aborted', reason: 'stopping' })
})

test('the process exits with the worker', async () => {
  const { id, outcome } = startJob('io.late', { ms: 60_000 })
  await until('the job runs', () => runningJobs.has(id))
  assert.ok(countIsolated() > 0)
  isolatedRunner.close()
  assert.notEqual((await outcome).kind, 'done')
  await until('the processes have exited, including idle ones', () => countIsolated() === 0)
})

/** Counts the isolated children of this process. */
function countIsolated(): number {
  return readdirSync('/proc').filter((pid) => {
    try {
      const parent = Number(/\) \S (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1])
      return parent === process.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('isolated-main')
    } catch {
      return false
    }
  }).length
}
