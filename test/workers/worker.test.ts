import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { noRows, sql } from '../../sql/db.ts'
import { cancelJobs, rescueRunningJobs } from '../../sql/jobs/jobs.ts'
import { createTaskFinder, loadTasks } from '../../tasks/index.ts'
import { type EnqueueOptions, enqueueMany, type TaskDefinition } from '../../tasks/task.ts'
import { createTestDatabase, waitForLock } from '../database.ts'
import { createJobSettings } from '../job-settings.ts'
import { createLedgerHelp, TERMINAL_STATUSES } from '../sql/ledger-help.ts'
import { until } from '../until.ts'
import { startTestWorker, TASKS_MODULE } from './parts.ts'

/** Tests whole workers: queue, lease, ledger and threads. */

const database = await createTestDatabase()
const { db, query, url } = database
const ledgerHelp = createLedgerHelp(database)
const findTask = createTaskFinder(await loadTasks([TASKS_MODULE]))
// Runs the jobs of all tests that start no worker of their own.
await startTestWorker(url, 'flaky,io,cpu', { rescueMs: 500 })

async function addJobs(
  name: string,
  payloads: readonly unknown[],
  options: Partial<EnqueueOptions> = {},
): Promise<string[]> {
  const task = findTask(name) as unknown as TaskDefinition<unknown, unknown>
  const refs = await db.transaction((tx) =>
    enqueueMany(tx, task, payloads, { ownerId: null, settings: createJobSettings(3), ...options }),
  )
  return refs.map((ref) => ref.jobId)
}

const waitForEnd = (ids: readonly string[], deadlineMs = 30_000) =>
  until(
    'all jobs have finished',
    async () => {
      const [row] = await query(
        'select count(*)::int as left from job where id = any($1) and not status = any($2)',
        [ids, TERMINAL_STATUSES],
      )
      return row!.left === 0
    },
    deadlineMs,
  )

async function assertAllDoneOnce(ids: readonly string[]): Promise<void> {
  const rows = await query('select status, count(*)::int as n from job where id = any($1) group by 1', [ids])
  assert.deepEqual(rows, [{ status: 'done', n: ids.length }])
  for (const id of ids) await ledgerHelp.assertSound(id)
}

const createNumberPayloads = (count: number): { n: number }[] =>
  Array.from({ length: count }, (_, n) => ({ n }))

