import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cancelJobs, rescueRunningJobs } from '../../sql/jobs/jobs.ts'
import { scheduleEntries } from '../../tasks/schedules/entries.ts'
import { createTestDatabase, waitForLock } from '../database.ts'
import { withClient } from '../sql/ledger-help.ts'
import { createScheduleHelp } from '../tasks/schedule-help.ts'
import { until } from '../until.ts'
import { startTestWorker } from './parts.ts'

/** Whole workers run each time of a schedule once. */

const { url, db, query } = await createTestDatabase()
const { add, read, listMessageTimes } = createScheduleHelp({ db, query })
const countJobs = async (): Promise<number> =>
  Number((await query(`select count(*) from job where name = 'system.noop'`))[0]!.count)

test('two workers run the times of many schedules once each, and one goes on without the other', async () => {
  const workers = await Promise.all([1, 2].map(() => startTestWorker(url, 'schedules', { rescueMs: 500 })))
  const [declared] = await query(
    `select array_agg(id order by id collate "C") as ids, bool_and(next_at > now()) as ahead from schedule`,
  )
  assert.deepEqual(declared, { ids: scheduleEntries.map(({ identifier }) => identifier).sort(), ahead: true })

  // Each is due soon, and again after a day.
  const day = { every_seconds: 86_400 }
  const ids = await Promise.all(Array.from({ length: 30 }, () => add(day, 0.5)))
  const hasRun = async () =>
    (await query(`select 1 from schedule where id = any($1) and last_run_at is null`, [ids])).length === 0
  await until('all schedules have run', hasRun)
  assert.equal(await countJobs(), 30)
  for (const id of ids)
    assert.deepEqual(await listMessageTimes(id), [(await read(id)).next_at!.toISOString()])

  await workers[0]!.worker.stop()
  const more = await add(day, 0.3)
  await until('the schedule has run', async () => (await read(more)).last_run_at !== null)
  assert.equal(await countJobs(), 31)

  // An admin cancels a message. The rescuer sends it again once its time has passed.
  const lost = await add(day, 0.3)
  const messages = await query(`select id from job where mailbox = 'schedule:' || $1::text`, [lost])
  await db.any(cancelJobs(messages.map(({ id }) => id as string)))
  await until('the schedule has run', async () => (await read(lost)).last_run_at !== null)
  assert.equal(await countJobs(), 32)
  assert.ok(workers[1]!.warnings.includes('Rescued schedules that had no message'))
})

test('a run that is taken over inside its transaction adds one job', async () => {
  const other = await createTestDatabase()
  const help = createScheduleHelp(other)
  await startTestWorker(other.url, 'schedules', { rescueMs: 500 })
  const id = await help.add({ every_seconds: 86_400 }, 0.3)
  const takeover = await withClient(other.url, async (client) => {
    await client.query('begin')
    await client.query('select from schedule where id = $1 for update', [id])
    // The run has passed its fence and waits for the schedule.
    await waitForLock(other.query)
    await other.query(`update worker_lease set expires_at = now() - interval '1 s'`)
    // The takeover waits for the run, or either is repeated after a deadlock.
    const rescue = other.db.transaction((tx) => tx.any(rescueRunningJobs(null)))
    await waitForLock(other.query)
    await client.query('commit')
    return { rescue }
  })
  await takeover.rescue
  const isSettled = async () => {
    const { last_run_at, next_at } = await help.read(id)
    const times = await help.listMessageTimes(id)
    return last_run_at !== null && times.length === 1 && times[0] === next_at!.toISOString()
  }
  await until('the schedule has run', isSettled)
  const jobs = await other.query(`select id from job where name = 'system.noop'`)
  assert.equal(jobs.length, 1)
})

test('a worker without the queue stores the built-in schedules for those that have it', async () => {
  const other = await createTestDatabase()
  await startTestWorker(other.url, 'io')
  const [row] = await other.query(
    `select count(*)::int as count from schedule join job on mailbox = 'schedule:' || schedule.id and job.status = 'scheduled'`,
  )
  assert.equal(row!.count, scheduleEntries.length)
})
