import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { after, describe, test } from 'node:test'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { uuidv7 } from '../../sql/ids.ts'
import { createChildPool } from '../../workers/children/pool.ts'
import { createPools, type Pools } from '../../workers/threads/pools.ts'
import type { Outcome } from '../../workers/threads/protocol.ts'
import { sharedDatabase } from '../sql/shared-database.ts'
import { until } from '../until.ts'
import { createSettings, log, TASKS_MODULE } from './parts.ts'

/** Tests a pool of one thread: waiting jobs run even if the thread dies. */

const { url } = await sharedDatabase()
const events: unknown[] = []
const pools = createPools({
  settings: createSettings(url, { WORKER_THREADS: '1' }),
  databaseUrl: url,
  children: createChildPool({ log }),
  log,
  killGraceMs: 200,
  taskModules: [TASKS_MODULE],
  onEvent: (event) => void events.push(event),
  onKill: () => onKill(),
})
let onKill = (): void => {}
after(() => pools.close())

function startJob(name: string, payload: unknown = {}, among = pools) {
  const id = uuidv7()
  const pool = name.startsWith('cpu') ? 'cpu' : name.startsWith('model') ? 'model' : 'io'
  const outcome = among.run(name.split('.')[0]!, pool, {
    id,
    attempt: 1,
    name,
    payload: JSON.stringify(payload),
    interruptions: 0,
    owner_id: null,
    request_id: null,
    trace_parent: null,
  })
  return { id, outcome }
}

const settleWithin = (outcome: Promise<Outcome>, ms: number): Promise<Outcome | 'nothing'> =>
  Promise.race([outcome, delay(ms, 'nothing' as const, { ref: false })])

const waitUntilBusy = (some: Pools) => until('a job has begun', () => some.busy > 0)

