import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { type Client, connect } from '../../sql/connections/driver.ts'
import { type Query, sql } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { type ClaimRequest, claimJobs, parseClaims, requeueDeliveries } from '../../sql/jobs/claims.ts'
import { readJobDetails } from '../../sql/jobs/details.ts'
import {
  type EnqueuedJob,
  endAttempts,
  enqueueJobs,
  type FinishEntry,
  type JobSpec,
  type ProgressEntry,
  scheduleJobs,
} from '../../sql/jobs/jobs.ts'
import { insertLease } from '../../sql/jobs/leases.ts'
import type { TestDatabase } from '../database.ts'

/** Short names for the ledger's statements and for reads of its tables. */

export interface JobRow {
  readonly id: string
  readonly status: string
  readonly label: string
  readonly progress_current: number | null
  readonly progress_total: number | null
  readonly seq: number
  readonly attempt: number
  readonly tries: number
  readonly interruptions: number
  readonly name: string
  readonly mailbox: string
  readonly mailbox_limit: number | null
  readonly ordinal: string
  readonly owner_id: number | null
  readonly lease_id: string | null
  readonly result: unknown
  readonly error_code: string | null
  readonly error_detail: string | null
  readonly run_at: Date
  readonly cancel_requested_at: Date | null
  readonly started_at: Date | null
  readonly finished_at: Date | null
}

export interface EventRow {
  readonly seq: number
  readonly kind: string
  readonly data: { readonly status?: string; readonly label?: string; readonly [key: string]: unknown }
}

export interface Delivery {
  /** Id of the job at `first`; null at runtime if its row is gone. */
  readonly id: string
  readonly mailbox: string
  readonly limit: number | null
  readonly first: number
  readonly task: string
  readonly owner: number | null
  readonly run_at: Date
  readonly locked_by: string | null
  /** Id of the delivery in graphile-worker's table. */
  readonly row: number
}

/** State that an idle worker reports with its lease. */
export const IDLE_LOAD = { poolIds: [], threads: 0, busy: 0, memoryBytes: 0 }

/** Attempt as the API returns it. */
export interface Attempt {
  readonly attempt: number
  readonly worker: string | null
  readonly claimed_at: string
  readonly ended_at: string | null
  readonly waited_seconds: number
  readonly ran_seconds: number | null
  readonly outcome: string | null
  readonly error: { readonly code: string; readonly detail: string } | null
}

/** Those fields of `readJobDetails` that tests use. */
export interface Details {
  readonly mailbox: unknown
  readonly payload: unknown
  readonly due_at: string | null
  readonly attempts: readonly Attempt[]
  readonly waits_for: {
    readonly ahead: number
    readonly queue: { readonly paused_at: string | null; readonly limit: number | null }
    readonly running: readonly { readonly job_id: string }[]
  } | null
  readonly log: readonly object[] | null
  readonly chain: { readonly retry_of: readonly string[]; readonly retried_by: readonly string[] }
}

export const TERMINAL_STATUSES = ['done', 'failed', 'cancelled']

/** Fields of a job to add; by default the job has its own mailbox. With `actor`, the job is a message to that actor. */
export type JobFields = Partial<JobSpec> & { readonly actor?: string | null }

export function buildJobSpec({ actor = null, ...fields }: JobFields = {}): JobSpec {
  const id = fields.id ?? uuidv7()
  return {
    id,
    name: 'test.task',
    queue: 'test',
    owner_id: null,
    mailbox: actor ?? `of ${id}`,
    mailbox_limit: actor === null ? null : 1,
    when_busy: 'wait',
    payload: {},
    max_tries: 3,
    delay_ms: null,
    request_id: null,
    ...fields,
  }
}

/** Runs `work` with a separate connection, whose transaction can stay open while the test uses other connections. */
export async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connect({ url, applicationName: 'test-client' })
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Finish entry whose result is a value instead of JSON. */
export interface FinishValues extends Omit<FinishEntry, 'result'> {
  readonly result?: unknown
}

export const toFinishEntry = ({ result, ...entry }: FinishValues): FinishEntry =>
  result === undefined ? entry : { ...entry, result: JSON.stringify(result) }

export type LedgerHelp = ReturnType<typeof createLedgerHelp>

