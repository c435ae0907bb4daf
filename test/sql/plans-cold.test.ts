import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { readJob } from '../../sql/jobs/jobs.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'
import { buildJobSpec } from './ledger-help.ts'

/** The server plans statements while a table is empty and not analyzed, and keeps those plans while the table fills. */

const FLOOD_SIZE = 2000
const CLAIM_SIZE = 12

const { url } = await createTestDatabase()
// One connection for all statements, because plans belong to a connection.
const client = await connect({ url, applicationName: 'test' })
after(() => client.end())

/** Runs a statement that is prepared at its first call. */
async function query(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const name = createHash('sha256').update(text).digest('hex').slice(0, 20)
  return (await client.query({ name, text, values })).rows
}

/** Counts the rows of `job` that sequential scans have read. */
async function countScannedRows(): Promise<number> {
  await query('select pg_stat_force_next_flush()')
  const [row] = await query(`select seq_tup_read::int as n from pg_stat_user_tables where relname = 'job'`)
  return row!.n as number
}

async function enqueueJobs(count: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, () => uuidv7())
  const specs = ids.map((id) => buildJobSpec({ id, mailbox: 'test.task/0' }))
  await query('select job_enqueue($1::jsonb)', [JSON.stringify(specs)])
  return ids
}

interface Attempt {
  readonly id: string
  readonly attempt: number
}

/** Counts the index entries of `job` that have been read. */
async function countIndexReads(): Promise<number> {
  await query('select pg_stat_force_next_flush()')
  const [row] = await query(
    `select sum(idx_tup_read)::int as n from pg_stat_user_indexes where relname = 'job'`,
  )
  return row!.n as number
}

/** Claims the first `CLAIM_SIZE` waiting jobs. */
async function claimJobs(): Promise<Attempt[]> {
  const [row] = await query(
    `select claims from job_claim((select id from worker_lease), array['test.task'], array['test.task/0'], array[null::int], array[0::bigint],
       array[$1::int])`,
    [CLAIM_SIZE],
  )
  const claimed = JSON.parse(row!.claims as string) as [id: string, name: string, attempt: number][]
  assert.equal(claimed.length, CLAIM_SIZE)
  return claimed.map(([id, , attempt]) => ({ id, attempt }))
}

const completeJobs = (jobs: readonly Attempt[]) =>
  query('select job_finish($1::jsonb, 2, 5)', [
    JSON.stringify(jobs.map((job) => ({ ...job, outcome: 'done' }))),
  ])

await query(
  `insert into worker_lease (id, name, queues, expires_at) values (gen_random_uuid(), 'w', '{}', now() + interval '1 h')`,
)
beforeEach(async () => {
  await query('truncate job, job_event_row cascade')
  await query('analyze job')
})

test('claims, progress and ends do not scan the whole ledger during a flood', async () => {
  const runCycle = async (): Promise<void> => {
    const claimed = await claimJobs()
    const entries = claimed.map((job) => ({ ...job, n: 1, kind: 'status', data: { label: 'x' } }))
    await query('select job_progress($1::jsonb)', [JSON.stringify(entries)])
    const ends = claimed
      .splice(0, CLAIM_SIZE / 2)
      .map((job, i) => ({ ...job, outcome: i % 2 ? 'cancelled' : 'retry', delay_ms: 60_000 }))
    const ended = await query('select job_finish($1::jsonb, 2, 5)', [JSON.stringify(ends)])
    assert.equal(ended.length, CLAIM_SIZE / 2)
    assert.equal((await completeJobs(claimed)).length, claimed.length)
  }
  // The server may choose a generic plan after five executions.
  for (let i = 0; i < 8; i++) {
    await enqueueJobs(CLAIM_SIZE)
    await runCycle()
  }
  await enqueueJobs(FLOOD_SIZE)
  const before = await countScannedRows()
  const visitsBefore = await countIndexReads()
  await runCycle()
  await enqueueJobs(CLAIM_SIZE)
  assert.ok((await countIndexReads()) - visitsBefore < 1000, 'nor all that waits')
  assert.equal((await countScannedRows()) - before, 0)
})

test('adding, claiming and ending messages of an actor does not read its scheduled ones', async () => {
  const scheduled = Array.from({ length: FLOOD_SIZE }, () =>
    buildJobSpec({ actor: 'actor', delay_ms: 3_600_000 }),
  )
  const message = async (): Promise<void> => {
    const job = buildJobSpec({ actor: 'actor' })
    await query('select job_enqueue($1::jsonb)', [JSON.stringify([job])])
    const [row] = await query(
      `select claims from job_claim((select id from worker_lease), array['test.task'], array['actor'], array[1],
         array[currval('job_ordinal_seq')], array[1])`,
    )
    assert.equal(JSON.parse(row!.claims as string)[0][0], job.id)
    assert.equal((await completeJobs([{ id: job.id, attempt: 1 }])).length, 1)
  }
  for (let i = 0; i < 8; i++) await message()
  await query('select job_enqueue($1::jsonb)', [JSON.stringify(scheduled)])
  const [before, visitsBefore] = [await countScannedRows(), await countIndexReads()]
  for (let i = 0; i < 8; i++) await message()
  assert.ok((await countIndexReads()) - visitsBefore < 1000)
  assert.equal((await countScannedRows()) - before, 0)
})

test('a batch finds its jobs by id, however few the statistics report', async () => {
  const countScans = async (): Promise<number> => {
    await query('select pg_stat_force_next_flush()')
    const [row] = await query(
      `select sum(idx_scan)::int as n from pg_stat_user_indexes where indexrelname in ('job_running_idx', 'job_mailbox_idx')`,
    )
    return row!.n as number
  }
  await enqueueJobs(FLOOD_SIZE)
  const ids = await enqueueJobs(CLAIM_SIZE)
  await query(`update job set status = 'done', finished_at = now()
    where id in (select id from job order by ordinal limit ${FLOOD_SIZE})`)
  await query('vacuum analyze job')
  // The statistics say that no job is running and hardly any is waiting.
  const claimed = await claimJobs()
  const before = await countScans()
  const entries = claimed.map((job) => ({ ...job, n: 1, kind: 'status', data: { label: 'x' } }))
  await query('select job_progress($1::jsonb)', [JSON.stringify(entries)])
  assert.equal((await completeJobs(claimed.splice(0, CLAIM_SIZE / 2))).length, CLAIM_SIZE / 2)
  const ends = claimed.map((job) => ({ ...job, outcome: 'retry', delay_ms: 60_000 }))
  await query('select job_finish($1::jsonb, 2, 5)', [JSON.stringify(ends)])
  await query('select job_deliver($1::uuid[])', [ids])
  assert.equal(await countScans(), before)
  await query(`update job set status = 'available' where id = any($1) and status = 'scheduled'`, [ids])
  await query('select job_announce($1::uuid[])', [ids])
  assert.equal(await countScans(), before + 1, 'one for the first job')
})

test('the reader replans from time to time', async () => {
  const reader = await createReader({ url, applicationName: 'test-reader' }, 20)
  const job = async (id: string): Promise<void> => {
    assert.match((await reader.text(readJob, [null, true, id, [3600, 3600]]))!, new RegExp(id))
  }
  const [first] = await enqueueJobs(1)
  for (let i = 0; i < 8; i++) await job(first!)
  const ids = await enqueueJobs(FLOOD_SIZE)
  await until('a read uses the index', async () => {
    const before = await countScannedRows()
    await job(ids[0]!)
    await reader.texts({ name: 'flush', text: `select pg_stat_force_next_flush()::text` }, [])
    return (await countScannedRows()) === before
  })
  await reader.close()
})