describe('a pool of one thread', () => {
  for (const name of ['cpu.exit', 'cpu.memory'] as const) {
    test(`jobs that wait behind ${name} run`, async () => {
      const dying = startJob(name)
      const behind = [startJob('cpu.echo', 1), startJob('cpu.echo', 2)]
      assert.deepEqual(await dying.outcome, { kind: 'crashed' })
      for (const [i, { outcome }] of behind.entries()) {
        assert.deepEqual(await settleWithin(outcome, 30_000), { kind: 'done', result: `${i + 1}` })
      }
    })
  }

  test('no job is blamed if several share a thread that dies', async () => {
    const among = createPools({
      settings: createSettings(url, { WORKER_THREADS: '2' }),
      databaseUrl: url,
      children: createChildPool({ log }),
      log,
      taskModules: [TASKS_MODULE],
      onEvent: () => {},
    })
    const run = (name: string, payload: unknown) =>
      among.run('children', 'children', {
        id: uuidv7(),
        attempt: 1,
        name,
        payload: JSON.stringify(payload),
        interruptions: 0,
        owner_id: null,
        request_id: null,
        trace_parent: null,
      })
    const sleeping = run('floating.sleep', { ms: 60_000 })
    assert.equal((await run('cpu.echo', 1)).kind, 'done')
    assert.deepEqual(await Promise.all([sleeping, run('cpu.exit', {})]), [
      { kind: 'crashed', host: 'shared' },
      { kind: 'crashed', host: 'shared' },
    ])
    assert.deepEqual(await run('cpu.exit', {}), { kind: 'crashed' })
    await among.close()
  })

  test('jobs run or are released if their thread is killed while it loads', async () => {
    const fresh = createPools({
      settings: createSettings(url, { WORKER_THREADS: '1' }),
      databaseUrl: url,
      children: createChildPool({ log }),
      log,
      killGraceMs: 200,
      taskModules: [TASKS_MODULE],
      onEvent: () => {},
    })
    const kill = (message: unknown): void => void (message as { worker: Worker }).worker.terminate()
    subscribe('worker_threads', kill)
    const jobs = [startJob('cpu.echo', 1, fresh), startJob('cpu.echo', 2, fresh)]
    await delay(0)
    unsubscribe('worker_threads', kill)
    for (const [i, { outcome }] of jobs.entries()) {
      const end = await settleWithin(outcome, 30_000)
      assert.ok(end !== 'nothing', 'it ends')
      const isReleased = end.kind === 'aborted' && end.reason === 'stopping'
      if (!isReleased) assert.deepEqual(end, { kind: 'done', result: `${i + 1}` })
    }
    await fresh.close()
  })

  test('jobs that wait behind a killed job run', async () => {
    const spinning = startJob('cpu.spin', { ms: 60_000 })
    const behind = [startJob('cpu.echo', 1), startJob('cpu.echo', 2)]
    await waitUntilBusy(pools)
    pools.abort(spinning.id, 1, 'cancelled')
    assert.deepEqual(await spinning.outcome, { kind: 'aborted', reason: 'cancelled' })
    for (const [i, { outcome }] of behind.entries()) {
      assert.deepEqual(await settleWithin(outcome, 30_000), { kind: 'done', result: `${i + 1}` })
    }
  })

  for (const name of ['io.deaf', 'io.spin'])
    test(`jobs passed to a thread between its kill and its exit are not reported as crashed: ${name}`, async () => {
      assert.equal((await startJob('io.echo', 0).outcome).kind, 'done')
      const killed = startJob(name, { ms: 60_000 })
      await waitUntilBusy(pools)
      const later: Promise<Outcome>[] = []
      onKill = () => {
        const more = () => later.push(startJob('io.echo', later.length).outcome)
        // Starts the first job immediately, because the thread may exit before the interval fires.
        more()
        const next = setInterval(more, 1)
        void killed.outcome.then(() => clearInterval(next))
      }
      pools.abort(killed.id, 1, 'cancelled')
      assert.deepEqual(await killed.outcome, { kind: 'aborted', reason: 'cancelled' })
      onKill = () => {}
      for (const outcome of await Promise.all(later)) assert.notEqual(outcome.kind, 'crashed')
      assert.ok(later.length > 0)
    })

  test('a finished job is reported as done even if another job then blocks its thread', async () => {
    assert.equal((await startJob('io.echo', 0).outcome).kind, 'done')
    const done = startJob('io.sleep', { ms: 200 })
    await nextTurn()
    const busy = startJob('io.later', { ms: 200 })
    await nextTurn()
    // Blocks the thread until both other jobs are due, so that they finish in the same turn of its event loop.
    const first = startJob('io.hold', { ms: 400 })
    for (const { outcome } of [first, done, busy]) assert.equal((await outcome).kind, 'done')
  })

  test('a job that is aborted while it waits does not run to its end', async () => {
    const spinning = startJob('cpu.hold', { ms: 1500 })
    const waiting = startJob('cpu.hold', { ms: 60_000 })
    await waitUntilBusy(pools)
    pools.abort(waiting.id, 1, 'cancelled')
    assert.deepEqual(await spinning.outcome, { kind: 'done', result: 'null' })
    assert.deepEqual(await settleWithin(waiting.outcome, 30_000), { kind: 'aborted', reason: 'cancelled' })
    assert.deepEqual(await startJob('cpu.echo', 3).outcome, { kind: 'done', result: '3' })
  })

  test('the thread of a model is not killed if a job ignores its abort signal', async () => {
    const first = await startJob('model.where', { ms: 0 }).outcome
    const spinning = startJob('model.where', { ms: 900 })
    await waitUntilBusy(pools)
    pools.abort(spinning.id, 1, 'cancelled')
    // The job runs for more than two grace periods, but no kill interrupts it.
    assert.deepEqual(await spinning.outcome, first)
    assert.deepEqual(await startJob('model.where', { ms: 0 }).outcome, first)
  })

  test('an abort of an unknown job does nothing', async () => {
    pools.abort(uuidv7(), 1, 'cancelled')
    const job = startJob('io.late', { ms: 200 })
    pools.abort(job.id, 2, 'cancelled')
    assert.deepEqual(await job.outcome, { kind: 'done', result: '{"aborted":false}' })
  })

  test('an unknown task fails, without affecting other jobs', async () => {
    const other = startJob('io.late', { ms: 300 })
    const unknown = await startJob('io.no-such-task').outcome
    assert.equal(unknown.kind, 'failed')
    assert.equal((await other.outcome).kind, 'done')
  })

  test('a fence rejects an attempt whose job is not in the ledger', async () => {
    assert.deepEqual(await startJob('io.fenced').outcome, { kind: 'aborted', reason: 'superseded' })
  })

  test('closing ends running jobs', async () => {
    const closing = createPools({
      settings: createSettings(url),
      databaseUrl: url,
      children: createChildPool({ log }),
      log,
      taskModules: [TASKS_MODULE],
      onEvent: () => {},
    })
    const job = closing.run('io', 'io', {
      id: uuidv7(),
      attempt: 1,
      name: 'io.deaf',
      payload: '{"ms":60000}',
      interruptions: 0,
      owner_id: null,
      request_id: null,
      trace_parent: null,
    })
    await waitUntilBusy(closing)
    await closing.close()
    assert.equal((await job).kind, 'crashed')
    assert.equal(closing.threads, 0)
    closing.breakConnections() // Must not throw without threads, as in an outage during shutdown.
  })
})
