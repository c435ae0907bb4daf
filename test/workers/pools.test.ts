import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { cancelJob } from '../../sql/jobs.ts'
import { testDatabase } from '../database.ts'
import { jobSpec, ledgerOf } from '../sql/ledger-help.ts'
import { until } from '../until.ts'
import { startParts } from './parts.ts'

/** Whole attempts on real threads. */

const base = await testDatabase()
const help = ledgerOf(base)
const lease = await help.lease()
// One grace period is long enough for any busy machine; the other is as short as possible.
const [PATIENT, SHORT] = [60_000, 300]
const grace = { killGraceMs: SHORT }
const { executor, pools, ledger } = await startParts(base, lease, grace)

/** Claims the jobs of the job's delivery and runs them to their end. */
async function runAttempt(id: string): Promise<void> {
  for (const job of await ledger.claim(await help.deliveryOf(id), 1)) await executor.run(job)
}

/** Enqueues and runs a job; `ended` resolves with its row. */
async function start(name: string, payload: unknown = {}, fields: Parameters<typeof jobSpec>[0] = {}) {
  const job = jobSpec({ name, payload, queue: name.split('.')[0]!, ...fields })
  await help.enqueue(job)
  const ended = runAttempt(job.id).then(() => help.row(job.id))
  return { id: job.id, ended }
}

const isRunning = (id: string) => until(`${id} runs`, async () => (await help.status(id)) === 'running')
const run = async (...args: Parameters<typeof start>) => (await start(...args)).ended

async function cancel(id: string): Promise<void> {
  await base.db.one(cancelJob(id))
  const [row] = await base.query(
    `select coalesce(json_agg(json_build_object('id', id, 'attempt', attempt, 'cancel', cancel_requested_at is not null)), '[]') as held
     from job where status = 'running' and lease_id = $1`,
    [lease],
  )
  executor.reconcile(row!.held as never)
}

/** Asserts that the pool works as it did before. */
async function assertAlive(queue = 'io'): Promise<void> {
  const rows = await Promise.all(Array.from({ length: 5 }, (_, i) => run(`${queue}.echo`, { i })))
  assert.deepEqual(
    rows.map((row) => row.result),
    rows.map((_, i) => ({ i })),
  )
}

