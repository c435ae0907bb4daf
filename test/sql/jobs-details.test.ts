import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { uuidv7 } from '../../sql/ids.ts'
import { ALONE_FROM_DEATHS, cancelJobs, MAX_CRASHES, rescueRunningJobs } from '../../sql/jobs/jobs.ts'
import { linkRetries } from '../../sql/jobs/retry.ts'
import { createTestDatabase } from '../database.ts'
import { type Attempt, buildJobSpec, createLedgerHelp } from './ledger-help.ts'

/** Details of a job: its attempts, its dependencies and its chain of retries. */

const database = await createTestDatabase()
const { db, query } = database
const ledger = createLedgerHelp(database)
const [one, two] = [await ledger.lease(3_600_000, [], 'host/1'), await ledger.lease(3_600_000, [], 'host/2')]
const UNBLOCKED = { paused_at: null, limit: null }
const BUSY_ERROR = { code: 'database.busy', detail: 'The database is busy' }

const outlineAttempts = (attempts: readonly Attempt[]) =>
  attempts.map(({ attempt, worker, outcome, error }) => [attempt, worker, outcome, error?.code ?? null])

/** Claims a job again, even if it is not due yet. */
async function claimAgain(id: string, lease: string): Promise<void> {
  await ledger.makeDue(id)
  assert.ok((await ledger.claim(id, lease)) !== null)
}

