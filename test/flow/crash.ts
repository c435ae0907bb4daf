import assert from 'node:assert/strict'
import type { TestDatabase } from '../database.ts'
import { buildTextPdf } from '../pdfs.ts'
import { type Child, type Client, type Frame, type Stream, startProcess } from '../service.ts'
import { until } from '../until.ts'

/** Helpers for crash tests: slow documents, a record of all writes, and assertions on complete streams. */

type Query = TestDatabase['query']

/** Half of production's lease: short for a test, but long enough for a busy machine to renew it. */
export const SHORT_LEASE = { LEASE_SECONDS: '1' }
// Generous, so that no test fails on a busy machine.
const DEADLINE_MS = 60_000

/** A committed write of a page or an event. `number` is the page number or the event's seq. */
export interface Write {
  readonly what: 'page' | 'event'
  readonly job_id: string
  readonly number: number
  readonly attempt: number
  /** Name of the connection that wrote: `<worker>-children-thread`, `<worker>-worker` or `millrace-edge`. */
  readonly writer: string
  /** Time of the write, in ms on the database's clock. */
  readonly at: number
}

/** Records all writes of pages and events from now on, and slows each page to at least `pageMs`. */
export async function recordWrites(query: Query, pageMs = 0): Promise<void> {
  await query(`
    create table witnessed (ordinal bigint generated always as identity, what text, job_id uuid, number integer,
      attempt integer, writer text, at timestamptz default clock_timestamp());
    create function witness_page() returns trigger language plpgsql as $$ begin
      perform pg_sleep(${pageMs / 1000});
      insert into witnessed (what, job_id, number, attempt, writer)
      select 'page', new.job_id, new.page_number, attempt, current_setting('application_name') from job where id = new.job_id;
      return new;
    end $$;
    create function witness_event() returns trigger language plpgsql as $$ begin
      insert into witnessed (what, job_id, number, attempt, writer)
      select 'event', new.job_id, new.seq, attempt, current_setting('application_name') from job where id = new.job_id;
      return new;
    end $$;
    create trigger witness_page after insert or update on document_page for each row execute function witness_page();
    create trigger witness_event after insert or update on job_event_row for each row execute function witness_event()`)
}

export async function readWrites(query: Query, what: Write['what'], jobId: string): Promise<Write[]> {
  const rows = await query(
    `select what, job_id, number, attempt, writer, extract(epoch from at)::float8 * 1000 as at
    from witnessed where what = $1 and job_id = $2 order by ordinal`,
    [what, jobId],
  )
  return rows as unknown as Write[]
}

/** Returns the current time of the database's clock, in ms. */
export async function readClock(query: Query): Promise<number> {
  const [row] = await query('select extract(epoch from clock_timestamp())::float8 * 1000 as ms')
  return row!.ms as number
}

/**
 * Starts a worker for documents whose database connections carry this name. The worker stops with the test that starts
 * it.
 */