describe('how attempts end', () => {
  test('with a result', async () => {
    const row = await run('io.echo', { a: [1, null, 'x'] })
    assert.deepEqual([row.status, row.result], ['done', { a: [1, null, 'x'] }])
  })

  test('with a failure, curable or not', async () => {
    const curable = await run('io.fail', { code: 'database.busy' })
    assert.deepEqual([curable.status, curable.tries], ['queued', 1])
    const final = await run('io.fail', { code: 'database.busy' }, { max_tries: 1 })
    assert.deepEqual(
      [final.status, final.error_code, final.error_detail],
      ['failed', 'database.busy', 'The service is overloaded; try again shortly'],
    )
    const incurable = await run('io.fail', { code: 'document.missing' })
    assert.deepEqual([incurable.status, incurable.error_code], ['failed', 'document.missing'])
  })

  test('with an error that nobody expected: tried again, and its text kept from clients', async () => {
    assert.equal((await run('io.throw')).status, 'queued')
    const last = await run('io.throw', {}, { max_tries: 1 })
    assert.deepEqual(
      [last.status, last.error_code, last.error_detail],
      ['failed', 'internal', `Internal error (job ${last.id})`],
    )
  })

  test('at once, when payload or result are not of the shape they are declared to have', async () => {
    assert.equal((await run('io.strict', { n: 1 })).status, 'done')
    for (const [name, payload] of [
      ['io.strict', { n: 'one' }],
      ['io.strict', { n: 1, more: 1 }],
      ['io.wrong', {}],
    ] as const) {
      const row = await run(name, payload)
      assert.deepEqual([row.status, row.error_code, row.tries], ['failed', 'internal', 1])
    }
  })

  test('with all of its progress before the end, in order', async () => {
    const row = await run('io.steps', { steps: 95 })
    assert.deepEqual([row.status, row.label, row.progress_current, row.result], ['done', 'Step 95', 95, 95])
    const events = await help.events(row.id)
    assert.deepEqual(
      events.filter((e) => e.kind === 'note').map((e) => e.data.step),
      Array.from({ length: 95 }, (_, i) => i + 1),
    )
    await help.assertSound(row.id)
  })

  test('with a huge result', async () => {
    const row = await run('io.huge', { bytes: 20_000_000 })
    assert.deepEqual([row.status, (row.result as string).length], ['done', 20_000_000])
  })

  test('with a result that can not be stored, or not even leave the thread: that job alone fails', async () => {
    const bystander = await start('io.late', { ms: 400 })
    for (const name of ['io.poison', 'io.function']) {
      const row = await run(name)
      assert.deepEqual([name, row.status, row.error_code], [name, 'failed', 'internal'])
    }
    assert.deepEqual([(await bystander.ended).status, (await bystander.ended).attempt], ['done', 1])
  })

  test('as it should, when an event can not leave the thread', async () => {
    const row = await run('io.emit-function')
    assert.deepEqual([row.status, row.result], ['done', 'done'])
    assert.deepEqual(
      (await help.events(row.id)).filter((e) => e.kind === 'note').map((e) => e.data),
      [{ ok: true }],
    )
  })

  test('a thousand at once', async () => {
    const jobs = Array.from({ length: 1000 }, (_, n) =>
      jobSpec({ name: 'io.echo', payload: { n }, queue: 'io' }),
    )
    await help.enqueue(...jobs)
    await Promise.all(jobs.map((job) => runAttempt(job.id)))
    const [counts] = await base.query(
      `select count(*)::int as n from job where id = any($1) and status = 'done' and result = payload and attempt = 1`,
      [jobs.map((job) => job.id)],
    )
    assert.equal(counts!.n, 1000)
  })
})

/** For tasks that obey their signal: with a long grace period, they pass in time only if no thread is killed. */
function extendGrace(t: { after(work: () => void): void }): void {
  grace.killGraceMs = PATIENT
  t.after(() => {
    grace.killGraceMs = SHORT
  })
}

