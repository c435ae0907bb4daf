import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { cancelJobs } from '../../sql/jobs/jobs.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp } from '../sql/ledger-help.ts'
import { until } from '../until.ts'
import { startParts } from './parts.ts'

/** Tests whole attempts on real threads. */

const database = await createTestDatabase()
const ledgerHelp = createLedgerHelp(database)
const leaseId = await ledgerHelp.lease()
// In ms. The long period suffices on the busiest machine; the short one keeps the tests fast.
const [LONG_GRACE_MS, SHORT_GRACE_MS] = [60_000, 300]
const grace = { killGraceMs: SHORT_GRACE_MS }
const { executor, pools, ledger } = await startParts(database, leaseId, grace)

/** Claims a job through its delivery and runs it to the end. */
async function runAttempt(id: string): Promise<void> {
  const { jobs } = await ledger.claim(await ledgerHelp.deliveryOf(id), 1)
  for (const job of jobs) await executor.run(job)
}

/** Enqueues a job and starts its attempt; `ended` resolves with the job's row. */
async function startAttempt(
  name: string,
  payload: unknown = {},
  fields: Parameters<typeof buildJobSpec>[0] = {},
) {
  const job = buildJobSpec({ name, payload, queue: name.split('.')[0]!, ...fields })
  await ledgerHelp.enqueue(job)
  const ended = runAttempt(job.id).then(() => ledgerHelp.row(job.id))
  return { id: job.id, ended }
}

const waitUntilRunning = (id: string) =>
  until(`${id} runs`, async () => (await ledgerHelp.status(id)) === 'running')
const runJob = async (...args: Parameters<typeof startAttempt>) => (await startAttempt(...args)).ended

async function cancelAttempt(id: string): Promise<void> {
  await database.db.any(cancelJobs([id]))
  const [row] = await database.query(
    `select coalesce(json_agg(json_build_object('id', id, 'attempt', attempt, 'cancel', cancel_requested_at is not null)), '[]') as held
     from job where status = 'running' and lease_id = $1`,
    [leaseId],
  )
  executor.reconcile(row!.held as never)
}

/** Asserts that the pool still runs jobs. */
async function assertPoolWorks(queue = 'io'): Promise<void> {
  const rows = await Promise.all(Array.from({ length: 5 }, (_, i) => runJob(`${queue}.echo`, { i })))
  assert.deepEqual(
    rows.map((row) => row.result),
    rows.map((_, i) => ({ i })),
  )
}

