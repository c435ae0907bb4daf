import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { connect } from '../../sql/driver.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { keepLines, MOST_LINES } from '../../sql/jobs/log.ts'
import { createJobLines } from '../../workers/attempts/lines.ts'
import { testDatabase } from '../database.ts'
import { ledgerOf, spec } from '../sql/ledger-help.ts'
import { until } from '../until.ts'
import { log } from './parts.ts'

/** What the log of a worker says about jobs, on their pages. */

const base = await testDatabase()
const { db, query, url } = base
const ledger = ledgerOf(base)
const AT = '2026-01-31T12:00:00.123Z'

async function job(): Promise<string> {
  const added = spec()
  await ledger.enqueue(added)
  return added.id
}
const line = (jobId: string, more: object = {}): string =>
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
const stored = (id: string) => query('select message, data from job_log where job_id = $1 order by id', [id])

test('lines that name a job are stored at intervals, the rest at the end, without what the job says already', async () => {
  const id = await job()
  const lines = createJobLines(20)
  lines.take(line(id))
  lines.open(db, log)
  lines.take(JSON.stringify({ level: 50, time: AT, msg: 'Not about a job' }))
  await until('the first is there', async () => (await stored(id)).length === 1)
  lines.take(line(id, { level: 40, attempt: 2, msg: 'It took long', ms: 300 }))
  await lines.close()
  await lines.close()
  assert.deepEqual((await ledger.details(id)).log, [
    { at: AT, attempt: 1, level: 'info', message: 'It went well', data: {} },
    { at: AT, attempt: 2, level: 'warn', message: 'It took long', data: { ms: 300 } },
  ])
})

test('admins alone see them', async () => {
  const id = await job()
  const lines = createJobLines()
  lines.open(db, log)
  lines.take(line(id))
  await lines.close()
  await query(`update job set owner_id = null where id = $1`, [id])
  assert.equal((await ledger.details(id, 1)).log, null)
  assert.equal((await ledger.details(id)).log?.length, 1)
})

test('a long line is cut, and a flood of lines is left to the log', async () => {
  const [id, other] = [await job(), await job()]
  const lines = createJobLines()
  lines.open(db, log)
  lines.take(line(id, { stack: 'x'.repeat(10_000) }))
  for (let n = 0; n < 1000; n++) lines.take(line(other, { n }))
  await lines.close()
  const [{ data }] = (await stored(id)) as [{ data: { cut: string } }]
  assert.deepEqual([Object.keys(data), data.cut.length], [['cut'], 4000])
  assert.match(data.cut, /^\{"stack":"xxx/)
  const kept = await stored(other)
  assert.deepEqual(
    kept.map(({ data }) => data),
    Array.from({ length: MOST_LINES }, (_, n) => ({ n })),
  )
  // Also when they come later.
  lines.take(line(other, { n: 'one more' }))
  await lines.close()
  assert.equal((await stored(other)).length, MOST_LINES)
})

test('they go with their job, and of a job that is gone none are kept', async () => {
  const [id, gone] = [await job(), uuidv7()]
  const kept = (job_id: string) =>
    keepLines([{ job_id, attempt: null, at: AT, level: 'info', message: 'm', data: {} }])
  await db.run(kept(gone))
  await db.run(kept(id))
  assert.deepEqual([(await stored(gone)).length, (await stored(id)).length], [0, 1])
  await query('delete from job where id = $1', [id])
  assert.deepEqual(await stored(id), [])
})

test('who deletes jobs is not waited for', async () => {
  const [id, other] = [await job(), await job()]
  const client = await connect({ url, applicationName: 'deleting' })
  after(() => client.end())
  await client.query('begin')
  await client.query('delete from job where id = $1', [id])
  const lines = createJobLines()
  lines.open(db, log)
  for (const one of [id, other]) lines.take(line(one))
  await lines.close()
  await client.query('commit')
  assert.deepEqual([(await stored(id)).length, (await stored(other)).length], [0, 1])
})

test('what can not be stored is told, and stops nothing', async () => {
  const id = await job()
  await query('alter table job_log rename to elsewhere')
  const lines = createJobLines()
  const told: unknown[] = []
  lines.open(db, { ...log, warn: (...words: unknown[]) => told.push(words[1]) } as unknown as typeof log)
  lines.take(line(id))
  await lines.close()
  await query('alter table elsewhere rename to job_log')
  assert.deepEqual(told, ['Log lines of jobs are not on their pages'])
  lines.take(line(id))
  await lines.close()
  assert.equal((await stored(id)).length, 1)
})
