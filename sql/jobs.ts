import { z } from 'zod'
import { noRows, type Queries, type Query, sql } from './db.ts'
import type { ReadStatement } from './reader.ts'

/** Statements of the job ledger; the states are in `schema/06-jobs.sql`, the moves between them in `functions/jobs/`. */

/** A job to add. */
export interface JobSpec {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly owner_id: number | null
  /** Where it waits: jobs of one mailbox are claimed together. */
  readonly mailbox: string
  /** How many jobs of the mailbox run at once; 1: an actor's; null: any number. */
  readonly mailbox_limit: number | null
  readonly when_busy: 'join' | 'join_waiting' | 'wait'
  /** For joining: what the payload of the job to join must contain; absent: any. */
  readonly joins?: object
  /** The SQL function of its row that settles what depends on its end, in that transaction. */
  readonly settle?: string
  readonly payload: unknown
  readonly max_tries: number
  /** The minimum delay, by the database's clock. */
  readonly delay_ms: number | null
  readonly request_id: string | null
  /** Of the span that adds it. */
  readonly trace_parent?: string
}

const Enqueued = z.object({ spec_ordinal: z.number(), job_id: z.string(), joined: z.boolean() })
export type Enqueued = z.output<typeof Enqueued>

/**
 * Adds jobs in the caller's transaction; one row per spec says which job it became. `waitingQuota` is the setting, 0: none.
 * @throws fail('quota.waiting_jobs') when an owner would have too many.
 */
export const enqueueJobs = (specs: readonly JobSpec[], waitingQuota: number): Query<Enqueued> =>
  sql.prepared('job_enqueue', Enqueued)`
    select spec_ordinal, job_id, joined from job_enqueue(${JSON.stringify(specs)}::jsonb, ${waitingQuota}::bigint) order by spec_ordinal`

const Id = z.object({ id: z.string() })

export interface ProgressEntry {
  readonly id: string
  readonly attempt: number
  /** Counts the entries of one attempt, from 1. */
  readonly n: number
  readonly kind: string
  readonly data: unknown
}

export const storeProgress = (entries: readonly ProgressEntry[]): Query<{ id: string }> =>
  sql.prepared('job_progress', Id)`select id from job_progress(${JSON.stringify(entries)}::jsonb) as id`

export interface FinishEntry {
  readonly id: string
  readonly attempt: number
  readonly outcome: 'done' | 'failed' | 'cancelled' | 'retry' | 'release' | 'interrupted' | 'crashed'
  /** JSON text. */
  readonly result?: string
  /** Why it failed or is tried again, and the text for clients. */
  readonly code?: string
  readonly detail?: string
  readonly delay_ms?: number
  /** The job's mailbox if it is limited, null if it is not; absent: it is looked up. */
  readonly limited?: string | null
}

/**
 * A job is a suspect once a process has died this often while running it: it may be the cause. It runs alone, so that
 * no other job suffers for it, and no other can be the cause.
 */
export const SUSPECT_FROM = 2
/** A suspect is given up once a process has died this often while running it alone. */
export const MAX_CRASHES = 3

export const finishJobs = (entries: readonly FinishEntry[]): Query<{ id: string }> =>
  sql.prepared(
    'job_finish',
    Id,
  )`select id from job_finish(${JSON.stringify(entries.map(withResult))}::jsonb, ${SUSPECT_FROM}, ${SUSPECT_FROM + MAX_CRASHES}) as id`

const withResult = ({ result, ...entry }: FinishEntry) =>
  result === undefined ? entry : { ...entry, result: JSON.parse(result) }

/** Ends attempts that are done, each with its result; a row for each whose attempt is not the current one. */
export const finishDone = (entries: readonly FinishEntry[]): Query<{ id: string }> =>
  sql.prepared('job_done', Id)`
    select id from job_done(${`{${entries.map(({ id }) => id).join()}}`}::uuid[],
      ${`{${entries.map(({ attempt }) => attempt).join()}}`}::int4[],
      ${`[${entries.map(({ result }) => result ?? 'null').join()}]`}::jsonb,
      ${sql.array(
        entries.flatMap(({ limited }) => limited ?? []),
        'text',
      )}) as id`

