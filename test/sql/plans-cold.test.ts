import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { connect } from '../../sql/driver.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { readJob } from '../../sql/jobs.ts'
import { createReader } from '../../sql/reader.ts'
import { testDatabase } from '../database.ts'
import { until } from '../until.ts'
import { spec } from './ledger-help.ts'

/** Plans that were made for an empty table, before anybody analyzed it, and are kept while it fills. */

const FLOOD = 20_000
const FEW = 12

const { url } = await testDatabase()
// Plans are kept by a connection.
const client = await connect({ url, applicationName: 'test' })
after(() => client.end())

/** A statement that is prepared once. */
async function query(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const name = createHash('sha256').update(text).digest('hex').slice(0, 20)
  return (await client.query({ name, text, values })).rows
}

/** Rows of the ledger that were read without an index so far. */
async function read(): Promise<number> {
  await query('select pg_stat_force_next_flush()')
  const [row] = await query(`select seq_tup_read::int as n from pg_stat_user_tables where relname = 'job'`)
  return row!.n as number
}

async function enqueue(count: number, front?: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, () => uuidv7())
  const specs = ids.map((id) => spec({ id, ...(front === undefined ? {} : { front }) }))
  await query('select job_enqueue($1::jsonb)', [JSON.stringify(specs)])
  return ids
}

const end = (jobs: readonly Record<string, unknown>[]) =>
  query('select job_done($1::uuid[], $2::int4[], $3::jsonb, $4::int4[], $5::timestamptz[], $6::text[])', [
    jobs.map(({ id }) => id),
    jobs.map(({ attempt }) => attempt),
    JSON.stringify(jobs.map(() => ({}))),
    // Held: what runs is ended all the same.
    jobs.map(() => 1),
    [new Date()],
    [],
  ])

beforeEach(async () => {
  await query('truncate job, job_event_row')
  await query('analyze job')
})

test('a flood does not make claims, progress and ends read the whole ledger', async () => {
  const cycle = async (ids: readonly string[]): Promise<void> => {
    const claimed = await query(
      'select id, attempt from job_claim(gen_random_uuid(), $1::uuid[], array_fill(1, array[$2::int]))',
      [ids, ids.length],
    )
    const entries = claimed.map((job) => ({ ...job, n: 1, kind: 'status', data: { label: 'x' } }))
    await query('select job_progress($1::jsonb)', [JSON.stringify(entries)])
    const ends = claimed.splice(0, FEW / 2).map((job) => ({ ...job, outcome: 'cancelled' }))
    const ended = await query('select job_finish($1::jsonb, 2, 5)', [JSON.stringify(ends)])
    assert.equal(ended.length, FEW / 2)
    const refused = await end(claimed)
    assert.equal(refused.length, 0)
  }
  // Often enough for plans that do not look at the values.
  for (let i = 0; i < 8; i++) await cycle(await enqueue(FEW))
  const ids = await enqueue(FLOOD)
  const before = await read()
  await cycle(ids.slice(0, FEW))
  assert.equal((await read()) - before, 0)
})

test('nor do takes, and what becomes of the jobs that they hold', async () => {
  let spent: unknown[] = []
  const cycle = async (): Promise<void> => {
    const [taken] = await query(
      `select hold, jobs from job_pull(gen_random_uuid(), 'test', 'io', $1::int, -1, '{}', '{}', true, 1, $2::int8[])`,
      [FEW, spent],
    )
    const jobs = (JSON.parse(taken!.jobs as string) as string[][]).map(([id]) => ({ id, attempt: 1 }))
    assert.equal(jobs.length, FEW)
    await query('select job_begin($1::uuid[], $2)', [jobs.slice(0, 2).map(({ id }) => id), false])
    await query('select job_begin($1::uuid[], $2)', [jobs.slice(2, 4).map(({ id }) => id), true])
    assert.deepEqual(await end(jobs), [])
    spent = [taken!.hold]
  }
  for (let i = 0; i < 8; i++) {
    await enqueue(FEW, 0)
    await cycle()
  }
  await enqueue(FLOOD, 0)
  const before = await read()
  await cycle()
  assert.equal((await read()) - before, 0)
})

test('a batch finds its jobs by their ids, however few of a kind the statistics know of', async () => {
  const used = async (): Promise<number> => {
    await query('select pg_stat_force_next_flush()')
    const [row] = await query(
      `select sum(idx_scan)::int as n from pg_stat_user_indexes where indexrelname in ('job_running_idx', 'job_waiting_idx')`,
    )
    return row!.n as number
  }
  await enqueue(FLOOD)
  const ids = await enqueue(FEW)
  await query(`update job set status = 'done', finished_at = now()
    where id in (select id from job order by ordinal limit ${FLOOD})`)
  await query('vacuum analyze job')
  // The statistics know of none that runs, and of hardly any that waits.
  const claimed = await query(
    'select id, attempt from job_claim(gen_random_uuid(), $1::uuid[], array_fill(1, array[$2::int]))',
    [ids, ids.length],
  )
  assert.equal(claimed.length, FEW)
  const before = await used()
  const entries = claimed.map((job) => ({ ...job, n: 1, kind: 'status', data: { label: 'x' } }))
  await query('select job_progress($1::jsonb)', [JSON.stringify(entries)])
  assert.deepEqual(await end(claimed.splice(0, FEW / 2)), [])
  const ends = claimed.map((job) => ({ ...job, outcome: 'release' }))
  await query('select job_finish($1::jsonb, 2, 5)', [JSON.stringify(ends)])
  await query('select job_send($1::uuid[], 25)', [ids])
  assert.equal(await used(), before)
})

test('the reader plans anew from time to time', async () => {
  const reader = await createReader({ url, applicationName: 'test-reader' }, 20)
  const job = async (id: string): Promise<void> => {
    assert.match((await reader.text(readJob, [null, true, id, 3600]))!, new RegExp(id))
  }
  const [first] = await enqueue(1)
  for (let i = 0; i < 8; i++) await job(first!)
  const ids = await enqueue(FLOOD)
  await until('a read goes by the index', async () => {
    const before = await read()
    await job(ids[0]!)
    await reader.texts({ name: 'flush', text: `select pg_stat_force_next_flush()::text` }, [])
    return (await read()) === before
  })
  await reader.close()
})
