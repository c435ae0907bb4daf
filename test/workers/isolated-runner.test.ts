import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { uuidv7 } from '../../sql/ids.ts'
import { ALONE_FROM_DEATHS, SUSPECT_FROM_DEATHS } from '../../sql/jobs/jobs.ts'
import {
  createIsolatedRunner,
  type IsolatedRunner,
  type IsolatedRunnerOptions,
} from '../../workers/processes/isolated-runner.ts'
import type { Outcome } from '../../workers/threads/protocol.ts'
import { listChildPids } from '../child-pids.ts'
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

/** Number of interruptions with which a suspect shares its process with up to seven others. */
const EIGHT = ALONE_FROM_DEATHS - 1

function startJob(
  name: string,
  payload: unknown = {},
  among = isolatedRunner,
  interruptions = ALONE_FROM_DEATHS,
) {
  const id = uuidv7()
  const pool = name.startsWith('cpu') ? 'cpu' : 'io'
  const job = {
    id,
    attempt: 3,
    name,
    payload: JSON.stringify(payload),
    interruptions,
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

const RELEASED: Outcome = { kind: 'released', delayMs: 2000 }

test('suspects share a process, the fewer the more deaths they have seen', async () => {
  const readPids = async (count: number, interruptions: number): Promise<unknown[]> => {
    const jobs = Array.from({ length: count }, () =>
      startJob('io.pid', { ms: 200 }, isolatedRunner, interruptions),
    )
    return (await Promise.all(jobs.map(({ outcome }) => outcome))).map((outcome) =>
      outcome.kind === 'done' ? parseResult(outcome).pid : outcome,
    )
  }
  const many = await readPids(40, SUSPECT_FROM_DEATHS)
  assert.deepEqual([new Set(many).size, many.includes(process.pid)], [1, false])
  const eights = await readPids(40, EIGHT)
  assert.deepEqual(eights.slice(32), Array(8).fill(RELEASED), 'no process has room')
  const sizes = [...Map.groupBy(eights.slice(0, 32), String).values()].map(({ length }) => length)
  assert.deepEqual(sizes, [8, 8, 8, 8])
  const alone = await readPids(5, ALONE_FROM_DEATHS)
  assert.deepEqual([new Set(alone.slice(0, 4)).size, alone[4]], [4, RELEASED])
})

test('the death of a group counts for each of its jobs, but proves none guilty', async () => {
  const bystanders = Array.from({ length: 3 }, () =>
    startJob('io.sleep', { ms: 60_000 }, isolatedRunner, EIGHT),
  )
  await until('the bystanders run', () => bystanders.every(({ id }) => runningJobs.has(id)))
  const alone = startJob('io.sleep', { ms: 300 })
  const culprit = startJob('io.kill', {}, isolatedRunner, EIGHT)
  for (const { outcome } of [...bystanders, culprit])
    assert.deepEqual(await outcome, { kind: 'crashed', host: 'group' })
  assert.equal((await alone.outcome).kind, 'done', 'it was in another process')
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

test('an abort reaches a job that runs or ignores its signal, whose death harms no other', async () => {
  const start = (name: string, ms: number) => startJob(name, { ms }, isolatedRunner, EIGHT)
  const [running, other] = [start('io.sleep', 60_000), start('io.sleep', 50)]
  isolatedRunner.abort(running.id, 2, 'cancelled')
  isolatedRunner.abort(running.id, 3, 'cancelled')
  assert.deepEqual(await running.outcome, { kind: 'aborted', reason: 'cancelled' })
  assert.equal((await other.outcome).kind, 'done')
  const deaf = start('io.deaf', 60_000)
  isolatedRunner.abort(deaf.id, 3, 'timeout')
  assert.deepEqual(await deaf.outcome, { kind: 'aborted', reason: 'timeout' })
})

test("a process that cannot start is not the job's crash", async () => {
  const broken = openRunner({ taskModules: ['file:///nowhere/tasks.ts'], settings: null as never })
  assert.deepEqual(await startJob('io.echo', 1, broken).outcome, { kind: 'released', delayMs: 1000 })
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
const countIsolated = (): number => listChildPids(process.pid, 'isolated-main').length