/**
 * Ends attempts and returns the ids of their jobs; the end of an attempt that is not the current one is refused. Faster
 * if all are done and each entry says whether its mailbox is limited.
 */
export async function endJobs(db: Queries, entries: readonly FinishEntry[]): Promise<Set<string>> {
  if (entries.some(({ outcome, limited }) => outcome !== 'done' || limited === undefined))
    return new Set((await db.any(finishJobs(entries))).map(({ id }) => id))
  const refused = new Set((await db.any(finishDone(entries))).map(({ id }) => id))
  return new Set(entries.flatMap(({ id }) => (refused.has(id) ? [] : id)))
}

/** The lease of the worker that takes over the jobs of others, and for how long it must have been renewed in time. */
export interface Judge {
  readonly lease: string
  readonly steadyMs: number
}

/** How many jobs are taken over in one transaction. */
const RECOVERED_AT_ONCE = 1000

/**
 * Takes over jobs of lost leases, see `job_recover`; there may be more until it finds none.
 *
 * @param whole also looks for jobs whose lease disappeared in another way than by expiring: so has that of those that were left.
 */
export const recoverJobs = (
  judge: Judge | null,
  whole = true,
  max = RECOVERED_AT_ONCE,
): Query<{ id: string }> =>
  sql.prepared('job_recover', Id)`
    select id from job_recover(${judge?.lease ?? null}::uuid, make_interval(secs => ${(judge?.steadyMs ?? 0) / 1000}::float8),
      ${SUSPECT_FROM}, ${SUSPECT_FROM + MAX_CRASHES}, ${max}) as id
    where ${whole} or exists (select from worker_lease where expires_at < now())`

/**
 * Takes back one interruption of these jobs: their worker was late, not dead. Jobs with more than `SUSPECT_FROM` of
 * them stay as they are.
 */
export const spareJobs = (ids: readonly string[]): Query<unknown> =>
  sql.prepared('job_spare', noRows)`
    update job set interruptions = interruptions - 1
    where id = any(${sql.array(ids, 'uuid')}) and interruptions between 1 and ${SUSPECT_FROM}::int4 and finished_at is null`

/** Repairs what nothing else looks for, see `job_repair`; a row for each job for which it sent a delivery. */
export const repairJobs = (patienceMs: number): Query<{ id: string }> =>
  sql.prepared('job_repair', Id)`
    select id from job_repair(make_interval(secs => ${patienceMs / 1000}::float8)) as id`

export const cancelJob = (id: string): Query<{ found: boolean }> =>
  sql.type(z.object({ found: z.boolean() }))`select job_cancel(${id}::uuid) as found`

/**
 * Proves inside a transaction that an attempt is still the current one, and keeps it so until the commit: a takeover
 * waits for the row lock, see `job_fence`. No row: the attempt has ended, or another one runs the job now.
 */
export const fenceJob = (id: string, attempt: number): Query<{ id: string }> =>
  sql.type(Id)`
    select ${id} as id where job_fence(${id}::uuid, ${attempt}::int4)`

const JobEnd = z.object({
  status: z.enum(['done', 'failed', 'cancelled']),
  result: z.unknown(),
  error: z.object({ code: z.string(), detail: z.string() }).nullable(),
})

/** How a job has ended; no row while it has not, or once it is deleted. */
export const endOfJob = (id: string): Query<z.output<typeof JobEnd>> =>
  sql.type(JobEnd)`
    select status, result, case when error_code is not null
      then json_build_object('code', error_code, 'detail', error_detail) end as error
    from job where id = ${id}::uuid and finished_at is not null`

// Leases.

export interface LeaseRow {
  readonly id: string
  readonly name: string
  readonly queues: readonly string[]
  readonly use: LeaseUse
}

/** What a worker reports about itself at each heartbeat. */
export interface LeaseUse {
  readonly poolIds: readonly string[]
  readonly threads: number
  /** How many of them have work. */
  readonly busy: number
  /** Resident memory of its process. */
  readonly memoryBytes: number
}