describe('attempts that are cut short', () => {
  test('a cancelled task that follows its signal ends at once, and its thread lives on', async (t) => {
    extendGrace(t)
    const other = await start('io.deaf', { ms: 700 })
    const job = await start('io.sleep', { ms: 10 * PATIENT })
    await isRunning(job.id)
    const since = Date.now()
    await cancel(job.id)
    assert.equal((await job.ended).status, 'cancelled')
    assert.ok(Date.now() - since < PATIENT)
    assert.deepEqual([(await other.ended).status, (await other.ended).attempt], ['done', 1])
  })

  test('a task that ends by itself after its cancel request is as done as it says', async (t) => {
    extendGrace(t)
    const job = await start('io.aborted')
    await isRunning(job.id)
    await cancel(job.id)
    assert.deepEqual([(await job.ended).status, (await job.ended).result], ['done', { aborted: true }])
  })

  test('one that ignores its signal dies with its thread; bystanders run again, uncounted', async () => {
    const bystanders = await Promise.all(
      Array.from({ length: 12 }, () => start('other.sleep', { ms: 60_000 })),
    )
    const job = await start('other.deaf', { ms: 60_000 })
    for (const { id } of [job, ...bystanders]) await isRunning(id)
    await delay(100)
    const since = Date.now()
    await cancel(job.id)
    assert.equal((await job.ended).status, 'cancelled')
    assert.ok(Date.now() - since < 30_000, 'by its own end')
    await assertAlive('other')
    const released: unknown[] = []
    for (const { id } of bystanders) {
      const row = await help.row(id)
      if (row.status === 'queued') released.push([row.tries, row.interruptions])
      else assert.equal(row.status, 'running', 'it was in the other thread')
    }
    assert.ok(released.length > 0)
    assert.deepEqual(
      released,
      released.map(() => [0, 0]),
    )
    for (const { id } of bystanders) await cancel(id)
    await Promise.all(bystanders.map(({ ended }) => ended))
  })

  for (const [pool, name] of [
    ['io', 'other.spin'],
    ['cpu', 'cpu.spin'],
  ] as const) {
    test(`one that never lets its ${pool} thread come up for air dies with it`, async () => {
      const job = await start(name, { ms: 60_000 })
      await isRunning(job.id)
      await until('a thread has it', () => pools.busy > 0)
      await cancel(job.id)
      assert.equal((await job.ended).status, 'cancelled')
      await assertAlive(name.split('.')[0])
    })
  }

  test('who was handed to a thread that never came up for air is a bystander, too', async () => {
    const holding = [await start('other.hold', { ms: 60_000 }), await start('other.hold', { ms: 60_000 })]
    for (const { id } of holding) await isRunning(id)
    await delay(200)
    const behind = await Promise.all(Array.from({ length: 6 }, () => start('other.echo', {})))
    await delay(100)
    for (const { id } of holding) await cancel(id)
    for (const job of [...holding, ...behind]) await job.ended
    for (const { id } of behind) {
      const row = await help.row(id)
      if (row.status !== 'done')
        assert.deepEqual([row.status, row.tries, row.run_at <= new Date()], ['queued', 0, true])
    }
    await assertAlive('other')
  })

  test('the time-out and the silence of an attempt', async (t) => {
    const deaf = await start('io.short', { ms: 60_000 }, { max_tries: 1 })
    assert.deepEqual([(await deaf.ended).status, (await deaf.ended).error_code], ['failed', 'job.timeout'])
    const silent = await run('io.silent', { ms: 60_000 })
    assert.deepEqual([silent.status, silent.tries], ['queued', 1])
    // The clock that limits use advances one second with each report, and not otherwise.
    let now = performance.now()
    t.mock.method(performance, 'now', () => now)
    const touch = executor.touch.bind(executor)
    t.mock.method(executor, 'touch', (event: Parameters<typeof touch>[0]) => {
      touch(event)
      now += 1000
    })
    assert.equal((await run('io.talks')).status, 'done')
    t.mock.restoreAll()
    await assertAlive()
  })
})

describe('threads that die', () => {
  for (const [name, queue] of [
    ['other.exit', 'other'],
    ['cpu.exit', 'cpu'],
  ] as const) {
    test(`${name}: counted as a try, and the pool lives on`, async () => {
      const row = await run(name)
      assert.deepEqual([row.status, row.tries], ['queued', 1])
      const last = await run(name, {}, { max_tries: 1 })
      assert.deepEqual([last.status, last.error_code], ['failed', 'job.crashed'])
      await assertAlive(queue)
    })
  }

  test('a promise that nobody waits for', async () => {
    const row = await run('floating.rejection', {}, { max_tries: 1 })
    assert.deepEqual([row.status, row.error_code], ['failed', 'job.crashed'])
  })

  test('a cpu thread that runs out of memory, and jobs behind it', async () => {
    const eater = await start('cpu.memory', {}, { max_tries: 1 })
    const behind = await Promise.all(Array.from({ length: 4 }, (_, i) => start('cpu.echo', { i })))
    assert.deepEqual([(await eater.ended).status, (await eater.ended).error_code], ['failed', 'job.crashed'])
    for (const job of behind) assert.equal((await job.ended).status, 'done')
    await assertAlive('cpu')
  })

  test('nothing is left behind', async () => {
    await until('all attempts have ended', () => executor.running === 0)
    await ledger.idle()
    assert.ok(pools.threads > 0)
  })
})