describe('attempts', () => {
  test('a waiting job has none, and a running one has one without an end', async () => {
    const job = buildJobSpec()
    await ledger.enqueue(job)
    assert.deepEqual((await ledger.details(job.id)).attempts, [])
    await ledger.claim(job.id, one)
    const [attempt] = (await ledger.details(job.id)).attempts
    const { started_at } = await ledger.row(job.id)
    const { waited_seconds, ...rest } = attempt!
    assert.deepEqual(rest, {
      attempt: 1,
      worker: 'host/1',
      claimed_at: started_at!.toISOString(),
      ended_at: null,
      ran_seconds: null,
      outcome: null,
      error: null,
    })
    assert.ok(waited_seconds >= 0 && waited_seconds < 30)
  })

  test('a job that ends quickly has no event row, and its worker is known after its lease is gone', async () => {
    const lease = await ledger.lease(60_000, [], 'host/3')
    const job = await ledger.running({}, lease)
    await delay(20)
    await ledger.finish({ ...job, outcome: 'done', result: 1 })
    await query('delete from worker_lease where id = $1', [lease])
    assert.deepEqual(await query('select from job_event_row where job_id = $1', [job.id]), [])
    const [attempt] = (await ledger.details(job.id)).attempts
    assert.deepEqual(outlineAttempts([attempt!]), [[1, 'host/3', 'done', null]])
    const row = await ledger.row(job.id)
    assert.equal(attempt!.ended_at, row.finished_at!.toISOString())
    const ran = (row.finished_at!.getTime() - row.started_at!.getTime()) / 1000
    assert.ok(Math.abs(attempt!.ran_seconds! - ran) < 0.002 && attempt!.ran_seconds! > 0.01)
  })

  test('failed, released and interrupted attempts have worker, times and error', async () => {
    const job = await ledger.running({ delay_ms: 0 }, one)
    await delay(20)
    await ledger.finish({ ...job, outcome: 'retry', ...BUSY_ERROR, delay_ms: 60_000 })
    const [first] = (await ledger.details(job.id)).attempts
    assert.deepEqual([first!.error, first!.outcome], [BUSY_ERROR, 'retry'])
    await claimAgain(job.id, two)
    await ledger.finish({ id: job.id, attempt: 2, outcome: 'release' })
    await claimAgain(job.id, one)
    await ledger.finish({ id: job.id, attempt: 3, outcome: 'interrupted' })
    await claimAgain(job.id, two)
    await ledger.finish({ id: job.id, attempt: 4, outcome: 'failed', code: 'internal', detail: 'Broken' })
    const { attempts } = await ledger.details(job.id)
    assert.deepEqual(outlineAttempts(attempts), [
      [1, 'host/1', 'retry', 'database.busy'],
      [2, 'host/2', 'release', null],
      [3, 'host/1', 'interrupted', null],
      [4, 'host/2', 'failed', 'internal'],
    ])
    assert.deepEqual(attempts[3]!.error, { code: 'internal', detail: 'Broken' })
    assert.deepEqual(attempts[0], first, 'later attempts do not change an earlier one')
    for (const [i, { claimed_at, ended_at, ran_seconds, waited_seconds }] of attempts.entries()) {
      assert.ok(ended_at! >= claimed_at && (i === 0 || claimed_at >= attempts[i - 1]!.ended_at!))
      assert.ok(ran_seconds! >= 0 && waited_seconds >= 0 && waited_seconds < 30)
    }
    await ledger.assertSound(job.id)
  })

  test('waiting time counts from when the attempt was due', async () => {
    const job = buildJobSpec({ delay_ms: 3_600_000 })
    await ledger.enqueue(job)
    assert.ok((await ledger.details(job.id)).due_at !== null)
    await query(
      `update job set created_at = now() - interval '2 hours', run_at = now() - interval '5 min' where id = $1`,
      [job.id],
    )
    await ledger.makeDue(job.id)
    await ledger.claim(job.id, one)
    const readWaits = async () =>
      (await ledger.details(job.id)).attempts.map((a) => Math.floor(a.waited_seconds / 60))
    assert.deepEqual(await readWaits(), [5])
    await ledger.finish({ id: job.id, attempt: 1, outcome: 'retry', ...BUSY_ERROR, delay_ms: 3_600_000 })
    assert.deepEqual(await readWaits(), [5], 'also once it is due at another time')
    await query(`update job set run_at = now() - interval '7 min' where id = $1`, [job.id])
    await ledger.makeDue(job.id)
    await ledger.claim(job.id, one)
    await ledger.finish({ id: job.id, attempt: 2, outcome: 'done', result: null })
    assert.deepEqual(await readWaits(), [5, 7])
  })

  test('an attempt is interrupted when its worker died, and names that worker', async () => {
    const dead = await ledger.lease(60_000, [], 'host/dead')
    const job = await ledger.running({}, dead)
    await query(`update worker_lease set expires_at = now() - interval '1 ms' where id = $1`, [dead])
    await db.any(rescueRunningJobs(null))
    assert.deepEqual(outlineAttempts((await ledger.details(job.id)).attempts), [
      [1, 'host/dead', 'interrupted', null],
    ])
  })

  test('a crash in isolation is an interruption, and the last one a failure', async () => {
    const why = { code: 'job.crashed', detail: 'It was given up' }
    const job = await ledger.running({}, one)
    await query('update job set interruptions = $2 where id = $1', [
      job.id,
      ALONE_FROM_DEATHS + MAX_CRASHES - 2,
    ])
    await ledger.finish({ ...job, outcome: 'crashed', ...why })
    await claimAgain(job.id, two)
    await ledger.finish({ id: job.id, attempt: 2, outcome: 'crashed', ...why })
    assert.deepEqual(outlineAttempts((await ledger.details(job.id)).attempts), [
      [1, 'host/1', 'interrupted', null],
      [2, 'host/2', 'failed', 'job.crashed'],
    ])
  })

  test('a cancelled attempt ends as cancelled, but an earlier one keeps its end', async () => {
    const [running, waiting] = [await ledger.running({}, one), await ledger.running({}, one)]
    await db.any(cancelJobs([running.id]))
    await ledger.finish({ ...running, outcome: 'retry', ...BUSY_ERROR })
    assert.deepEqual(outlineAttempts((await ledger.details(running.id)).attempts), [
      [1, 'host/1', 'cancelled', null],
    ])
    await ledger.finish({ ...waiting, outcome: 'retry', ...BUSY_ERROR, delay_ms: 60_000 })
    const before = (await ledger.details(waiting.id)).attempts
    await db.any(cancelJobs([waiting.id]))
    assert.deepEqual((await ledger.details(waiting.id)).attempts, before)
    assert.equal(await ledger.status(waiting.id), 'cancelled')
  })

  test('events carry no additional data', async () => {
    const job = await ledger.running({}, one)
    await ledger.finish({ ...job, outcome: 'retry', ...BUSY_ERROR })
    await claimAgain(job.id, one)
    for (const { data } of await ledger.events(job.id))
      assert.deepEqual(Object.keys(data).sort(), ['current', 'label', 'status', 'total'])
  })

  test('of very many attempts, the last thousand are returned', async () => {
    const job = await ledger.running({}, one)
    await query('update job set attempt = 1500 where id = $1', [job.id])
    await query(
      `insert into job_event_row (job_id, seq, kind, data, attempt, ended) select $1, n * 2 + s, 'status', '{}', n + 1 - s,
         case when s = 0 then '{"outcome": "release"}'::jsonb end from generate_series(1, 1500) n, generate_series(0, 1) s where n > s`,
      [job.id],
    )
    const { attempts } = await ledger.details(job.id)
    assert.deepEqual([attempts.length, attempts[0]!.attempt, attempts.at(-1)!.attempt], [1000, 501, 1500])
  })
})

