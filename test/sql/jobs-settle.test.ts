import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  ALONE_FROM_DEATHS,
  cancelJobs,
  endAttempts,
  MAX_CRASHES,
  rescueRunningJobs,
} from '../../sql/jobs/jobs.ts'
import { tasks } from '../../tasks/index.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp } from './ledger-help.ts'

/** A task's settle function runs once for each job, in the transaction that ends the job, however it ends. */

const database = await createTestDatabase()
const { db, query } = database
const ledger = createLedgerHelp(database)
await query('create table settled (job_id uuid, status text)')
await query(`create function note(ended job) returns void language sql as
  'insert into settled values (ended.id, ended.status)'`)
await query(`create function refuse(ended job) returns void language plpgsql as
  $$ begin raise exception 'not now'; end $$`)

let actors = 0
const createJobSpec = (settle: string) => buildJobSpec({ actor: `settled:${++actors}`, settle, max_tries: 3 })
const readSettled = async (id: string) =>
  (await query('select status from settled where job_id = $1', [id])).map(({ status }) => status)
const addRunningJob = (settle: string) => ledger.running({ actor: `settled:${++actors}`, settle })

describe('a job is settled', () => {
  test('when it is done', async () => {
    const { id } = await addRunningJob('note')
    await endAttempts(db, [{ id, attempt: 1, outcome: 'done', result: '1' }])
    assert.deepEqual(await readSettled(id), ['done'])
  })

  test('when it is done, with its mailbox', async () => {
    const { id } = await addRunningJob('note')
    await endAttempts(db, [{ id, attempt: 1, outcome: 'done', result: '1' }])
    assert.deepEqual(await readSettled(id), ['done'])
    await endAttempts(db, [{ id, attempt: 1, outcome: 'done', result: '1' }])
    assert.deepEqual(await readSettled(id), ['done'], 'once')
  })

  test('when its mailbox has no limit: done, or cancelled while it waits', async () => {
    const done = await ledger.running({ settle: 'note' })
    await endAttempts(db, [{ id: done.id, attempt: 1, outcome: 'done', result: '1' }])
    assert.deepEqual(await readSettled(done.id), ['done'])
    const waiting = buildJobSpec({ settle: 'note', delay_ms: 60_000 })
    await ledger.enqueue(waiting)
    await db.any(cancelJobs([waiting.id]))
    assert.deepEqual(await readSettled(waiting.id), ['cancelled'])
  })

  test('when it fails permanently, but not before a retry', async () => {
    const { id } = await addRunningJob('note')
    await ledger.finish({ id, attempt: 1, outcome: 'retry', delay_ms: 0 })
    assert.deepEqual(await readSettled(id), [])
    await ledger.claim(id, await ledger.lease())
    await ledger.finish({ id, attempt: 2, outcome: 'failed', code: 'internal' })
    assert.deepEqual(await readSettled(id), ['failed'])
  })

  test('when it is cancelled: immediately while it waits, at its end while it runs', async () => {
    const waiting = createJobSpec('note')
    await ledger.enqueue(waiting)
    await db.any(cancelJobs([waiting.id]))
    assert.deepEqual(await readSettled(waiting.id), ['cancelled'])
    const { id } = await addRunningJob('note')
    await db.any(cancelJobs([id]))
    assert.deepEqual(await readSettled(id), [])
    await ledger.finish({ id, attempt: 1, outcome: 'cancelled' })
    assert.deepEqual(await readSettled(id), ['cancelled'])
  })

  test('when it is given up, or was to be cancelled and has lost its worker', async () => {
    const [one, two] = [await addRunningJob('note'), await addRunningJob('note')]
    const interruptions = ALONE_FROM_DEATHS + MAX_CRASHES
    await ledger.finish({ id: one.id, attempt: 1, outcome: 'crashed', interruptions, code: 'job.crashed' })
    assert.deepEqual(await readSettled(one.id), ['failed'])
    await db.any(cancelJobs([two.id]))
    await query('delete from worker_lease')
    await db.any(rescueRunningJobs(null))
    assert.deepEqual(await readSettled(two.id), ['cancelled'])
  })

  test('in the same transaction as its end, or neither happens', async () => {
    const { id } = await addRunningJob('refuse')
    await assert.rejects(endAttempts(db, [{ id, attempt: 1, outcome: 'done', result: '1' }]))
    assert.equal(await ledger.status(id), 'running')
  })
})

test('an unknown settle function is rejected on enqueue', async () => {
  await assert.rejects(ledger.enqueue(createJobSpec('nowhere')))
  await assert.rejects(ledger.enqueue(buildJobSpec(), buildJobSpec({ settle: 'nowhere' })))
  await assert.rejects(ledger.enqueue(buildJobSpec({ actor: 'x', settle: 'job_delete_traces' })))
})

test('the settle functions of all tasks exist', async () => {
  const names = tasks.flatMap(({ settleFunction }) => settleFunction ?? [])
  assert.ok(names.includes('ai_turn_settle'))
  const missing = await query(
    `select name from unnest($1::text[]) as name where to_regprocedure(format('%I(job)', name)) is null`,
    [names],
  )
  assert.deepEqual(missing, [])
})
