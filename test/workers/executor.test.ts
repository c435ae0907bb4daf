import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { ALONE_FROM_DEATHS, cancelJobs, MAX_CRASHES, SUSPECT_FROM_DEATHS } from '../../sql/jobs/jobs.ts'
import { listRunningJobs } from '../../sql/jobs/leases.ts'
import { createTaskFinder } from '../../tasks/index.ts'
import type { EndedAttempt } from '../../tasks/platform/tally.ts'
import { type AnyTask, defineTask } from '../../tasks/task.ts'
import { createExecutor } from '../../workers/attempts/executor.ts'
import { createLedger } from '../../workers/attempts/ledger.ts'
import type { Pools } from '../../workers/threads/pools.ts'
import type { AbortReason, Outcome } from '../../workers/threads/protocol.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp } from '../sql/ledger-help.ts'
import { until } from '../until.ts'
import { log } from './parts.ts'

/** Runs the executor with a real ledger, and threads that the test controls. */

const database = await createTestDatabase()
const { db } = database
const help = createLedgerHelp(database)

const quickTask = {
  pool: 'io',
  queue: 'test',
  payload: z.unknown(),
  result: z.unknown(),
  run: () => Promise.resolve(null),
} as const
const findTask = createTaskFinder([
  defineTask({ ...quickTask, name: 'test.task' }),
  defineTask({ ...quickTask, name: 'test.short', timeoutSeconds: 0.2 }),
  defineTask({ ...quickTask, name: 'test.stall', stallSeconds: 0.2 }),
  defineTask({ ...quickTask, name: 'test.interactive', maxPauseSeconds: 5 }),
] as unknown as AnyTask[])

interface Running {
  readonly isAlone: boolean
  readonly end: (outcome: Outcome) => void
  readonly aborts: AbortReason[]
  readonly begin: () => void
}

async function openExecutor() {
  const lease = await help.lease()
  const threads = new Map<string, Running>()
  const createRunner = (isAlone: boolean): Pick<Pools, 'run' | 'abort'> => ({
    run: (_queue, _pool, job, begin = () => {}) =>
      new Promise((end) => threads.set(`${job.id}/${job.attempt}`, { isAlone, end, begin, aborts: [] })),
    abort: (id, attempt, reason) => void threads.get(`${id}/${attempt}`)?.aborts.push(reason),
  })
  const ended: EndedAttempt[] = []
  const counted: string[] = []
  const ledger = createLedger({
    db,
    publisher: {
      notify: () => {},
      takeTurn: () => false,
      claimNotify: () => false,
      close: () => Promise.resolve(),
    },
    log,
    leaseId: () => lease,
    logFields: (id) => ({ jobId: id }),
    onSuperseded: (id, attempt) => executor.supersede(id, attempt),
  })
  const executor = createExecutor({
    ledger,
    log,
    findTask: findTask,
    tallies: {
      countAttempt: (attempt) => void ended.push(attempt),
      count: (what) => void counted.push(what),
    },
    pools: createRunner(false),
    isolatedRunner: createRunner(true),
  })
  const heartbeat = async () => executor.reconcile((await db.one(listRunningJobs(lease))).running)
  const thread = (id: string, attempt = 1) =>
    until(`${id}/${attempt} runs`, () => threads.get(`${id}/${attempt}`))
  /** Claims and runs a job; resolves when the attempt has ended. */
  const run = async (id: string): Promise<void> => {
    for (const job of (await ledger.claim(await help.deliveryOf(id), 1)).jobs) await executor.run(job)
  }
  /** Enqueues a job and passes it to a thread, without beginning it. */
  const pass = async (fields: Parameters<typeof buildJobSpec>[0] = {}) => {
    const job = buildJobSpec(fields)
    await help.enqueue(job)
    const ended = run(job.id)
    return { id: job.id, ended, thread: await thread(job.id) }
  }
  /** Enqueues a job and begins it on a thread. */
  const start: typeof pass = async (fields) => {
    const job = await pass(fields)
    job.thread.begin()
    return job
  }
  return { executor, ledger, lease, thread, heartbeat, run, pass, start, ended, counted }
}

/** Returns the ms between the end of a job's last attempt and its next one. */
async function readBackoff(id: string): Promise<number> {
  const [row] = await database.query(
    `select round(extract(epoch from run_at - created_at) * 1000)::int as ms from job_event_row
     join (select id, run_at from job) job on id = job_id where id = $1 order by seq desc limit 1`,
    [id],
  )
  return row!.ms as number
}

