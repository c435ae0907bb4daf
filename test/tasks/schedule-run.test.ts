import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import type { Queries } from '../../sql/db.ts'
import { cancelJobs } from '../../sql/jobs/jobs.ts'
import { pauseSchedule } from '../../sql/schedules/schedules.ts'
import { ensureBuiltIns, rescueSchedules } from '../../tasks/schedules/built-in.ts'
import { scheduleEntries } from '../../tasks/schedules/entries.ts'
import { createTestDatabase, waitForLock } from '../database.ts'
import { createScheduleHelp, settings } from './schedule-help.ts'

/** Each time of a schedule adds exactly one job, whatever happens to the runs of its messages. */

const { db, query } = await createTestDatabase()
const { add, read, readAt, listMessageTimes, listJobs, run } = createScheduleHelp({ db, query })
const [account] = await query(
  `insert into account (email, password_hash) values ('owner@example.com', 'x') returning id`,
)
const owner = account!.id as number

/** Asserts the number of jobs, and that the only message waits for the schedule's next time. */
async function assertState(id: string, jobs: number): Promise<void> {
  assert.equal((await listJobs()).length, jobs)
  assert.deepEqual(await listMessageTimes(id), [await readAt(id)])
}

describe('a run of a schedule', { concurrency: false }, () => {
  beforeEach(() => query('truncate schedule, job cascade'))

  test('adds the job of its owner, and the message for the next time', async () => {
    const id = await add({ owner_id: owner })
    const due = await readAt(id)
    const { job_id, skipped } = await run(id)
    assert.equal(skipped, null)
    const [job] = await query('select name, queue, owner_id, payload, status from job where id = $1', [
      job_id,
    ])
    assert.deepEqual(job, {
      ...{ name: 'system.noop', queue: 'system', owner_id: owner },
      ...{ payload: { echo: 'x' }, status: 'available' },
    })
    const next = new Date(Date.parse(due) + 60_000)
    assert.deepEqual((await read(id)).next_at, next)
    assert.equal((await read(id)).last_job_id, job_id)
    const [message] = await query(
      `select owner_id, queue, status, run_at, mailbox_limit from job where mailbox = 'schedule:' || $1::text and finished_at is null`,
      [id],
    )
    assert.deepEqual(message, {
      ...{ owner_id: null, queue: 'schedules', status: 'scheduled', run_at: next, mailbox_limit: 1 },
    })
  })

  test('does nothing for another time than the next one, or without the schedule', async () => {
    const id = await add()
    const due = await readAt(id)
    await run(id)
    assert.deepEqual(await run(id, { at: due }), { job_id: null, skipped: 'stale' })
    await assertState(id, 1)
    await query('delete from schedule')
    assert.deepEqual(await run(id, { at: due }), { job_id: null, skipped: 'stale' })
    assert.equal((await listJobs()).length, 1)
  })

  test('adds one job, though two workers run its message', async () => {
    const id = await add()
    const at = await readAt(id)
    const results = await Promise.all([1, 2, 3].map(() => run(id, { at })))
    assert.equal(results.filter(({ skipped }) => skipped === 'stale').length, 2)
    await assertState(id, 1)
  })

  test('changes nothing if it is cut at any statement, and then adds one job', async () => {
    const id = await add()
    const before = await read(id)
    let statements = 0
    const cutAfter =
      (count: number) =>
      (tx: Queries): Queries => {
        let left = count
        const cut =
          (name: 'any' | 'one' | 'maybeOne' | 'run') =>
          async (statement: never): Promise<never> => {
            const result = await tx[name](statement)
            statements++
            if (--left === 0) throw new Error('cut')
            return result as never
          }
        return { any: cut('any'), one: cut('one'), maybeOne: cut('maybeOne'), run: cut('run') } as Queries
      }
    let cuts = 0
    for (;;) {
      const result = await run(id, { wrap: cutAfter(cuts + 1) }).catch(() => null)
      if (result !== null) break
      cuts++
      assert.deepEqual([await read(id), await listJobs()], [before, []], `after statement ${cuts}`)
    }
    assert.equal(cuts, 3)
    assert.ok(statements > cuts)
    await assertState(id, 1)
  })

  test('writes nothing for an attempt that another worker has taken over', async () => {
    const id = await add()
    const [message] = await query(
      `update job set status = 'running', lease_id = gen_random_uuid() where mailbox = 'schedule:' || $1::text returning id`,
      [id],
    )
    const attempt = (number: number) => ({ attempt: { id: message!.id as string, attempt: number } })
    await assert.rejects(run(id, attempt(0)), /superseded/)
    assert.deepEqual(await listJobs(), [])
    assert.equal((await run(id, attempt(1))).skipped, null)
    await assertState(id, 1)
  })

  test('skips a time while the last job has not ended, unless they queue', async () => {
    for (const [overlap, skipped, jobs] of [
      ['skip', 'overlap', 1],
      ['queue', null, 2],
    ] as const) {
      await query('truncate schedule, job cascade')
      const id = await add({ overlap })
      const first = (await run(id)).job_id
      await query(`update schedule set next_at = next_at - interval '1 min'`)
      const at = (await read(id)).next_at
      const second = await run(id)
      assert.equal(second.skipped, skipped)
      await assertState(id, jobs)
      const row = await read(id)
      assert.equal(row.last_job_id, skipped === null ? second.job_id : first)
      assert.deepEqual(
        [row.last_skip_reason, row.last_skipped_at],
        skipped === null ? [null, null] : [skipped, at],
      )
      await query(`update job set status = 'done', finished_at = now() where name = 'system.noop'`)
      await query(`update schedule set next_at = next_at - interval '1 min'`)
      assert.equal((await run(id)).skipped, null)
    }
  })

  test('after an outage, skips what is late or runs the latest time', async () => {
    // Hourly times, of which the due one was three and a half hours ago.
    const outage = { every_seconds: 3600 }
    const late = await add(outage, -3.5 * 3600)
    const due = (await read(late)).next_at!
    const after = (hours: number) => new Date(due.getTime() + hours * 3_600_000)
    assert.equal((await run(late)).skipped, 'late')
    const skipped = await read(late)
    assert.deepEqual([skipped.last_skipped_at, skipped.next_at], [after(3), after(4)])
    await assertState(late, 0)

    const caught = await add({ ...outage, catch_up: 'last' }, -3.5 * 3600)
    assert.equal((await run(caught)).skipped, null)
    await assertState(caught, 1)
    const row = await read(caught)
    assert.deepEqual([row.next_at! > new Date(), row.last_skipped_at], [true, null])
  })

  test('runs a time that is less than five minutes late', async () => {
    const id = await add({ every_seconds: 3600 }, -290)
    assert.equal((await run(id)).skipped, null)
    // The latest of all minutes is never late.
    const minutes = await add({ every_seconds: 60 }, -3600)
    assert.equal((await run(minutes)).skipped, null)
    assert.equal((await listJobs()).length, 2)
  })

  test('ends with end_at', async () => {
    const id = await add({ end_at: new Date(Date.now() + 30_000) })
    assert.equal((await run(id)).skipped, null)
    assert.deepEqual([(await read(id)).next_at, await listMessageTimes(id)], [null, []])
    // The times before the end are caught up on after it.
    const past = await add({ end_at: new Date(Date.now() - 600_000), catch_up: 'last' }, -1200)
    assert.equal((await run(past)).skipped, null)
    assert.equal((await read(past)).next_at, null)
  })

  test('skips times of an inactive account, and continues afterwards', async () => {
    const id = await add({ owner_id: owner })
    await query('update account set is_active = false')
    assert.equal((await run(id)).skipped, 'account')
    await assertState(id, 0)
    await query('update account set is_active = true')
    await query(`update schedule set next_at = next_at - interval '1 min'`)
    assert.equal((await run(id)).skipped, null)
  })

  test('skips times whose task is unknown or refuses the arguments', async () => {
    for (const fields of [{ task_name: 'gone' }, { queue_type: 'gone' }, { args: { echo: 1 } }]) {
      await query('truncate schedule, job cascade')
      const id = await add(fields)
      assert.equal((await run(id)).skipped, 'task')
      await assertState(id, 0)
    }
  })

  test('skips a time that exceeds the quota of waiting jobs', async () => {
    const id = await add({ owner_id: owner, overlap: 'queue' })
    await query(`insert into account_quota (account_id, kind, quota) values ($1, 'waiting_jobs', 1)`, [owner])
    assert.equal((await run(id)).skipped, null)
    await query(`update schedule set next_at = next_at - interval '1 min'`)
    assert.equal((await run(id)).skipped, 'quota')
    await assertState(id, 1)
    await query('truncate account_quota')
  })

  test('waits for a change of the schedule, which it then follows', async () => {
    const id = await add()
    const at = await readAt(id)
    const running = await db.transaction(async (tx) => {
      await tx.run(pauseSchedule(id, null))
      const started = run(id, { at })
      await waitForLock(query)
      return { started }
    })
    assert.deepEqual(await running.started, { job_id: null, skipped: 'stale' })
    assert.deepEqual(await listJobs(), [])
  })
})

