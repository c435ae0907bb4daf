import { z } from 'zod'
import { noRows, type Queries, type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Statements of the job ledger. `jobs/tables.sql` defines the states, `jobs/functions/` the transitions. */

/** Maximum number of jobs on which one job depends. */
export const MAX_DEPENDENCIES = 100

/** The outcome that a job needs of its dependencies. With `done`, it is cancelled if one of them ends otherwise. */
export type AfterOutcome = 'done' | 'any'

/** `starts` in `seconds`, evenly spaced. Up to `burst` may start together if as many were unused. */
export interface StartRate {
  readonly starts: number
  readonly seconds: number
  readonly burst: number
}

/** A job to add. */
export interface JobSpec {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly owner_id: number | null
  /** The mailbox in which the job waits. Jobs of one mailbox are claimed together. */
  readonly mailbox: string
  /** Concurrency limit of the mailbox: 1 for an actor, null if unlimited. */
  readonly mailbox_limit: number | null
  /** The caller's name for the mailbox; absent if the caller named none. */
  readonly key?: string
  /** Rate of the starts in the mailbox, which has a limit; absent if there is none. */
  readonly rate?: StartRate
  /** -1 for high, 1 for low; absent for normal priority. */
  readonly priority?: -1 | 1
  readonly when_busy: 'join' | 'join_waiting' | 'replace' | 'wait'
  /** Longest time by which `replace` may defer a job after it was added. */
  readonly max_delay_ms?: number
  /**
   * JSON that the payload of an existing job must contain for the new job to join it. If absent, any payload matches.
   */
  readonly joins?: object
  /** SQL function to call as `name(job)` in the transaction that ends the job, whatever the outcome. */
  readonly settle?: string
  readonly payload: unknown
  readonly max_tries: number
  /** Minimum delay by the database's clock; null for no delay. */
  readonly delay_ms: number | null
  /** Earliest start, instead of `delay_ms`. */
  readonly run_at?: string
  /** Different jobs that must end first, at most {@link MAX_DEPENDENCIES}, and the outcome that they must have. */
  readonly after?: readonly string[]
  readonly after_outcome?: AfterOutcome
  /** The batch to which the job belongs. */
  readonly batch_id?: string
  /** True for a batch, which waits until it is closed and its members have ended. */
  readonly is_batch?: boolean
  readonly request_id: string | null
  /** traceparent of the enqueuing span (W3C Trace Context). */
  readonly trace_parent?: string
}

const EnqueuedJob = z.object({ spec_ordinal: z.number(), job_id: z.string(), joined: z.boolean() })
export type EnqueuedJob = z.output<typeof EnqueuedJob>

/**
 * Adds jobs in the caller's transaction. Each spec yields a row with the job that was added or joined. `waitingQuota`
 * comes from the settings; 0 means no quota.
 *
 * @throws fail('quota.waiting_jobs') if an owner would exceed the quota.
 */
export const enqueueJobs = (specs: readonly JobSpec[], waitingQuota: number): Query<EnqueuedJob> =>
  sql.prepared('job_enqueue', EnqueuedJob)`
    select spec_ordinal, job_id, joined from job_enqueue(${JSON.stringify(specs)}::jsonb, ${waitingQuota}::bigint) order by spec_ordinal`

const Id = z.object({ id: z.string() })

/** Makes jobs that this transaction has added wait for others, see `job_hold`. */
export const holdJobs = (
  ids: readonly string[],
  after: readonly string[],
  outcome: AfterOutcome,
): Query<unknown> =>
  sql.type(noRows)`select job_hold(${sql.array(ids, 'uuid')}, ${sql.array(after, 'uuid')}, ${outcome})`

const ScheduleResult = z.object({ moved: z.number(), next_seconds: z.number().nullable() })

/** Makes up to `batch` scheduled jobs that are due available; see `job_schedule`. */
export const scheduleJobs = (batch: number): Query<z.output<typeof ScheduleResult>> =>
  sql.prepared('job_schedule', ScheduleResult)`select moved, next_seconds from job_schedule(${batch})`

export interface ProgressEntry {
  readonly id: string
  readonly attempt: number
  /** Sequence number within the attempt, from 1. */
  readonly n: number
  readonly kind: string
  readonly data: unknown
}

export interface FinishEntry {
  readonly id: string
  readonly attempt: number
  readonly outcome: 'done' | 'failed' | 'cancelled' | 'retry' | 'release' | 'wait' | 'interrupted' | 'crashed'
  /** Result of the job as JSON text. */
  readonly result?: string
  /** Error code of a failure or retry; `detail` is its public text. */
  readonly code?: string
  readonly detail?: string
  /** Delay of a requeued job; for a failed one, the pause that its provider asks for. */
  readonly delay_ms?: number
  /** Number of interruptions that `crashed` stores; default: one more than before. */
  readonly interruptions?: number
}

/**
 * A job becomes a suspect after this many process deaths during its attempts, since it may have caused them. From then
 * on, it runs in an isolated process with other suspects, so that a further death harms no other job.
 */
export const SUSPECT_FROM_DEATHS = 2
/** Number of interruptions from which on a suspect runs alone. Until then, it shares its isolated process with others. */
export const ALONE_FROM_DEATHS = 5
/** Number of crashes in a process of its own after which a suspect fails permanently. */
export const MAX_CRASHES = 3

/**
 * Ends attempts and returns the ids of the jobs whose attempt was current; stale attempts are refused. Also returns the
 * ids of other jobs whose state has changed because these have ended.
 */
export const finishJobs = (entries: readonly FinishEntry[]): Query<{ id: string }> =>
  sql.prepared(
    'job_finish',
    Id,
  )`select id from job_finish(${serializeEntries(entries)}::jsonb, ${SUSPECT_FROM_DEATHS}, ${ALONE_FROM_DEATHS + MAX_CRASHES}) as id`

export const serializeEntries = (entries: readonly FinishEntry[]): string =>
  `[${entries.map(serializeEntry).join()}]`

/** Serializes an entry; its result is JSON text already and is inserted unchanged. */
export function serializeEntry({ result, ...entry }: FinishEntry): string {
  const text = JSON.stringify(entry)
  return result === undefined ? text : `${text.slice(0, -1)},"result":${result}}`
}

export const endAttempts = async (db: Queries, entries: readonly FinishEntry[]): Promise<Set<string>> =>
  new Set((await db.any(finishJobs(entries))).map(({ id }) => id))

/** The rescuer's lease, and the period in which it must have been renewed on time. */
export interface Rescuer {
  readonly lease: string
  readonly steadyMs: number
}

/** Jobs rescued per transaction. */
const RESCUE_BATCH = 1000

/**
 * Rescues jobs whose worker is gone, see `job_rescue_running`. Repeat the call until it returns no rows.
 */
export const rescueRunningJobs = (judge: Rescuer | null, max = RESCUE_BATCH): Query<{ id: string }> =>
  sql.prepared('job_rescue_running', Id)`
    select id from job_rescue_running(${judge?.lease ?? null}::uuid, make_interval(secs => ${(judge?.steadyMs ?? 0) / 1000}::float8),
      ${SUSPECT_FROM_DEATHS}, ${ALONE_FROM_DEATHS + MAX_CRASHES}, ${max}) as id`

/**
 * Removes one interruption from unfinished jobs whose worker turned out to be late, not dead. Jobs with more than
 * `SUSPECT_FROM_DEATHS` interruptions are not changed.
 */
export const refundInterruptions = (ids: readonly string[]): Query<unknown> =>
  sql.prepared('job_refund', noRows)`
    update job set interruptions = interruptions - 1
    where id = any(${sql.array(ids, 'uuid')}) and interruptions between 1 and ${SUSPECT_FROM_DEATHS}::int4 and finished_at is null`

/**
 * Rescues queued jobs that have no delivery to start them, see `job_rescue_queued`. Returns the jobs for which it added
 * a delivery.
 */
export const rescueQueuedJobs = (patienceMs: number): Query<{ id: string }> =>
  sql.prepared('job_rescue_queued', Id)`
    select id from job_rescue_queued(make_interval(secs => ${patienceMs / 1000}::float8)) as id`

/**
 * Closes a batch, see `job_close`. Returns the jobs whose state has changed; no row if it waits for members or is closed.
 */
export const closeBatch = (id: string): Query<{ id: string }> =>
  sql.type(Id)`select job_close(${id}::uuid) as id`

/** Cancels jobs, see `job_cancel`. Returns those that exist, and others whose state has changed with them. */
export const cancelJobs = (ids: readonly string[]): Query<{ id: string }> =>
  sql.type(Id)`select job_cancel(${sql.array(ids, 'uuid')}) as id`

/** A change of a job; null keeps the payload or the time. The time is `runAt`, or `delaySeconds` from now. */
export interface JobChange {
  readonly payload: unknown
  readonly runAt: string | null
  readonly delaySeconds: number | null
}

/** Changes a job that has never started, see `job_change`. Returns no row if it has started or ended. */
export const changeJob = (id: string, { payload, runAt, delaySeconds }: JobChange): Query<{ id: string }> =>
  sql.type(Id)`
    select job_change(${id}::uuid, ${payload === null ? null : JSON.stringify(payload)}::jsonb,
      coalesce(${runAt}::timestamptz, now() + make_interval(secs => ${delaySeconds}::float8))) as id`

/**
 * Checks that an attempt is still the current one; returns no row if it is stale. A row lock keeps it current until the
 * commit: a rescue waits for that lock, see `job_fence`.
 */
export const fenceJob = (id: string, attempt: number): Query<{ id: string }> =>
  sql.type(Id)`
    select ${id} as id where job_fence(${id}::uuid, ${attempt}::int4)`

const Dependency = z.object({
  job_id: z.string(),
  /** Null if the job was deleted. */
  status: z.enum(['done', 'failed', 'cancelled']).nullable(),
  result: z.unknown(),
  error: z.object({ code: z.string(), detail: z.string() }).nullable(),
})
/** The outcome of a job on which another depends. */
export type Dependency = z.output<typeof Dependency>

/** Returns the outcomes of the jobs on which a job depends, in the caller's order; null for a deleted job. */
export const readDependencies = (id: string): Query<{ results: Dependency[] }> =>
  sql.type(z.object({ results: z.array(Dependency) }))`
    select coalesce(job_results(after), '[]') as results from job where id = ${id}::uuid`

const JobOutcome = z.object({
  status: z.enum(['done', 'failed', 'cancelled']),
  result: z.unknown(),
  error: z.object({ code: z.string(), detail: z.string() }).nullable(),
})

/** Returns the outcome of a job; no row before the job ends or after it is deleted. */
export const findJobOutcome = (id: string): Query<z.output<typeof JobOutcome>> =>
  sql.type(JobOutcome)`
    select status, result, case when error_code is not null
      then json_build_object('code', error_code, 'detail', error_detail) end as error
    from job where id = ${id}::uuid and finished_at is not null`

/** Seconds for which ended jobs are kept: failed ones, which somebody may retry, and the others. */
export type JobRetention = readonly [others: number, failed: number]

// Parameters of the edge's job reads. `who` is the caller's account id, and `everything` is true for admins. The reads
// hide jobs that ended longer ago than the retention.
export type Viewer = [who: number | null, everything: boolean]
export type VisibleJob = [...Viewer, id: string, retention: JobRetention]

/** Returns SQL for the public JSON of the row named `job`. `retention` is a parameter. */
export const buildJobJson = (retention: string): string => `job_json(job, ${retention}::float8[])`

/**
 * Queues whose ownerless jobs only admins can see, because these jobs reveal emails, payments, schedules and webhooks of
 * other people. The predicate of `job_ownerless_idx` and `job_event_line` repeat these names.
 */
export const PRIVATE_QUEUES = `('accounts', 'payments', 'schedules', 'webhooks')`
/** Returns the SQL condition that the caller ($1, an admin if $2) may see the job in `row`. */
export const buildVisibleCondition = (row: string): string =>
  `($2::boolean or ${row}.owner_id = $1::int or (${row}.owner_id is null and ${row}.queue not in ${PRIVATE_QUEUES}))`
/** SQL condition that the caller may see the row named `job`. */
export const VISIBLE_JOB_CONDITION = buildVisibleCondition('job')

/**
 * Returns the SQL condition that the job in `row` has not ended, or ended within its retention (a parameter). It hides older jobs
 * that the pruner has not deleted yet.
 */
export const buildRetainedCondition = (retention: string, row = 'job'): string =>
  `(${row}.finished_at is null or job_expires_at(${row}, ${retention}::float8[]) > now())`

/** One job. */
export const readJob: ReadStatement<VisibleJob> = {
  name: 'job',
  text: `select ${buildJobJson('$4')}::text from job where ${VISIBLE_JOB_CONDITION} and job.id = $3::uuid and ${buildRetainedCondition('$4')}`,
}

/** Number of these jobs that the caller may see, as text. */
export const countVisibleJobs: ReadStatement<
  [who: number | null, everything: boolean, ids: readonly string[], retention: JobRetention]
> = {
  name: 'jobs_visible',
  text: `select count(*)::text from job where ${VISIBLE_JOB_CONDITION} and job.id = any($3::uuid[]) and ${buildRetainedCondition('$4')}`,
}

/**
 * Returns `true` if the caller may cancel or retry a job, `false` if the job has no owner. No row if the caller cannot
 * see the job.
 */
export const readJobOwnership: ReadStatement<VisibleJob> = {
  name: 'job_is_own',
  text: `select ($2::boolean or job.owner_id is not null)::text from job where ${VISIBLE_JOB_CONDITION} and job.id = $3::uuid and ${buildRetainedCondition('$4')}`,
}

/** Conditions that together select the ended jobs. Each has an index by end time. */
export const ENDED_CONDITIONS = {
  others: `status <> 'failed' and finished_at is not null`,
  failed: `status = 'failed'`,
} as const
