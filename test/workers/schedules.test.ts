import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseScheduleEntry, resumeScheduleEntry } from '../../sql/jobs/schedules.ts'
import { computeNextRun } from '../../tasks/cron.ts'
import { scheduleEntries } from '../../tasks/schedule.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'
import { startTestWorker } from './parts.ts'

/** Tests that a worker adds the job of an entry when cron fires, unless the entry is paused. */

const { url, db, query } = await createTestDatabase()
/** Returns the first of the named entries that is not due within two minutes, so that cron itself does not run it. */
const findEntry = (...identifiers: readonly string[]) =>
  scheduleEntries.find(
    ({ identifier, match }) =>
      identifiers.includes(identifier) && +computeNextRun(match, new Date()) > Date.now() + 120_000,
  )!
// These entries add a new job even while an earlier one is running.
const { identifier: ENTRY_IDENTIFIER, task } = findEntry('rag-purge', 'blog-retag')
const TASK_NAME = task.name

/** Fires the entry as cron does and waits until the worker has handled it. */
async function fireEntry(): Promise<void> {
  const [row] = await query(`select (graphile_worker.add_job($1)).id, pg_notify('deliveries', '')`, [
    `cron:${ENTRY_IDENTIFIER}`,
  ])
  const isHandled = async () => {
    const rows = await query('select 1 from graphile_worker._private_jobs where id = $1', [row!.id])
    return rows.length === 0
  }
  await until('the worker has handled the entry', isHandled)
}

const listJobs = async (): Promise<string[]> =>
  (await query('select id from job where name = $1 order by ordinal', [TASK_NAME])).map(
    ({ id }) => id as string,
  )
const readLastRun = async () =>
  (
    await query(
      `select last_job_id as id, last_run_at > now() - interval '1 min' as is_now from schedule_control where identifier = $1`,
      [ENTRY_IDENTIFIER],
    )
  )[0]
const waitUntilDone = (id: string) =>
  until('the job is done', async () => {
    const [row] = await query('select status from job where id = $1', [id])
    return row!.status === 'done'
  })

test('adds a job when cron fires, except while the entry is paused', async () => {
  await startTestWorker(url, 'system')
  await fireEntry()
  const [first, ...more] = await listJobs()
  assert.deepEqual([more, await readLastRun()], [[], { id: first, is_now: true }])
  await waitUntilDone(first!)

  await db.run(pauseScheduleEntry(ENTRY_IDENTIFIER, null))
  await fireEntry()
  assert.deepEqual([await listJobs(), (await readLastRun())!.id], [[first], first])

  await db.run(resumeScheduleEntry(ENTRY_IDENTIFIER))
  await fireEntry()
  const [, second] = await listJobs()
  assert.ok(second !== undefined)
  assert.equal((await readLastRun())!.id, second)
  await waitUntilDone(second)
  const [row] = await query('select owner_id, payload from job where id = $1', [second])
  assert.deepEqual(row, { owner_id: null, payload: {} })
})

test('records the queued job that a cron run joins', async () => {
  const { identifier, task } = findEntry('retention', 'measure')
  const mailbox = task.actor!({} as never, null)
  // This job stays queued: it is scheduled in an hour, so its mailbox has no delivery.
  await query(
    `insert into job (id, name, queue, mailbox, mailbox_limit, payload, status, max_tries, run_at)
     values (gen_random_uuid(), $1, 'system', $2, 1, '{}', 'scheduled', 1, now() + interval '1 h')`,
    [task.name, mailbox],
  )
  const [waiting] = await query('select id from job where name = $1', [task.name])
  await startTestWorker(url, 'system')
  await query(`select graphile_worker.add_job($1), pg_notify('deliveries', '')`, [`cron:${identifier}`])
  const row = await until('the entry has run', async () => {
    const [found] = await query('select last_job_id as id from schedule_control where identifier = $1', [
      identifier,
    ])
    return found ?? null
  })
  assert.equal(row.id, waiting!.id)
})