describe('outcomes of attempts', () => {
  test('stores the result', async () => {
    const row = await runJob('io.echo', { a: [1, null, 'x'] })
    assert.deepEqual([row.status, row.result], ['done', { a: [1, null, 'x'] }])
  })

  test('retries a transient failure and fails on a permanent one', async () => {
    const curable = await runJob('io.fail', { code: 'database.busy' })
    assert.deepEqual([curable.status, curable.tries], ['scheduled', 1])
    const final = await runJob('io.fail', { code: 'database.busy' }, { max_tries: 1 })
    assert.deepEqual(
      [final.status, final.error_code, final.error_detail],
      ['failed', 'database.busy', 'The service is overloaded; try again shortly'],
    )
    const incurable = await runJob('io.fail', { code: 'document.missing' })
    assert.deepEqual([incurable.status, incurable.error_code], ['failed', 'document.missing'])
  })

  test('a shortage of the machine, a pause of a provider and an outage cost no try', async () => {
    for (const [name, code] of [
      ['io.shortage', 'service.short'],
      ['io.fail', 'provider.paused'],
      ['io.fail', 'database.down'],
    ] as const) {
      const row = await runJob(name, { code }, { max_tries: 1 })
      assert.deepEqual([row.status, row.tries, row.error_detail], ['scheduled', 0, null])
      const [event] = (await ledgerHelp.events(row.id)).slice(-1)
      assert.equal(event!.data.status, 'queued')
    }
  })

  test('a thread that could not load a module is replaced, and neither job of it loses a try', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'modules-'))
    t.after(() => rm(folder, { recursive: true }))
    const path = join(folder, 'whole.mjs')
    await writeFile(path, `export { value } from './part.mjs'`)
    const bystander = await startAttempt('load.wait')
    await waitUntilRunning(bystander.id)
    const job = await runJob('load.module', { path }, { max_tries: 1 })
    assert.deepEqual([job.status, job.tries], ['scheduled', 0])
    const released = await bystander.ended
    assert.deepEqual([released.status, released.tries], ['available', 0])
    await writeFile(join(folder, 'part.mjs'), 'export const value = 7')
    await ledgerHelp.makeDue(job.id)
    await runAttempt(job.id)
    const { status, result } = await ledgerHelp.row(job.id)
    assert.deepEqual([status, (result as { value: number }).value], ['done', 7])
  })

  test('retries an unexpected error and hides its text from clients', async () => {
    assert.equal((await runJob('io.throw')).status, 'scheduled')
    const last = await runJob('io.throw', {}, { max_tries: 1 })
    assert.deepEqual(
      [last.status, last.error_code, last.error_detail],
      ['failed', 'internal', `Internal error (job ${last.id})`],
    )
  })

  test('fails without a retry if the payload or the result has the wrong shape', async () => {
    assert.equal((await runJob('io.strict', { n: 1 })).status, 'done')
    for (const [name, payload] of [
      ['io.strict', { n: 'one' }],
      ['io.strict', { n: 1, more: 1 }],
      ['io.wrong', {}],
    ] as const) {
      const row = await runJob(name, payload)
      assert.deepEqual([row.status, row.error_code, row.tries], ['failed', 'internal', 1])
    }
  })

  test('stores all progress before the outcome, in order', async () => {
    const row = await runJob('io.steps', { steps: 95 })
    assert.deepEqual([row.status, row.label, row.progress_current, row.result], ['done', 'Step 95', 95, 95])
    const events = await ledgerHelp.events(row.id)
    assert.deepEqual(
      events.filter((e) => e.kind === 'note').map((e) => e.data.step),
      Array.from({ length: 95 }, (_, i) => i + 1),
    )
    await ledgerHelp.assertSound(row.id)
  })

  test('stores a huge result', async () => {
    const row = await runJob('io.huge', { bytes: 20_000_000 })
    assert.deepEqual([row.status, (row.result as string).length], ['done', 20_000_000])
  })

  test('fails only the job whose result cannot be stored or cloned', async () => {
    const bystander = await startAttempt('io.late', { ms: 400 })
    for (const name of ['io.poison', 'io.function']) {
      const row = await runJob(name)
      assert.deepEqual([name, row.status, row.error_code], [name, 'failed', 'internal'])
    }
    assert.deepEqual([(await bystander.ended).status, (await bystander.ended).attempt], ['done', 1])
  })

  test('completes a job although one of its events cannot be cloned', async () => {
    const row = await runJob('io.emit-function')
    assert.deepEqual([row.status, row.result], ['done', 'done'])
    assert.deepEqual(
      (await ledgerHelp.events(row.id)).filter((e) => e.kind === 'note').map((e) => e.data),
      [{ ok: true }],
    )
  })

  test('runs a thousand jobs concurrently', async () => {
    const jobs = Array.from({ length: 1000 }, (_, n) =>
      buildJobSpec({ name: 'io.echo', payload: { n }, queue: 'io' }),
    )
    await ledgerHelp.enqueue(...jobs)
    await Promise.all(jobs.map((job) => runAttempt(job.id)))
    const [counts] = await database.query(
      `select count(*)::int as n from job where id = any($1) and status = 'done' and result = payload and attempt = 1`,
      [jobs.map((job) => job.id)],
    )
    assert.equal(counts!.n, 1000)
  })
})

/**
 * Extends the grace period for a test whose task obeys its signal. If the task ignored the signal, the test would time
 * out.
 */
function extendGrace(t: { after(work: () => void): void }): void {
  grace.killGraceMs = LONG_GRACE_MS
  t.after(() => {
    grace.killGraceMs = SHORT_GRACE_MS
  })
}