describe('a worker', { concurrency: false }, () => {
  test('retries with growing delays and records all attempts', async () => {
    const [id] = await addJobs('flaky.twice', [{}])
    await waitForEnd([id!])
    const row = await ledgerHelp.row(id!)
    assert.deepEqual(
      [row.status, row.result, row.attempt, row.tries, row.error_code],
      ['done', 3, 3, 3, null],
    )
    await ledgerHelp.assertSound(id!)
    const { attempts } = await ledgerHelp.details(id!)
    const worker = `${hostname()}/${process.pid}`
    const error = { code: 'database.busy', detail: 'The service is overloaded; try again shortly' }
    assert.deepEqual(
      attempts.map(({ attempt, worker, outcome, error }) => ({ attempt, worker, outcome, error })),
      [
        { attempt: 1, worker, outcome: 'retry', error },
        { attempt: 2, worker, outcome: 'retry', error },
        { attempt: 3, worker, outcome: 'done', error: null },
      ],
    )
    for (const [i, { claimed_at, ended_at, waited_seconds, ran_seconds }] of attempts.entries()) {
      assert.ok(waited_seconds >= 0 && ran_seconds! > 0 && ended_at! > claimed_at)
      const pause = i === 0 ? 0 : Date.parse(claimed_at) - Date.parse(attempts[i - 1]!.ended_at!)
      // The backoff before a retry does not count as waiting: the job was not due.
      assert.ok(i === 0 || (pause > 300 * i && waited_seconds * 1000 < pause - 300 * i), `${pause} ms`)
    }
  })

  test('gives up after the last try and stores the error', async () => {
    const [id] = await addJobs('flaky.always', [{}], { settings: createJobSettings(9) })
    await waitForEnd([id!])
    const row = await ledgerHelp.row(id!)
    assert.deepEqual(
      [row.status, row.tries, row.error_code, row.error_detail],
      ['failed', 2, 'database.busy', 'The service is overloaded; try again shortly'],
    )
    await ledgerHelp.assertSound(id!)
  })

  test('does not start a delayed job early', async () => {
    const [id] = await addJobs('io.echo', [1], { delayMs: 1500 })
    await waitForEnd([id!])
    const [row] = await query(
      `select started_at - created_at > interval '1.4 s' as late from job where id = $1`,
      [id],
    )
    assert.equal(row!.late, true)
  })

  test('loses no job when all its connections break repeatedly', async () => {
    const ids: string[] = []
    const waves = 6
    for (let wave = 0; wave < waves; wave++) {
      ids.push(
        ...(await addJobs(
          'io.late',
          Array.from({ length: 30 }, (_, i) => ({ ms: i * 5 })),
        )),
      )
      await delay(120)
      await query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
        and application_name like 'millrace-%'`)
    }
    await waitForEnd(ids, 40_000)
    await assertAllDoneOnce(ids)
  })
})

test('a worker survives deliveries that cannot be completed, in any queue', async () => {
  await query('create sequence completion')
  await query(`create function graphile_worker.fail_twice() returns trigger language plpgsql as $$ begin
      if nextval('completion') <= 2 then raise 'not now'; end if;
      return old;
    end $$`)
  await query(`create trigger fail_twice before delete on graphile_worker._private_jobs for each row
    when (old.locked_by is not null) execute function graphile_worker.fail_twice()`)
  const ids = [...(await addJobs('cpu.echo', [1])), ...(await addJobs('io.echo', [1]))]
  const hasFailed = async () => Number((await query('select last_value from completion'))[0]!.last_value) > 2
  await until('completions have failed', hasFailed, 30_000)
  ids.push(...(await addJobs('cpu.echo', [2])), ...(await addJobs('io.echo', [2])))
  await waitForEnd(ids)
  await assertAllDoneOnce(ids)
  await query('drop trigger fail_twice on graphile_worker._private_jobs')
})

describe('a late worker', { concurrency: false }, () => {
  test('loses its jobs without counting an interruption', async () => {
    const { worker } = await startTestWorker(url, 'late')
    const [id] = await addJobs('late.sleep', [{ ms: 60_000 }])
    await until('the job is running', async () => (await ledgerHelp.status(id!)) === 'running')
    const lost = worker.lease.id
    // Use one transaction: a renewal between its statements would keep the lease. This renewal waits for the
    // transaction, then finds the lease gone.
    await db.transaction(async (tx) => {
      await tx.run(
        sql.type(noRows)`update worker_lease set expires_at = '-infinity' where id = ${lost}::uuid`,
      )
      worker.lease.renew()
      await waitForLock(query)
      assert.deepEqual(await tx.any(rescueRunningJobs(null)), [{ id }])
    })
    await until('the worker has a new lease', () => worker.lease.id !== lost)
    await until('the job runs again', async () => {
      const { status, attempt, interruptions } = await ledgerHelp.row(id!)
      return status === 'running' && attempt === 2 && interruptions === 0
    })
    await db.any(cancelJobs([id!]))
    await waitForEnd([id!])
  })
})

describe('a worker with cpu jobs', { concurrency: false }, () => {
  test('keeps a thread for an owner without one while another owner floods the queue', async () => {
    const [flooder, other] = (
      await query(
        `insert into account (email, password_hash) values ('flood@example.com', 'x'), ('other@example.com', 'x') returning id`,
      )
    ).map(({ id }) => id as number)
    const flood = await addJobs('cpu.hold', Array(6).fill({ ms: 60_000 }), { ownerId: flooder! })
    const running = async () =>
      (await Promise.all(flood.map(ledgerHelp.status))).filter((status) => status === 'running')
    await until('the flood has all slots', async () => (await running()).length >= 2)
    const [id] = await addJobs('cpu.echo', [1], { ownerId: other! })
    await waitForEnd([id!])
    assert.equal((await running()).length, 2)
    for (const one of flood) await db.any(cancelJobs([one]))
    await waitForEnd(flood)
  })
})

describe('a queued job without a delivery', { concurrency: false }, () => {
  test('is rescued', async () => {
    const [done] = await addJobs('io.echo', [1])
    await waitForEnd([done!])
    await query(
      `update job set status = 'available', attempt = 0, tries = 0, seq = 0, result = null, finished_at = null,
         started_at = null, run_at = now() - interval '1 minute', created_at = now() - interval '1 minute' where id = $1`,
      [done],
    )
    await waitForEnd([done!])
    assert.deepEqual((await ledgerHelp.row(done!)).result, 1)
  })
})

describe('a queue runner that dies', { concurrency: false }, () => {
  test('is replaced without losing or repeating a job', async () => {
    const { warnings } = await startTestWorker(url, 'other')
    // The first three completions fail with a deadlock error, and this failure stops graphile-worker.
    await query(`create sequence failures`)
    await query(`create function fail_completion() returns trigger language plpgsql as $$ begin
      if nextval('failures') <= 3 then raise exception 'as if' using errcode = '40P01'; end if;
      return old; end $$`)
    await query(
      'create trigger fail_completion before delete on graphile_worker._private_jobs for each row execute function fail_completion()',
    )
    const slow = await addJobs(
      'other.deaf',
      Array.from({ length: 20 }, () => ({ ms: 1500 })),
    )
    await until('all jobs have started', async () => (await ledgerHelp.status(slow.at(-1)!)) !== 'available')
    const ids = [...slow, ...(await addJobs('other.echo', createNumberPayloads(300)))]
    await waitForEnd(ids)
    await until('the runner is replaced', () => warnings.some((line) => line.includes('restarting')))
    await query('drop trigger fail_completion on graphile_worker._private_jobs')
    const more = await addJobs('other.echo', createNumberPayloads(50))
    await waitForEnd(more)
    await assertAllDoneOnce([...ids, ...more])
    const again = await query('select count(*)::int as n from job where id = any($1) and attempt > 1', [
      [...ids, ...more],
    ])
    assert.deepEqual(again, [{ n: 0 }])
    await until('the queue is empty', async () => (await ledgerHelp.deliveries(...ids, ...more)).length === 0)
  })
})

describe('two workers', { concurrency: false }, () => {
  test('share a queue', async () => {
    await Promise.all([startTestWorker(url, 'shared'), startTestWorker(url, 'shared')])
    const [leases] = await query(`select count(*)::int as n from worker_lease where queues = '{shared}'`)
    assert.equal(leases!.n, 2)
    // Repeat in rounds: a worker that starts late misses one round, but gets jobs of the next.
    await until('both workers have run jobs', async () => {
      const ids = await addJobs('shared.where', Array(60).fill({ ms: 40 }))
      await waitForEnd(ids)
      await assertAllDoneOnce(ids)
      const threads = await query('select distinct result from job where id = any($1)', [ids])
      return threads.length > 2 // One worker has only two threads.
    })
  })

  test('run the jobs of an actor in order', async () => {
    const actors = ['one', 'two', 'three']
    const ids = await addJobs(
      'flaky.turns',
      Array.from({ length: 45 }, (_, i) => ({ actor: actors[i % 3], ms: i % 4 })),
    )
    await waitForEnd(ids)
    await assertAllDoneOnce(ids)
    for (const actor of actors) {
      const turns = await query(
        'select id, started_at, finished_at from job where mailbox = $1 order by ordinal',
        [actor],
      )
      assert.equal(turns.length, 15)
      for (const [i, turn] of turns.entries()) {
        const before = turns[i - 1]
        if (before !== undefined)
          assert.ok((before.finished_at as Date) <= (turn.started_at as Date), `${actor}: turn ${i}`)
      }
    }
  })

  test('release unfinished jobs and their lease when they stop', async () => {
    const { worker } = await startTestWorker(url, 'floating')
    const [id] = await addJobs('floating.sleep', [{ ms: 60_000 }])
    await until('the job is running', async () => (await ledgerHelp.status(id!)) === 'running')
    const since = Date.now()
    await worker.stop()
    assert.ok(Date.now() - since < 30_000, `stopped in ${Date.now() - since} ms`)
    const row = await ledgerHelp.row(id!)
    assert.deepEqual([row.status, row.tries, row.interruptions], ['available', 0, 0])
    assert.deepEqual(await query('select id from worker_lease where id = $1', [worker.lease.id]), [])
    assert.equal((await ledgerHelp.deliveries(id!)).at(-1)?.locked_by ?? null, null)
  })
})
