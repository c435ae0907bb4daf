import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { createTestDatabase } from '../database.ts'
import type { Child } from '../service.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'
import { startReader } from './reader.ts'

// Enough pages for several batches, because the database still stores what a frozen worker has already sent.
const PAGES = 120
const LATE_PAGE = 110
// Longer than the silence after which a worker gives up a connection.
const FROZEN_MS = 6_000
// Slow enough to freeze a worker in the middle of its pages on a busy machine.
const PAGE_MS = 20

const { url, query } = await createTestDatabase()
await crash.recordWrites(query, PAGE_MS)
const client = await startReader(url)
const workers = await Promise.all([crash.startWorker(url, 'first'), crash.startWorker(url, 'second')])

test('a worker that freezes while it writes pages blocks nothing', async (t) => {
  const id = await crash.uploadText(client, PAGES, 'frozen in a transaction')
  const gate = await closeGate(t, id, 5)
  const jobId = await crash.extract(client, id)
  await until('page 5 waits at the gate', () => hasTransaction('active'))

  const [zombie] = await crash.findHolder(query, jobId, workers)
  const frozenAt = await crash.readClock(query)
  const lease = await freeze(zombie)
  await gate.open()
  // The database ends the transaction itself, because the worker sends no commit.
  await until('the write has ended', async () => !(await hasTransaction('active')))
  const takenOverAt = await crash.waitForAttemptStart(query, jobId, 2)
  t.diagnostic(`taken over after ${Math.round(takenOverAt - frozenAt)} ms`)
  assert.equal((await crash.waitForJob(query, jobId)).status, 'done')
  zombie.process.kill('SIGCONT')
  await waitForNewLease(zombie, lease)
  await assertNoWritesAfter(jobId, zombie, takenOverAt)
})

test('a worker that resumes after its job was taken over changes nothing and keeps working', async (t) => {
  const id = await crash.uploadText(client, PAGES, 'frozen')
  // The gate keeps the next worker busy until the frozen one resumes. A worker frozen at the gate would keep the lock
  // on its job's row.
  const gate = await closeGate(t, id, LATE_PAGE, 2)
  const jobId = await crash.extract(client, id)
  const stream = await client.stream(`/api/v1/jobs/${jobId}/events`)
  await crash.waitForPages(query, jobId, 5)

  const [zombie, heir] = await crash.findHolder(query, jobId, workers)
  const frozenAt = await crash.readClock(query)
  const lease = await freeze(zombie)
  const takenOverAt = await crash.waitForAttemptStart(query, jobId, 2)
  t.diagnostic(`taken over after ${Math.round(takenOverAt - frozenAt)} ms`)
  await until('the freeze is over', async () => (await crash.readClock(query)) - frozenAt > FROZEN_MS, 15_000)
  await until(`page ${LATE_PAGE} waits at the gate`, () => hasTransaction('active'))
  zombie.process.kill('SIGCONT')
  await waitForNewLease(zombie, lease)
  await gate.open()

  const frames = await crash.readWholeStream(stream)
  assert.deepEqual(crash.assertComplete(frames).result, { read: PAGES, unread: 0, skipped: 0 })
  await crash.assertGapless(query, jobId, frames)
  await assertNoWritesAfter(jobId, zombie, takenOverAt)

  await heir.kill('SIGTERM')
  const next = await crash.extract(client, await crash.uploadText(client, 3, 'for the zombie'))
  assert.equal((await crash.waitForJob(query, next)).status, 'done')
  const pages = await crash.readWrites(query, 'page', next)
  assert.deepEqual([...new Set(pages.map(({ writer }) => writer))], [`${workerName(zombie)}-children-thread`])
})

function workerName(worker: Child): string {
  return workers[0] === worker ? 'first' : 'second'
}

/** Freezes the process with SIGSTOP, and returns the id of its lease. */
async function freeze(worker: Child): Promise<unknown> {
  // On a busy machine the first lease may come late.
  const lease = await until('the worker holds a lease', async () => (await readLeases(worker))[0])
  worker.process.kill('SIGSTOP')
  return lease.id
}

/** Waits until the process has noticed that it was declared dead, and has a new lease. */
async function waitForNewLease(worker: Child, former: unknown): Promise<void> {
  await until('the frozen worker holds a lease again', async () => {
    const leases = await readLeases(worker)
    return leases.length === 1 && leases[0]!.id !== former
  })
}

function readLeases({ process }: Child): Promise<Record<string, unknown>[]> {
  return query('select id from worker_lease where name like $1 and expires_at > now()', [`%/${process.pid}`])
}

async function assertNoWritesAfter(jobId: string, zombie: Child, takenOverAt: number): Promise<void> {
  const all = [
    ...(await crash.readWrites(query, 'page', jobId)),
    ...(await crash.readWrites(query, 'event', jobId)),
  ]
  const late = all.filter(
    ({ writer, at }) => at >= takenOverAt && writer.startsWith(`${workerName(zombie)}-`),
  )
  assert.deepEqual(late, [])
  assert.equal((await crash.readJobRow(query, jobId)).attempt, 2)
  await crash.assertPagesOnce(query, jobId, PAGES)
}

const GATE_LOCK_ID = 7001

/** Blocks the transaction in which this attempt or a later one writes this page, until `open` is called. */
async function closeGate(
  t: TestContext,
  documentId: number,
  page: number,
  attempt = 1,
): Promise<{ open(): Promise<void> }> {
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  let opening: Promise<void> | null = null
  const open = (): Promise<void> => {
    opening ??= holder.end()
    return opening
  }
  // Open the gate even if the test fails; otherwise the next test would wait for it.
  t.after(open)
  await holder.query(`
    select pg_advisory_lock(${GATE_LOCK_ID});
    create or replace function gate() returns trigger language plpgsql as $$ begin
      if (select job.attempt from job where id = new.job_id) >= ${attempt} then
        perform pg_advisory_xact_lock_shared(${GATE_LOCK_ID});
      end if;
      return new;
    end $$;
    create or replace trigger gate after insert on document_page for each row
      when (new.document_id = ${documentId} and new.page_number = ${page}) execute function gate()`)
  return { open }
}

/** True if a transaction at the gate has this state. */
async function hasTransaction(state: 'active' | 'idle in transaction'): Promise<boolean> {
  const rows = await query(
    `select from pg_stat_activity where application_name like '%-children-thread' and datname = current_database() and state = $1
    and (state <> 'active' or wait_event = 'advisory')`,
    [state],
  )
  return rows.length > 0
}