describe('aborted attempts', () => {
  test('ends a cancelled task that obeys its signal and keeps the thread', async (t) => {
    extendGrace(t)
    const other = await startAttempt('io.deaf', { ms: 700 })
    const job = await startAttempt('io.sleep', { ms: 10 * LONG_GRACE_MS })
    await waitUntilRunning(job.id)
    const since = Date.now()
    await cancelAttempt(job.id)
    assert.equal((await job.ended).status, 'cancelled')
    assert.ok(Date.now() - since < LONG_GRACE_MS)
    assert.deepEqual([(await other.ended).status, (await other.ended).attempt], ['done', 1])
  })

  test('keeps the result of a task that completes after its cancel request', async (t) => {
    extendGrace(t)
    const job = await startAttempt('io.aborted')
    await waitUntilRunning(job.id)
    await cancelAttempt(job.id)
    assert.deepEqual([(await job.ended).status, (await job.ended).result], ['done', { aborted: true }])
  })

  test('kills the thread of a task that ignores its signal and reruns bystanders without counting a try', async () => {
    const bystanders = await Promise.all(
      Array.from({ length: 12 }, () => startAttempt('other.sleep', { ms: 60_000 })),
    )
    const job = await startAttempt('other.deaf', { ms: 60_000 })
    for (const { id } of [job, ...bystanders]) await waitUntilRunning(id)
    await delay(100)
    const since = Date.now()
    await cancelAttempt(job.id)
    assert.equal((await job.ended).status, 'cancelled')
    assert.ok(Date.now() - since < 30_000, 'by its own end')
    await assertPoolWorks('other')
    const released: unknown[] = []
    for (const { id } of bystanders) {
      const row = await ledgerHelp.row(id)
      if (row.status === 'available') released.push([row.tries, row.interruptions])
      else assert.equal(row.status, 'running', 'it was in the other thread')
    }
    assert.ok(released.length > 0)
    assert.deepEqual(
      released,
      released.map(() => [0, 0]),
    )
    for (const { id } of bystanders) await cancelAttempt(id)
    await Promise.all(bystanders.map(({ ended }) => ended))
  })

  for (const [pool, name] of [
    ['io', 'other.spin'],
    ['cpu', 'cpu.spin'],
  ] as const) {
    test(`kills a ${pool} thread whose event loop is blocked`, async () => {
      const job = await startAttempt(name, { ms: 60_000 })
      await waitUntilRunning(job.id)
      await until('a thread has the job', () => pools.busy > 0)
      await cancelAttempt(job.id)
      assert.equal((await job.ended).status, 'cancelled')
      await assertPoolWorks(name.split('.')[0])
    })
  }

  test('treats jobs passed to a blocked thread as bystanders', async () => {
    const holding = [
      await startAttempt('other.hold', { ms: 60_000 }),
      await startAttempt('other.hold', { ms: 60_000 }),
    ]
    for (const { id } of holding) await waitUntilRunning(id)
    await delay(200)
    const behind = await Promise.all(Array.from({ length: 6 }, () => startAttempt('other.echo', {})))
    await delay(100)
    for (const { id } of holding) await cancelAttempt(id)
    for (const job of [...holding, ...behind]) await job.ended
    for (const { id } of behind) {
      const row = await ledgerHelp.row(id)
      if (row.status !== 'done')
        assert.deepEqual([row.status, row.tries, row.run_at <= new Date()], ['available', 0, true])
    }
    await assertPoolWorks('other')
  })

  test('enforces the time limit and the stall limit of an attempt', async (t) => {
    const deaf = await startAttempt('io.short', { ms: 60_000 }, { max_tries: 1 })
    assert.deepEqual([(await deaf.ended).status, (await deaf.ended).error_code], ['failed', 'job.timeout'])
    const silent = await runJob('io.silent', { ms: 60_000 })
    assert.deepEqual([silent.status, silent.tries], ['scheduled', 1])
    // The mocked clock advances one second per report and otherwise stands still.
    let now = performance.now()
    t.mock.method(performance, 'now', () => now)
    const touch = executor.touch.bind(executor)
    t.mock.method(executor, 'touch', (event: Parameters<typeof touch>[0]) => {
      touch(event)
      now += 1000
    })
    assert.equal((await runJob('io.talks')).status, 'done')
    t.mock.restoreAll()
    await assertPoolWorks()
  })
})

describe('dead threads', () => {
  for (const [name, queue] of [
    ['other.exit', 'other'],
    ['cpu.exit', 'cpu'],
  ] as const) {
    test(`${name}: counts a try and keeps the pool working`, async () => {
      const row = await runJob(name)
      assert.deepEqual([row.status, row.tries], ['scheduled', 1])
      const last = await runJob(name, {}, { max_tries: 1 })
      assert.deepEqual([last.status, last.error_code], ['failed', 'job.crashed'])
      await assertPoolWorks(queue)
    })
  }

  test('fails a job with an unhandled rejection', async () => {
    const { id, ended } = await startAttempt('floating.rejection', {}, { max_tries: 1 })
    await ended
    // While the last test's job is in the thread, the crash proves nothing, and the job runs again.
    while ((await ledgerHelp.status(id)) === 'available') await runAttempt(id)
    const row = await ledgerHelp.row(id)
    assert.deepEqual([row.status, row.error_code], ['failed', 'job.crashed'])
  })

  test('fails a cpu job that exhausts memory and runs the jobs behind it', async () => {
    const eater = await startAttempt('cpu.memory', {}, { max_tries: 1 })
    const behind = await Promise.all(Array.from({ length: 4 }, (_, i) => startAttempt('cpu.echo', { i })))
    assert.deepEqual([(await eater.ended).status, (await eater.ended).error_code], ['failed', 'job.crashed'])
    for (const job of behind) assert.equal((await job.ended).status, 'done')
    await assertPoolWorks('cpu')
  })

  test('leaves no attempt behind', async () => {
    await until('all attempts have finished', () => executor.running === 0)
    await ledger.idle()
    assert.ok(pools.threads > 0)
  })
})