describe('lost messages', { concurrency: false }, () => {
  beforeEach(() => query('truncate schedule, job cascade'))
  const rescue = () => rescueSchedules(db, settings, 1000)
  const cancelMessages = async () => {
    const rows = await query(`select id from job where name = 'schedules.run' and finished_at is null`)
    await db.any(cancelJobs(rows.map((row) => row.id as string)))
  }

  test('are sent again, once, after their time', async () => {
    const lost = await add({}, -5)
    await add({}, -5)
    await cancelMessages()
    const [recent, ahead] = [await add({}, 0), await add({}, 60)]
    await cancelMessages()
    await add({}, -5)
    const found = await Promise.all([rescue(), rescue()])
    // Both may find a schedule. The message of the second replaces that of the first.
    assert.equal(new Set(found.flat()).size, 2)
    assert.ok(found.flat().includes(lost))
    assert.equal((await listMessageTimes(lost)).length, 1)
    assert.deepEqual(await rescue(), [])
    await assertState(lost, 0)
    for (const id of [recent, ahead]) assert.deepEqual(await listMessageTimes(id), [])
    assert.equal((await run(lost)).skipped, null)
  })

  test('are not those of a running message', async () => {
    await add({}, -5)
    await query(`update job set status = 'running', lease_id = gen_random_uuid(), attempt = 1`)
    assert.deepEqual(await rescue(), [])
  })
})