describe('what a job waits for', () => {
  test('jobs ahead in its mailbox and the running one, and nothing once it runs', async () => {
    const running = await ledger.running({ actor: 'x' }, one)
    const [second, third] = [buildJobSpec({ actor: 'x' }), buildJobSpec({ actor: 'x' })]
    await ledger.enqueue(second, third, buildJobSpec({ actor: 'y' }))
    const holding = [{ job_id: running.id, name: 'test.task' }]
    assert.deepEqual((await ledger.details(second.id)).waits_for, {
      ahead: 0,
      queue: UNBLOCKED,
      running: holding,
      jobs: [],
    })
    assert.deepEqual((await ledger.details(third.id)).waits_for, {
      ahead: 1,
      queue: UNBLOCKED,
      running: holding,
      jobs: [],
    })
    assert.equal((await ledger.details(running.id)).waits_for, null)
  })

  test('nothing in a mailbox without a limit, where jobs ahead are counted up to a thousand', async () => {
    const many = Array.from({ length: 1100 }, () => buildJobSpec({ mailbox: 'many' }))
    await ledger.enqueue(...many)
    const readAhead = async (n: number) => (await ledger.details(many[n]!.id)).waits_for
    assert.deepEqual(await readAhead(999), { ahead: 999, queue: UNBLOCKED, running: [], jobs: [] })
    assert.deepEqual(await readAhead(1099), { ahead: 1000, queue: UNBLOCKED, running: [], jobs: [] })
  })

  test('jobs of other owners are counted, but not named', async () => {
    const [mine, other] = (
      await query(
        `insert into account (email, password_hash) values ('a@example.com', 'x'), ('b@example.com', 'x') returning id`,
      )
    ).map(({ id }) => id as number)
    await ledger.running({ actor: 'both', owner_id: other! }, one)
    const waiting = buildJobSpec({ actor: 'both', owner_id: mine! })
    await ledger.enqueue(waiting)
    assert.deepEqual((await ledger.details(waiting.id, mine!)).waits_for, {
      ahead: 0,
      queue: UNBLOCKED,
      running: [],
      jobs: [],
    })
    assert.equal((await ledger.details(waiting.id)).waits_for!.running.length, 1)
  })
})

test('a chain of retries is returned for each of its jobs, even after the first is gone', async () => {
  const ids = Array.from({ length: 4 }, () => uuidv7())
  await ledger.enqueue(...ids.map((id) => buildJobSpec({ id })))
  for (const [i, id] of ids.entries()) if (i > 0) await db.run(linkRetries([id], [ids[i - 1]!]))
  const readChain = async (n: number) => (await ledger.details(ids[n]!)).chain
  assert.deepEqual(await readChain(0), { retry_of: [], retried_by: ids.slice(1) })
  assert.deepEqual(await readChain(2), { retry_of: ids.slice(0, 2), retried_by: [ids[3]] })
  await query('delete from job where id = $1', [ids[0]])
  assert.deepEqual(await readChain(3), { retry_of: ids.slice(0, 3), retried_by: [] })
})
