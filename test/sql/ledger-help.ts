import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type Client, connect } from '../../sql/driver.ts'
import { uuidv7 } from '../../sql/ids.ts'
import {
  claimJobs,
  type Enqueued,
  endJobs,
  enqueueJobs,
  type FinishEntry,
  insertLease,
  type JobSpec,
  storeProgress,
} from '../../sql/jobs.ts'
import type { TestDatabase } from '../database.ts'

/** Short names for the ledger's statements, and looks at what they left behind. */

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
  readonly delivery: number
  readonly lease_id: string | null
  readonly actor: string | null
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
  readonly id: string
  readonly delivery: number
  readonly task: string
  readonly run_at: Date
  readonly locked_by: string | null
  /** Its row in the queue: jobs without actors can share one. */
  readonly row: number
}

/** What a worker without work says of itself. */
export const IDLE = { poolIds: [], threads: 0, memoryBytes: 0 }

export const TERMINAL = ['done', 'failed', 'cancelled']

export function spec(fields: Partial<JobSpec> = {}): JobSpec {
  return {
    id: uuidv7(),
    name: 'test.task',
    queue: 'test',
    owner_id: null,
    actor: null,
    when_busy: 'wait',
    payload: {},
    max_tries: 3,
    delay_ms: null,
    request_id: null,
    together: 1,
    ...fields,
  }
}

/** A connection of its own, for transactions that are held open. */
export async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connect({ url, applicationName: 'test-client' })
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** An end whose result is a value. */
export interface End extends Omit<FinishEntry, 'result'> {
  readonly result?: unknown
}

export const entryOf = ({ result, ...entry }: End): FinishEntry =>
  result === undefined ? entry : { ...entry, result: JSON.stringify(result) }

export type LedgerHelp = ReturnType<typeof ledgerOf>

export function ledgerOf({ db, query }: TestDatabase) {
  const enqueue = (...specs: readonly JobSpec[]): Promise<readonly Enqueued[]> => db.any(enqueueJobs(specs))

  const row = async (id: string): Promise<JobRow> => {
    const [found] = await query('select * from job where id = $1', [id])
    assert.ok(found !== undefined, `there is no job ${id}`)
    return found as unknown as JobRow
  }

  const status = async (id: string): Promise<string> => (await row(id)).status

  const events = async (id: string): Promise<EventRow[]> =>
    (await query('select seq, kind, data from job_event where job_id = $1 order by seq', [
      id,
    ])) as unknown as EventRow[]

  const deliveries = async (...ids: readonly string[]): Promise<Delivery[]> =>
    (await query(
      `select one ->> 0 as id, (one ->> 1)::int as delivery, t.identifier as task, j.run_at,
         j.locked_by, j.id::int as row
       from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
       cross join lateral json_array_elements(coalesce(j.payload -> 'jobs',
         json_build_array(json_build_array(j.payload -> 'id', j.payload -> 'delivery')))) with ordinality jobs (one, place)
       where cardinality($1::text[]) = 0 or one ->> 0 = any($1) order by j.id, place`,
      [ids],
    )) as unknown as Delivery[]

  const lease = async (ttlMs = 60_000, poolIds: readonly string[] = []): Promise<string> => {
    const id = randomUUID()
    await db.run(insertLease({ id, name: 'test', queues: ['test'], use: { ...IDLE, poolIds } }, ttlMs))
    return id
  }

  const claim = async (id: string, leaseId: string, delivery?: number) => {
    const [claimed] = await db.any(claimJobs(leaseId, [id], [delivery ?? (await row(id)).delivery]))
    return claimed ?? null
  }

  /** A running job: its id, attempt and lease. */
  const running = async (fields: Partial<JobSpec> = {}, leaseId?: string) => {
    const job = spec(fields)
    await enqueue(job)
    const held = leaseId ?? (await lease())
    const claimed = await claim(job.id, held)
    assert.ok(claimed !== null, 'the job can be claimed')
    return { id: job.id, attempt: claimed.attempt, lease: held }
  }

  const finish = async (...entries: readonly End[]): Promise<string[]> => [
    ...(await endJobs(db, entries.map(entryOf))),
  ]

  const progress = async (
    id: string,
    attempt: number,
    ...steps: readonly { n: number; kind?: string; data: unknown }[]
  ) =>
    (await db.any(storeProgress(steps.map((step) => ({ id, attempt, kind: 'status', ...step }))))).map(
      (stored) => stored.id,
    )

  /** What holds for every job at every time; `ended` for those that are over. */
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
      (event) => event.kind === 'status' && TERMINAL.includes(event.data.status ?? ''),
    )
    if (!TERMINAL.includes(job.status)) return assert.deepEqual(terminal, [], `${id} has not ended`)
    assert.equal(terminal.length, 1, `${id} has exactly one terminal event`)
    assert.deepEqual(terminal[0], all.at(-1), `the terminal event of ${id} is the last`)
    assert.equal(terminal[0]!.data.status, job.status)
  }

  return { enqueue, row, status, events, deliveries, lease, claim, running, finish, progress, assertSound }
}