describe('built-in schedules', { concurrency: false }, () => {
  beforeEach(() => query('truncate schedule, job cascade'))
  const ensure = () => ensureBuiltIns(db, settings)
  const readAll = () =>
    query('select id, cron, next_at, paused_at, is_built_in from schedule order by id collate "C"')

  test('are stored once, with a message each', async () => {
    await Promise.all([ensure(), ensure()])
    const first = await readAll()
    assert.deepEqual(
      first.map(({ id, cron }) => [id, cron]),
      scheduleEntries.map(({ identifier, match }) => [identifier, match]).sort(),
    )
    await ensure()
    assert.deepEqual(await readAll(), first)
    for (const { identifier } of scheduleEntries) await assertState(identifier, 0)
  })

  test('follow a changed declaration, and stay paused', async () => {
    await ensure()
    await query(`update schedule set cron = '1 1 1 1 *', next_at = '2100-01-01' where id = 'prune'`)
    await query(
      `update schedule set cron = '1 1 1 1 *', next_at = null, paused_at = now() where id = 'collect'`,
    )
    await ensure()
    const rows = await readAll()
    const find = (id: string) => rows.find((row) => row.id === id)!
    assert.equal(find('prune').cron, '* * * * *')
    assert.ok(Number(find('prune').next_at) < Date.now() + 120_000)
    await assertState('prune', 0)
    assert.equal(find('collect').cron, '17 * * * *')
    assert.deepEqual([find('collect').next_at, find('collect').paused_at !== null], [null, true])
  })

  test('run by the declaration of the worker, whatever another version has stored', async () => {
    await ensure()
    await query(
      `update schedule set cron = '1 1 1 1 *', next_at = date_trunc('milliseconds', now()) where id = 'prune'`,
    )
    const { job_id } = await run('prune')
    const [job] = await query('select name, owner_id from job where id = $1', [job_id])
    assert.deepEqual(job, { name: 'system.prune', owner_id: null })
    const row = await read('prune')
    assert.equal(row.cron, '* * * * *')
    assert.ok(Number(row.next_at) < Date.now() + 120_000)
  })

  test('skip their times on a worker that does not declare them', async () => {
    const id = await add({ id: 'gone', is_built_in: true, task_name: 'gone', queue_type: 'documents' })
    assert.equal((await run(id)).skipped, 'task')
  })
})