export const insertLease = (lease: LeaseRow, ttlMs: number): Query<unknown> =>
  sql.type(noRows)`
    insert into worker_lease (id, name, queues, pool_ids, threads, busy, memory_bytes, expires_at)
    values (${lease.id}::uuid, ${lease.name}, ${sql.array(lease.queues, 'text')}, ${sql.array(lease.use.poolIds, 'text')},
      ${lease.use.threads}, ${lease.use.busy}, ${lease.use.memoryBytes}, now() + make_interval(secs => ${ttlMs / 1000}::float8))`

const Heartbeat = z.object({
  running: z.array(z.object({ id: z.string(), attempt: z.number(), cancel: z.boolean() })),
})
export type Heartbeat = z.output<typeof Heartbeat>

// Renewals are due when three quarters of the time are left: with less than this part of it, two have failed.
const LATE = 4

/**
 * Renews a lease and returns the jobs that run under it according to the database, with `of` only those among them; no
 * row when the lease is lost.
 */
export const renewLease = (
  id: string,
  use: LeaseUse,
  ttlMs: number,
  of: readonly string[] | null = null,
): Query<Heartbeat> =>
  sql.prepared('lease_renew', Heartbeat)`
    update worker_lease set expires_at = now() + make_interval(secs => ${ttlMs / 1000}::float8),
      steady_since = case when expires_at < now() + make_interval(secs => ${ttlMs / LATE / 1000}::float8) then now()
        else steady_since end,
      pool_ids = ${sql.array(use.poolIds, 'text')}, threads = ${use.threads}, busy = ${use.busy},
      memory_bytes = ${use.memoryBytes}
    where id = ${id}::uuid
    returning case when ${of === null} then job_running(id) else job_running_of(id, ${sql.array(of ?? [], 'uuid')}) end as running`

/** Releases a lease at an orderly end. */
export const deleteLease = (id: string): Query<unknown> =>
  sql.type(noRows)`delete from worker_lease where id = ${id}::uuid`

/** Unlocks the deliveries that an ended queue pool still holds. */
export const unlockPools = (poolIds: readonly string[]): Query<unknown> =>
  sql.type(noRows)`select graphile_worker.force_unlock_workers(${sql.array(poolIds, 'text')})`

// Housekeeping.

/**
 * Deletes ended jobs past their time, a batch at a time; returns how many. One that alone has the answer to a request with an
 * Idempotency-Key stays for as long as the key.
 */
