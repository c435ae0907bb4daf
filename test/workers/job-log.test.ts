import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uuidv7 } from '../../sql/ids.ts'
import { MAX_LOG_LINES, storeLogLines } from '../../sql/jobs/log.ts'
import { deleteExpiredJobs } from '../../sql/jobs/prune.ts'
import { createJobLog } from '../../workers/attempts/job-log.ts'
import { createTestDatabase, waitForLock } from '../database.ts'
import { buildJobSpec, createLedgerHelp, withClient } from '../sql/ledger-help.ts'
import { until } from '../until.ts'
import { log } from './parts.ts'

/** A job's page shows the lines that its worker logged about it. */

const database = await createTestDatabase()
const { db, query, url } = database
const ledger = createLedgerHelp(database)
const AT = '2026-01-31T12:00:00.123Z'

async function addJob(): Promise<string> {
  const added = buildJobSpec()
  await ledger.enqueue(added)
  return added.id
}
const createLine = (jobId: string, more: object = {}): string =>
  JSON.stringify({
    level: 30,
    time: AT,
    process: 'worker',
    pid: 7,
    jobId,
    task: 'test.task',
    attempt: 1,
    requestId: 'r-1',
    traceId: 't-1',
    msg: 'It went well',
    ...more,
  })
const readLines = (id: string) =>
  query('select message, data from job_log where job_id = $1 order by id', [id])

test('lines about a job are stored at intervals, the rest at the end, without redundant fields', async () => {
  const id = await addJob()
  const lines = createJobLog(20)
  lines.collect(createLine(id))
  lines.open(db, log)
  lines.collect(JSON.stringify({ level: 50, time: AT, msg: 'Not about a job' }))
  await until('the first line is stored', async () => (await readLines(id)).length === 1)
  lines.collect(createLine(id, { level: 40, attempt: 2, msg: 'It took long', ms: 300 }))
  await lines.close()
  await lines.close()
  assert.deepEqual((await ledger.details(id)).log, [
    { at: AT, attempt: 1, level: 'info', message: 'It went well', data: {} },
    { at: AT, attempt: 2, level: 'warn', message: 'It took long', data: { ms: 300 } },
  ])
})

test('only admins see the lines', async () => {
  const id = await addJob()
  const lines = createJobLog()
  lines.open(db, log)
  lines.collect(createLine(id))
  await lines.close()
  await query(`update job set owner_id = null where id = $1`, [id])
  assert.equal((await ledger.details(id, 1)).log, null)
  assert.equal((await ledger.details(id)).log?.length, 1)
})

test('a long line is cut, and lines beyond the maximum are only logged', async () => {
  const [id, other] = [await addJob(), await addJob()]
  const lines = createJobLog()
  lines.open(db, log)
  lines.collect(createLine(id, { stack: 'x'.repeat(10_000) }))
  for (let n = 0; n < 1000; n++) lines.collect(createLine(other, { n }))
  await lines.close()
  const [{ data }] = (await readLines(id)) as [{ data: { cut: string } }]
  assert.deepEqual([Object.keys(data), data.cut.length], [['cut'], 4000])
  assert.match(data.cut, /^\{"stack":"xxx/)
  const kept = await readLines(other)
  assert.deepEqual(
    kept.map(({ data }) => data),
    Array.from({ length: MAX_LOG_LINES }, (_, n) => ({ n })),
  )
  // A job that has its maximum of lines gets no later ones either.
  lines.collect(createLine(other, { n: 'one more' }))
  await lines.close()
  assert.equal((await readLines(other)).length, MAX_LOG_LINES)
})

test('lines are deleted with their job, and lines of a missing job are dropped', async () => {
  const [id, gone] = [await addJob(), uuidv7()]
  const kept = (job_id: string) =>
    storeLogLines([{ job_id, attempt: null, at: AT, level: 'info', message: 'm', data: {} }])
  await db.run(kept(gone))
  await db.run(kept(id))
  assert.deepEqual([(await readLines(gone)).length, (await readLines(id)).length], [0, 1])
  await query('delete from job where id = $1', [id])
  assert.deepEqual(await readLines(id), [])
})

test('lines wait for a transaction that ends or deletes their job', async () => {
  const [ending, gone] = [await ledger.running(), await addJob()]
  const end = JSON.stringify([{ ...ending, outcome: 'failed', code: 'internal' }])
  const lines = createJobLog()
  lines.open(db, log)
  for (const id of [ending.id, gone]) lines.collect(createLine(id))
  const closing = await withClient(url, async (client) => {
    await client.query('begin')
    await client.query('select job_finish($1, 2, 5)', [end])
    await client.query('delete from job where id = $1', [gone])
    const closing = { done: lines.close() }
    await waitForLock(query)
    await client.query('commit')
    return closing
  })
  await closing.done
  assert.deepEqual([(await readLines(ending.id)).length, (await readLines(gone)).length], [1, 0])
})

test('pruning does not deadlock with the storing of lines', async () => {
  const [id, other] = [await ledger.running(), await ledger.running()]
  await ledger.finish({ ...id, outcome: 'done' }, { ...other, outcome: 'done' })
  await query(`update job set finished_at = now() - interval '1 day' where id = any($1)`, [[id.id, other.id]])
  await withClient(url, async (client) => {
    await client.query('begin')
    await client.query('select from job where id = $1 for key share', [id.id])
    assert.deepEqual(await db.one(deleteExpiredJobs('others', [3600, 3600], 1000)), { count: 1 })
    await client.query('commit')
  })
  assert.deepEqual(await db.one(deleteExpiredJobs('others', [3600, 3600], 1000)), { count: 1 })
})

test('lines that cannot be stored are reported, without further effects', async () => {
  const id = await addJob()
  await query('alter table job_log rename to elsewhere')
  const lines = createJobLog()
  const warnings: unknown[] = []
  lines.open(db, { ...log, warn: (...words: unknown[]) => warnings.push(words[1]) } as unknown as typeof log)
  lines.collect(createLine(id))
  await lines.close()
  await query('alter table elsewhere rename to job_log')
  assert.deepEqual(warnings, ['Failed to store log lines for the job pages'])
  lines.collect(createLine(id))
  await lines.close()
  assert.equal((await readLines(id)).length, 1)
})
