import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWithin } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import {
  pauseScheduleEntry,
  readSchedule,
  readSchedules,
  resumeScheduleEntry,
  runScheduleEntry,
} from '../../sql/jobs/schedules.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp } from './ledger-help.ts'

/** Schedules can be paused, and remember their last job. */

const database = await createTestDatabase()
const { db, query } = database
const ledger = createLedgerHelp(database)
const [account] = await query(
  `insert into account (email, password_hash) values ('admin@example.com', 'x') returning id`,
)
const pausedBy = account!.id as number

let count = 0
const createEntryName = (): string => `entry-${++count}`
const countJobs = async (): Promise<number> => Number((await query('select count(*) from job'))[0]!.count)
const runSchedule = async (identifier: string, ignorePause = false, job = buildJobSpec()) =>
  (await db.maybeOne(runScheduleEntry(identifier, job, ignorePause)))?.job_id ?? null
const createDeclaredEntry = (identifier: string) => ({
  name: identifier,
  cron: '* * * * *',
  task: 'a.task',
  queue: 'test',
  next_run_at: '2026-03-01T09:30:00.000Z',
})
const readAllSchedules = async (identifier: string, keptSeconds = 3600) =>
  JSON.parse(
    (await readWithin(db, readSchedule, [
      JSON.stringify([createDeclaredEntry(identifier)]),
      [keptSeconds, keptSeconds],
    ]))!,
  )

test('a run adds a job and is stored, each time', async () => {
  const entry = createEntryName()
  const before = await readAllSchedules(entry)
  const untouched = {
    ...createDeclaredEntry(entry),
    paused_at: null,
    paused_by: null,
    last_run_at: null,
    last_job: null,
  }
  assert.deepEqual(before, untouched)
  for (const _ of [1, 2]) {
    const job = buildJobSpec()
    assert.equal(await runSchedule(entry, false, job), job.id)
    assert.equal(await ledger.status(job.id), 'available')
    const { last_run_at, last_job } = await readAllSchedules(entry)
    assert.deepEqual(last_job, { job_id: job.id, status: 'queued', error: null, finished_at: null })
    assert.ok(Math.abs(Date.parse(last_run_at) - Date.now()) < 60_000, last_run_at)
  }
})

test('a run that joins a job in progress stores that job', async () => {
  const entry = createEntryName()
  const actor = { actor: entry, when_busy: 'join' } as const
  const first = (await runSchedule(entry, false, buildJobSpec(actor)))!
  const before = await countJobs()
  assert.equal(await runSchedule(entry, false, buildJobSpec(actor)), first)
  assert.equal(await countJobs(), before)
  assert.equal((await readAllSchedules(entry)).last_job.job_id, first)
})

test('a paused schedule adds and changes nothing, unless forced', async () => {
  const entry = createEntryName()
  await runSchedule(entry)
  assert.equal(await db.run(pauseScheduleEntry(entry, pausedBy)), 1)
  const [paused, before] = [await readAllSchedules(entry), await countJobs()]
  assert.deepEqual([paused.paused_by, paused.next_run_at], [pausedBy, null])
  assert.equal(await runSchedule(entry), null)
  assert.deepEqual([await readAllSchedules(entry), await countJobs()], [paused, before])
  const id = await runSchedule(entry, true)
  const after = await readAllSchedules(entry)
  assert.deepEqual([after.last_job.job_id, after.paused_at], [id, paused.paused_at])
  assert.equal(await db.run(resumeScheduleEntry(entry)), 1)
  const resumed = await readAllSchedules(entry)
  assert.deepEqual(
    [resumed.paused_at, resumed.paused_by, resumed.next_run_at],
    [null, null, createDeclaredEntry(entry).next_run_at],
  )
  assert.ok(await runSchedule(entry))
})

test('pausing twice keeps the first time and account, and resuming twice changes nothing', async () => {
  const entry = createEntryName()
  assert.equal(await db.run(resumeScheduleEntry(entry)), 0)
  await db.run(pauseScheduleEntry(entry, pausedBy))
  const first = await readAllSchedules(entry)
  assert.equal(await db.run(pauseScheduleEntry(entry, null)), 0)
  assert.deepEqual(await readAllSchedules(entry), first)
  await db.run(resumeScheduleEntry(entry))
  assert.equal(await db.run(resumeScheduleEntry(entry)), 0)
})

test('a pause outlives its account, and a run its job', async () => {
  const entry = createEntryName()
  const [other] = await query(
    `insert into account (email, password_hash) values ('other@example.com', 'x') returning id`,
  )
  const id = (await runSchedule(entry))!
  await db.run(pauseScheduleEntry(entry, other!.id as number))
  await query('delete from account where id = $1', [other!.id])
  const { attempt } = (await ledger.claim(id, await ledger.lease()))!
  await ledger.finish({ id, attempt, outcome: 'failed', code: 'internal', detail: 'It broke' })
  const { paused_at, paused_by, last_job, last_run_at } = await readAllSchedules(entry)
  assert.ok(paused_at !== null && paused_by === null)
  const { finished_at, ...job } = last_job
  assert.deepEqual(job, { job_id: id, status: 'failed', error: { code: 'internal', detail: 'It broke' } })
  assert.ok(finished_at)
  assert.equal((await readAllSchedules(entry, 0)).last_job, null, 'as long as it is shown')
  await query('delete from job where id = $1', [id])
  const left = await readAllSchedules(entry)
  assert.deepEqual([left.last_job, left.last_run_at], [null, last_run_at])
})

test('schedules are listed by name', async () => {
  const entries = ['b-b', 'bb', 'a', 'B'].map(createDeclaredEntry)
  const list = JSON.parse((await readWithin(db, readSchedules, [JSON.stringify(entries), [3600, 3600]]))!)
  assert.deepEqual(
    list.map(({ name }: { name: string }) => name),
    ['B', 'a', 'b-b', 'bb'],
  )
  assert.equal(await readWithin(db, readSchedules, ['[]', [3600, 3600]]), '[]')
})

test('concurrent runs leave one row, and a job each', async () => {
  const entry = createEntryName()
  const ids = await Promise.all(
    Array.from({ length: 8 }, () => runSchedule(entry, false, buildJobSpec({ id: uuidv7() }))),
  )
  assert.equal(new Set(ids).size, 8)
  assert.ok(ids.includes((await readAllSchedules(entry)).last_job.job_id))
})