export const deleteExpiredJobs = (keepSeconds: number, batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (
      delete from job where ctid = any(array(
        select ctid from job where finished_at < now() - make_interval(secs => ${keepSeconds})
          and not exists (select from idempotency_key k
            where k.job_id = job.id and k.status is null and k.created_at >= now() - interval '24 hours')
        order by finished_at limit ${batch} for update skip locked))
      returning id
    )
    select count(*)::int as count from expired`

// Reads for the edge. `who` is the caller's account id; `everything` is true for admins; ended jobs are shown for
// `keptSeconds`.
type Viewer = [who: number | null, everything: boolean]
export type OneJob = [...Viewer, id: string, keptSeconds: number]

/** A job as clients see it; `job` is the row's name in the query. */
export const JOB_JSON = 'job_json(job)'

/**
 * The queues of the service's own jobs that are private: they show who was emailed, who has paid, and who is told of what. The
 * index of jobs without an owner names them, too.
 */
export const PRIVATE = `('accounts', 'payments', 'webhooks')`
/** Whether the caller ($1, an admin if $2) may see a job; `row` is its name in the query. */
export const VISIBLE_AS = (row: string): string =>
  `($2::boolean or ${row}.owner_id = $1::int or (${row}.owner_id is null and ${row}.queue not in ${PRIVATE}))`
const VISIBLE = VISIBLE_AS('job')

/** Ended jobs are shown for `seconds`, which is a parameter: housekeeping may not have deleted them yet. */
export const KEPT = (seconds: string): string =>
  `(job.finished_at is null or job.finished_at > now() - make_interval(secs => ${seconds}::float8))`

/** One job. */
export const readJob: ReadStatement<OneJob> = {
  name: 'job',
  text: `select ${JOB_JSON}::text from job where ${VISIBLE} and job.id = $3::uuid and ${KEPT('$4')}`,
}

/** Whether the caller may cancel or retry a job: `true`, `false` for one without an owner, or no row. */
export const readJobIsOwn: ReadStatement<OneJob> = {
  name: 'job_is_own',
  text: `select ($2::boolean or job.owner_id is not null)::text from job where ${VISIBLE} and job.id = $3::uuid and ${KEPT('$4')}`,
}

// One line per event: job id, seq, kind, status, owner (0: admins only), frame; separated by tabs, since JSON text
// never contains a raw tab.
const STATUS_FRAME = (
  status: string,
  label: string,
  current: string,
  total: string,
): string => `json_strip_nulls(json_build_object(
  'job_id', job.id, 'status', ${status}, 'label', ${label},
  'progress', case when ${current} is not null or ${total} is not null
    then json_build_object('current', ${current}, 'total', ${total}) end,
  'error', case when ${status} = 'failed' then json_build_object('code', job.error_code, 'detail', job.error_detail) end))::jsonb
  || case when ${status} = 'done' then jsonb_build_object('result', job.result) else '{}' end`
const LINE = (seq: string, kind: string, status: string, frame: string): string =>
  `concat_ws(E'\\t', job.id, ${seq}, ${kind}, ${status}, coalesce(job.owner_id::text, case when job.queue in ${PRIVATE} then '0' else '' end), (${frame})::text)`
const ROW_FRAME = STATUS_FRAME('job.status', 'job.label', 'job.progress_current', 'job.progress_total')

/** At most this many events of one job are read at once; a reader that is further behind reads again. */
export const EVENTS_AT_ONCE = 500

/** Events of jobs, each after its own cursor, at most `EVENTS_AT_ONCE` per job: `lastSeen` is the last seq seen. */
export const readEventsAfter: ReadStatement<[ids: readonly string[], lastSeen: readonly number[]]> = {
  name: 'job_events_after',
  text: `
    select ${LINE(
      'e.seq',
      'e.kind',
      `coalesce(e.data ->> 'status', '')`,
      `case when e.kind = 'status' then ${STATUS_FRAME(
        `(e.data ->> 'status')`,
        `(e.data ->> 'label')`,
        `(e.data ->> 'current')::int`,
        `(e.data ->> 'total')::int`,
      )} else e.data end`,
    )}
    from unnest($1::uuid[], $2::int[]) as wanted(id, after)
    join job on job.id = wanted.id cross join lateral (
      select * from job_event where job_id = wanted.id and seq > wanted.after order by seq limit ${EVENTS_AT_ONCE}) e
    order by e.job_id, e.seq`,
}

/** The current state of jobs as lines, in the order of the given ids. */
export const readStates: ReadStatement<[ids: readonly string[]]> = {
  name: 'job_states',
  text: `
    select ${LINE('job.seq', `'status'`, 'job.status', ROW_FRAME)}
    from unnest($1::uuid[]) with ordinality as wanted(id, n) join job on job.id = wanted.id order by wanted.n`,
}

/** The current state of one job if the caller may see it. */
export const readVisibleState: ReadStatement<OneJob> = {
  name: 'job_visible_state',
  text: `select ${LINE('job.seq', `'status'`, 'job.status', ROW_FRAME)} from job where ${VISIBLE} and job.id = $3::uuid and ${KEPT('$4')}`,
}

/** At most this many ended jobs are checked for visibility at once; a reader that is further behind reads again. */
export const ENDS_AT_ONCE = 1000

/**
 * Jobs that ended after `moment`, in ms since the epoch, or at `moment` with an id greater than `after`:
 * `id<tab>moment<tab>visible` (1 or 0). Those of others count towards the limit, since nothing on this connection may
 * take long: there can be millions.
 */
export const readEndedIds: ReadStatement<[...Viewer, moment: number, after: string]> = {
  name: 'job_ended_ids',
  text: `
    select concat_ws(E'\\t', job.id, extract(epoch from job.finished_at) * 1000, (${VISIBLE})::int) from job
    where job.finished_at >= to_timestamp($3::float8 / 1000)
      and (job.finished_at > to_timestamp($3::float8 / 1000) or job.id > $4::uuid)
    order by job.finished_at, job.id limit ${ENDS_AT_ONCE}`,
}