describe('the executor', () => {
  test('an attempt ends when its end is stored', async () => {
    const { executor, start, ended } = await openExecutor()
    const job = await start()
    assert.equal(executor.running, 1)
    job.thread.end({ kind: 'done', result: '7' })
    await job.ended
    assert.deepEqual(
      [await help.status(job.id), (await help.row(job.id)).result, executor.running],
      ['done', 7, 0],
    )
    const [{ queue, name, outcome, runSeconds, waitSeconds }] = ended as [EndedAttempt]
    assert.deepEqual([queue, name, outcome], ['test', buildJobSpec().name, 'done'])
    assert.ok(runSeconds > 0 && runSeconds < 60 && waitSeconds >= 0 && waitSeconds < 60)
  })

  test('a transient failure is retried with backoff, but not a permanent one or the last try', async () => {
    const { run, start, thread } = await openExecutor()
    const failed = { kind: 'failed', code: 'internal', detail: 'no', retry: 'later' } as const
    const job = await start({ max_tries: 3 })
    job.thread.end(failed)
    await job.ended
    const waits: number[] = []
    for (const attempt of [2, 3]) {
      assert.equal(await help.status(job.id), 'scheduled')
      waits.push(await readBackoff(job.id))
      await help.makeDue(job.id)
      const ended = run(job.id)
      ;(await thread(job.id, attempt)).end(failed)
      await ended
    }
    assert.ok(
      waits[0]! >= 750 && waits[0]! <= 1250 && waits[1]! >= 1500 && waits[1]! <= 2500,
      `waits ${waits}`,
    )
    const row = await help.row(job.id)
    assert.deepEqual(
      [row.status, row.tries, row.error_code, row.error_detail],
      ['failed', 3, 'internal', 'no'],
    )

    const other = await start({ max_tries: 3 })
    other.thread.end({ ...failed, code: 'document.missing', retry: 'never' })
    await other.ended
    assert.deepEqual(
      [await help.status(other.id), (await help.row(other.id)).error_code],
      ['failed', 'document.missing'],
    )
  })

  test('a failure with a requested pause gets it, within limits', async () => {
    const { start } = await openExecutor()
    for (const [retryAfter, min, max] of [
      [20, 20_000, 20_000],
      [0.01, 750, 1250],
      [1_000_000, 3_600_000, 3_600_000],
    ] as const) {
      const job = await start({ max_tries: 3 })
      job.thread.end({ kind: 'failed', code: 'internal', detail: 'no', retry: 'later', retryAfter })
      await job.ended
      const wait = await readBackoff(job.id)
      assert.ok(wait >= min && wait <= max, `${retryAfter} s: ${wait} ms`)
    }
  })

  test('a release with a delay gets it to the ms, and one without the delay of a first retry', async () => {
    const { start } = await openExecutor()
    for (const [retryAfter, ms] of [
      [0.25, 250],
      [undefined, 1000],
      [1_000_000, 3_600_000],
    ] as const) {
      const job = await start({ max_tries: 3 })
      job.thread.end({
        kind: 'failed',
        code: 'provider.rate_limited',
        detail: 'no',
        retry: 'free',
        retryAfter,
      })
      await job.ended
      assert.equal(await readBackoff(job.id), ms)
      assert.equal((await help.row(job.id)).tries, 0)
    }
  })

  test('an interactive job fails if the requested pause is too long for it', async () => {
    const { start } = await openExecutor()
    for (const [retryAfter, status] of [
      [5, 'scheduled'],
      [6, 'failed'],
    ] as const) {
      const job = await start({ name: 'test.interactive', max_tries: 3 })
      job.thread.end({ kind: 'failed', code: 'ai.failed', detail: 'no', retry: 'later', retryAfter })
      await job.ended
      assert.equal(await help.status(job.id), status)
    }
  })

  test('a job that runs or stalls too long is aborted, and retried', async () => {
    const { start } = await openExecutor()
    for (const name of ['test.short', 'test.stall']) {
      const job = await start({ name })
      await until(`${name} is aborted`, () => job.thread.aborts.length > 0)
      assert.deepEqual(job.thread.aborts, ['timeout'])
      job.thread.end({ kind: 'aborted', reason: 'timeout' })
      await job.ended
      assert.deepEqual([await help.status(job.id), (await help.row(job.id)).tries], ['scheduled', 1])
    }
  })

  test('a job that waits for a thread is neither timed out nor stalled', async (t) => {
    const { pass } = await openExecutor()
    let now = performance.now()
    const clock = t.mock.method(performance, 'now', () => now)
    for (const name of ['test.short', 'test.stall']) {
      const job = await pass({ name })
      now += 1000
      const looks = clock.mock.callCount()
      await until('the waiting job is checked', () => clock.mock.callCount() > looks)
      assert.deepEqual(job.thread.aborts, [])
      job.thread.begin()
      now += 1000
      await until('its time limit applies', () => job.thread.aborts.length > 0)
      job.thread.end({ kind: 'aborted', reason: 'timeout' })
      await job.ended
    }
  })

  test('the last timeout names its limit', async () => {
    const { start } = await openExecutor()
    const details: unknown[] = []
    for (const name of ['test.short', 'test.stall']) {
      const job = await start({ name, max_tries: 1 })
      await until(`${name} is aborted`, () => job.thread.aborts.length > 0)
      job.thread.end({ kind: 'aborted', reason: 'timeout' })
      await job.ended
      const row = await help.row(job.id)
      assert.equal(row.error_code, 'job.timeout')
      details.push(row.error_detail)
    }
    assert.deepEqual(details, [
      'The job exceeded its time limit of 0.2 s',
      'The job reported nothing for 0.2 s',
    ])
  })

  test('a job that reports progress does not stall', async (t) => {
    const { executor, start } = await openExecutor()
    let now = performance.now()
    const clock = t.mock.method(performance, 'now', () => now)
    const job = await start({ name: 'test.stall' })
    for (let i = 0; i < 3; i++) {
      now += 150
      executor.touch({ id: job.id, attempt: 1 })
      const looks = clock.mock.callCount()
      await until('the job is checked', () => clock.mock.callCount() > looks)
    }
    assert.deepEqual(job.thread.aborts, [])
    now += 150
    executor.touch({ id: job.id, attempt: 9 })
    now += 150
    await until('the job stalls', () => job.thread.aborts.length > 0)
    job.thread.end({ kind: 'done', result: 'null' })
    await job.ended
  })

  test('a cancel request reaches the thread with the heartbeat', async () => {
    const { start, heartbeat } = await openExecutor()
    const job = await start()
    await heartbeat()
    assert.deepEqual(job.thread.aborts, [])
    await db.any(cancelJobs([job.id]))
    await heartbeat()
    assert.deepEqual(job.thread.aborts, ['cancelled'])
    job.thread.end({ kind: 'aborted', reason: 'cancelled' })
    await job.ended
    assert.equal(await help.status(job.id), 'cancelled')
  })

  test('a rescued job that returns here runs, although its old attempt is not gone yet', async () => {
    const { executor, run, start, thread, heartbeat } = await openExecutor()
    const job = await start()
    await help.finish({ id: job.id, attempt: 1, outcome: 'interrupted' })
    const again = run(job.id)
    const second = await thread(job.id, 2)
    assert.deepEqual(job.thread.aborts, ['superseded'])
    job.thread.end({ kind: 'aborted', reason: 'superseded' })
    await job.ended
    assert.equal(executor.running, 1)
    await db.any(cancelJobs([job.id]))
    await heartbeat()
    assert.deepEqual(second.aborts, ['cancelled'], 'the new attempt is still known')
    second.end({ kind: 'done', result: '"second"' })
    await again
    assert.deepEqual(
      [await help.status(job.id), (await help.row(job.id)).result, executor.running],
      ['done', 'second', 0],
    )
  })

  test('a lost lease aborts all jobs without ending them', async () => {
    const { executor, start } = await openExecutor()
    const jobs = [await start(), await start()]
    executor.supersedeAll()
    for (const { id, thread, ended } of jobs) {
      assert.deepEqual(thread.aborts, ['superseded'])
      thread.end({ kind: 'aborted', reason: 'superseded' })
      await ended
      assert.equal(await help.status(id), 'running')
    }
  })

  test('a graceful stop releases running jobs without counting the try', async () => {
    const { executor, start } = await openExecutor()
    const job = await start()
    executor.releaseAll()
    assert.deepEqual(job.thread.aborts, ['stopping'])
    job.thread.end({ kind: 'aborted', reason: 'stopping' })
    await job.ended
    assert.deepEqual([await help.status(job.id), (await help.row(job.id)).tries], ['available', 0])
  })

  test('the second heartbeat releases a job whose claim was not answered', async () => {
    const { ledger, lease, heartbeat } = await openExecutor()
    const { id } = await help.running({}, lease)
    await heartbeat()
    await ledger.idle()
    assert.equal(await help.status(id), 'running')
    await heartbeat()
    await ledger.idle()
    assert.equal(await help.status(id), 'available')
  })

  test('jobs of a claim in progress are released only after its answer', async () => {
    const { ledger, lease, heartbeat } = await openExecutor()
    const { id } = await help.running({}, lease)
    const claims = { answered: 7, isUnderWay: true }
    Object.defineProperty(ledger, 'claims', { get: () => claims })
    const heartbeatAndCheck = async (status: string): Promise<void> => {
      await heartbeat()
      await ledger.idle()
      assert.equal(await help.status(id), status)
    }
    await heartbeatAndCheck('running')
    await heartbeatAndCheck('running')
    claims.answered++
    await heartbeatAndCheck('available')
  })

  test('a dead thread counts as a try', async () => {
    const { start } = await openExecutor()
    const job = await start({ max_tries: 1 })
    job.thread.end({ kind: 'crashed' })
    await job.ended
    const row = await help.row(job.id)
    assert.deepEqual(
      [row.status, row.error_code, row.error_detail],
      ['failed', 'job.crashed', 'The worker thread crashed while running the job'],
    )
  })

  test('a dead thread with several jobs counts as an interruption, not as a try', async () => {
    const { start } = await openExecutor()
    const job = await start({ max_tries: 1 })
    job.thread.end({ kind: 'crashed', host: 'shared' })
    await job.ended
    const row = await help.row(job.id)
    assert.deepEqual([row.status, row.tries, row.interruptions], ['scheduled', 0, 1])
  })

  test('a suspect runs in isolation, follows its signal, and is given up after enough crashes', async () => {
    const { run, start, thread, heartbeat } = await openExecutor()
    const [one, two] = [await start({ max_tries: 1 }), await start()]
    for (const job of [one, two])
      for (let attempt = 1; attempt <= SUSPECT_FROM_DEATHS; attempt++) {
        const running = await thread(job.id, attempt)
        assert.equal(running.isAlone, false)
        running.end({ kind: 'crashed', host: 'shared' })
        await until(
          'the job is redelivered',
          async () =>
            (await help.row(job.id)).attempt === attempt && (await help.status(job.id)) === 'scheduled',
        )
        await help.makeDue(job.id)
        void run(job.id)
      }
    const suspect = await thread(two.id, SUSPECT_FROM_DEATHS + 1)
    await db.any(cancelJobs([two.id]))
    await heartbeat()
    assert.deepEqual([suspect.isAlone, suspect.aborts], [true, ['cancelled']])
    suspect.end({ kind: 'aborted', reason: 'cancelled' })
    await until('the job is cancelled', async () => (await help.status(two.id)) === 'cancelled')

    // The death of a group raises the number, but is no proof.
    const shared = await thread(one.id, SUSPECT_FROM_DEATHS + 1)
    shared.end({ kind: 'crashed', host: 'group' })
    await until(
      'the death is stored',
      async () => (await help.row(one.id)).interruptions === SUSPECT_FROM_DEATHS + 1,
    )
    await help.makeDue(one.id)
    void run(one.id)
    for (let crashes = 1; crashes <= MAX_CRASHES; crashes++) {
      const attempt = SUSPECT_FROM_DEATHS + crashes + 1
      const running = await thread(one.id, attempt)
      assert.equal(running.isAlone, true)
      running.end({ kind: 'crashed', host: 'isolated' })
      await until(
        'the crash is stored',
        async () => (await help.row(one.id)).interruptions === ALONE_FROM_DEATHS + crashes,
      )
      await help.makeDue(one.id)
      if (crashes < MAX_CRASHES) void run(one.id)
    }
    const row = await help.row(one.id)
    assert.deepEqual(
      [row.status, row.error_code, row.error_detail],
      ['failed', 'job.crashed', 'The job was given up after 3 crashes of its isolated process'],
    )
  })
})

test('an attempt that a stop has cut off keeps no process alive', () => {
  const script = `import { createExecutor } from ${JSON.stringify(new URL('../../workers/attempts/executor.ts', import.meta.url))}
    const executor = createExecutor({ findTask: () => ({ queue: 'q', pool: 'io' }), pools: { run: () => new Promise(() => {}) } })
    void executor.run({ id: 'a', name: 'n', attempt: 1, interruptions: 0 })
    console.log(executor.running)`
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 })
  assert.deepEqual([status, stdout], [0, '1\n'], stderr)
})