export function createLedgerHelp({ db, query }: TestDatabase) {
  const enqueue = (...specs: readonly JobSpec[]): Promise<readonly EnqueuedJob[]> =>
    db.any(enqueueJobs(specs, 0))

  const row = async (id: string): Promise<JobRow> => {
    const [found] = await query('select * from job where id = $1', [id])
    assert.ok(found !== undefined, `there is no job ${id}`)
    return found as unknown as JobRow
  }

  const status = async (id: string): Promise<string> => (await row(id)).status

  /** Returns the job's status, or `delivered` if it is available and has a delivery. */
  const state = async (id: string): Promise<string> => {
    const found = await status(id)
    return found === 'available' && (await deliveries(id)).length > 0 ? 'delivered' : found
  }

  const events = async (id: string): Promise<EventRow[]> =>
    (await query('select seq, kind, data from job_event where job_id = $1 order by seq', [
      id,
    ])) as unknown as EventRow[]

  /** Reads the deliveries of the given jobs, or all deliveries if no job is given. */
  const deliveries = async (...ids: readonly string[]): Promise<Delivery[]> =>
    (await query(
      `select job.id, j.payload ->> 'mailbox' as mailbox, (j.payload ->> 'limit')::int as limit, (j.payload ->> 'first')::int as first,
         (j.payload ->> 'owner')::int as owner, t.identifier as task, j.run_at, j.locked_by, j.id::int as row
       from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
       left join job on job.mailbox = j.payload ->> 'mailbox' and job.ordinal = (j.payload ->> 'first')::bigint
       where cardinality($1::text[]) = 0 or job.id::text = any($1) order by j.id`,
      [ids],
    )) as unknown as Delivery[]

  const lease = async (
    ttlMs = 3_600_000,
    poolIds: readonly string[] = [],
    name = 'test',
  ): Promise<string> => {
    const id = randomUUID()
    await db.run(insertLease({ id, name, queues: ['test'], load: { ...IDLE_LOAD, poolIds } }, ttlMs))
    return id
  }

  /** Returns the delivery that the queue would hand out for this job. */
  const deliveryOf = async (id: string) => {
    const { name: task, mailbox, mailbox_limit: limit, ordinal, owner_id: owner } = await row(id)
    return { id, task, mailbox, limit, first: Number(ordinal), owner }
  }

  /** Claims a job as a worker does, with a delivery of the job's mailbox. Returns null if nothing was claimed. */
  const claim = async (id: string, leaseId: string) => {
    const [claimed] = await claimMany(leaseId, { delivery: await deliveryOf(id), freeSlots: 1 })
    assert.ok(claimed === undefined || claimed.id === id, 'another job of its mailbox was claimed')
    return claimed ?? null
  }

  /** Claims as a stopping worker does: deliveries that are not done return to the queue. */
  const claimMany = async (leaseId: string, ...wanted: readonly ClaimRequest[]) => {
    const { claims, again } = await db.one(claimJobs(leaseId, wanted))
    const left = wanted.filter(({ delivery }) => again.includes(delivery.mailbox))
    await db.run(requeueDeliveries(left.map(({ delivery }) => delivery)))
    return parseClaims({ claims })
  }

  /** Adds a running job; returns its id, attempt and lease. */
  const running = async (fields: JobFields = {}, leaseId?: string) => {
    const job = buildJobSpec(fields)
    await enqueue(job)
    const held = leaseId ?? (await lease())
    const claimed = await claim(job.id, held)
    assert.ok(claimed !== null, 'the job can be claimed')
    return { id: job.id, attempt: claimed.attempt, lease: held }
  }

  /** Makes these scheduled jobs due, and lets the scheduler run once. */
  const makeDue = async (...ids: readonly string[]): Promise<void> => {
    await query('update job set run_at = least(run_at, now()) where id = any($1)', [ids])
    await db.one(scheduleJobs(1000))
  }

  const finish = async (...entries: readonly FinishValues[]): Promise<string[]> => [
    ...(await endAttempts(db, entries.map(toFinishEntry))),
  ]

  const progress = async (
    id: string,
    attempt: number,
    ...steps: readonly { n: number; kind?: string; data: unknown }[]
  ) =>
    (await db.any(storeProgress(steps.map((step) => ({ id, attempt, kind: 'status', ...step }))))).map(
      (stored) => stored.id,
    )

  /** Reads the details of a job as the account `who` sees them, or as an admin if `who` is null. */
  const details = async (id: string, who: number | null = null): Promise<Details> => {
    const [found] = await query(readJobDetails.text, [who, who === null, id, [3600, 3600]])
    assert.ok(found !== undefined, `${id} is not to be seen`)
    return JSON.parse(found.json_build_object as string) as Details
  }

  /** Asserts the invariants of a job, and further ones if it has ended. */
  const assertSound = async (id: string): Promise<void> => {
    const job = await row(id)
    const all = await events(id)
    assert.deepEqual(
      all.map((event) => event.seq),
      all.map((_, i) => i + 1),
      `seq of ${id} has no gap`,
    )
    assert.equal(job.seq, all.length, `the row of ${id} knows its last seq`)
    const terminal = all.filter(
      (event) => event.kind === 'status' && TERMINAL_STATUSES.includes(event.data.status ?? ''),
    )
    if (!TERMINAL_STATUSES.includes(job.status)) return assert.deepEqual(terminal, [], `${id} has not ended`)
    assert.equal(terminal.length, 1, `${id} has exactly one terminal event`)
    assert.deepEqual(terminal[0], all.at(-1), `the terminal event of ${id} is the last`)
    assert.equal(terminal[0]!.data.status, job.status)
  }

  return {
    enqueue,
    row,
    status,
    state,
    events,
    deliveries,
    deliveryOf,
    lease,
    claim,
    claimMany,
    running,
    makeDue,
    finish,
    progress,
    details,
    assertSound,
  }
}

/** Stores progress and events. Returns the ids of the jobs whose attempt is current, see `job_progress`. */
export const storeProgress = (
  entries: readonly ProgressEntry[],
): Query<{ id: string; after: number | null }> =>
  sql.type(z.object({ id: z.string(), after: z.number().nullable() }))`
    select id, after from job_progress(${JSON.stringify(entries)}::jsonb)`