export function startWorker(
  url: string,
  name: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Child> {
  return startProcess('worker', url, {
    PROJECT_NAME: name,
    WORKER_QUEUES: 'documents',
    ...SHORT_LEASE,
    ...env,
  })
}

export async function uploadText(client: Client, pages: number, title: string): Promise<number> {
  const bytes = await buildTextPdf(pages, { line: () => title })
  const uploaded = await client.upload(bytes, `${title}.pdf`)
  assert.equal(uploaded.status, 201)
  return ((await uploaded.json()) as { id: number }).id
}

/** Starts an extraction and returns the id of its job. */
export async function extract(client: Client, documentId: number, query = ''): Promise<string> {
  const started = await client.post(`/api/v1/documents/${documentId}/extract?background=true${query}`)
  assert.equal(started.status, 202)
  return ((await started.json()) as { job_id: string }).job_id
}

/** Waits until the job has stored at least `count` pages, in `attempt` if given. */
export function waitForPages(query: Query, jobId: string, count: number, attempt?: number): Promise<unknown> {
  return until(
    `at least ${count} pages are stored`,
    async () => {
      const pages = await readWrites(query, 'page', jobId)
      return pages.filter((page) => attempt === undefined || page.attempt === attempt).length >= count
    },
    DEADLINE_MS,
  )
}

export interface JobRow {
  readonly status: string
  readonly attempt: number
  readonly tries: number
  readonly interruptions: number
  readonly result: unknown
}

export async function readJobRow(query: Query, jobId: string): Promise<JobRow> {
  const [row] = await query('select status, attempt, tries, interruptions, result from job where id = $1', [
    jobId,
  ])
  return row as unknown as JobRow
}

/** Waits until the job has ended with any outcome. */
export function waitForJob(query: Query, jobId: string, deadlineMs = DEADLINE_MS): Promise<JobRow> {
  const ended = async (): Promise<JobRow | null> => {
    const row = await readJobRow(query, jobId)
    return ['done', 'failed', 'cancelled'].includes(row.status) ? row : null
  }
  return until(`job ${jobId} has ended`, ended, deadlineMs) as Promise<JobRow>
}

/** Finds the worker that runs the job, and returns it with another worker. */
export async function findHolder(
  query: Query,
  jobId: string,
  workers: readonly Child[],
): Promise<[holder: Child, other: Child]> {
  const [row] = await query(
    'select name from worker_lease where id = (select lease_id from job where id = $1)',
    [jobId],
  )
  // Compare process ids, because a worker that was declared dead has a new lease.
  const holder = workers.find(({ process }) => `${row?.name}`.endsWith(`/${process.pid}`))
  const other = workers.find((worker) => worker !== holder)
  assert.ok(holder && other, 'one of the workers runs the job')
  return [holder, other]
}

/** Waits for an attempt of the job and returns its start, in ms on the database's clock. */
export function waitForAttemptStart(query: Query, jobId: string, attempt: number): Promise<number> {
  const began = async (): Promise<number | null> => {
    const [row] = await query(
      `select extract(epoch from min(at))::float8 * 1000 as at from witnessed
      where what = 'event' and job_id = $1 and attempt = $2 and writer like '%-worker'`,
      [jobId, attempt],
    )
    return row?.at as number | null
  }
  return until(`attempt ${attempt} has begun`, began, DEADLINE_MS)
}

/** Returns all frames of a stream once the server has ended it. */
export function readWholeStream(stream: Stream): Promise<readonly Frame[]> {
  return stream.waitForEnd(DEADLINE_MS)
}

const TERMINAL_STATUSES = ['done', 'failed', 'cancelled']

/** Asserts that frames are ordered and unique, and that only the last is terminal. Returns the data of the last one. */
export function assertComplete(frames: readonly Frame[]): Frame['data'] {
  const ids = frames.map((frame) => Number(frame.id))
  assert.deepEqual(
    ids,
    [...new Set(ids)].sort((a, b) => a - b),
    'frames come in order and none twice',
  )
  const terminal = frames.filter(
    (frame) => frame.event === 'status' && TERMINAL_STATUSES.includes(frame.data.status ?? ''),
  )
  assert.equal(terminal.length, 1, 'exactly one terminal frame')
  assert.equal(terminal[0], frames.at(-1), 'the terminal frame is the last')
  return terminal[0]!.data
}

/** Asserts that no event of the job is missing after the first frame, which is the initial state. */
export async function assertGapless(query: Query, jobId: string, frames: readonly Frame[]): Promise<void> {
  const [first, ...rest] = frames.map((frame) => Number(frame.id))
  const rows = await query('select seq from job_event where job_id = $1 and seq > $2 order by seq', [
    jobId,
    first,
  ])
  const stored = rows.map(({ seq }) => seq)
  assert.deepEqual(rest, stored, 'no frame is missing')
}

/** Asserts that each of `count` pages was written exactly once, and returns the writes. */
export async function assertPagesOnce(query: Query, jobId: string, count: number): Promise<readonly Write[]> {
  const pages = await readWrites(query, 'page', jobId)
  const expected = Array.from({ length: count }, (_, i) => i + 1)
  assert.deepEqual(
    pages.map(({ number }) => number),
    expected,
    'every page is written once, in order',
  )
  return pages
}
