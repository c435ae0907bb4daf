import { z } from 'zod'
import { noRows, type Queries, type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import {
  buildJobJson,
  buildRetainedCondition,
  buildVisibleCondition,
  cancelJobs,
  type JobRetention,
  type VisibleJob,
} from './jobs.ts'
import { RETRY_COLUMNS, RetriedJob } from './retry.ts'

/** Batches: jobs of the task {@link BATCH_TASK}, which wait for the jobs that have their id as `batch_id`. */

export const BATCH_TASK = 'jobs.batch'

/** Maximum number of unsuccessful jobs that a batch names. */
const MAX_NAMED_FAILURES = 10

const STATUSES = ['waiting', 'queued', 'running', 'done', 'failed', 'cancelled'] as const

const buildCounts = (rows: string): string =>
  `(select json_build_object(${STATUSES.map(
    (status) => `'${status}', count(*) filter (where job_client_status(m.status) = '${status}')`,
  ).join(', ')}) from ${rows})`

const buildFailures = (batch: string): string => `(select coalesce(json_agg(json_build_object(
    'job_id', id, 'name', name, 'status', status, 'finished_at', iso(finished_at),
    'error', case when error_code is not null then json_build_object('code', error_code, 'detail', error_detail) end)
  order by finished_at, ordinal), '[]')
  from (select * from job where batch_id = ${batch} and status in ('failed', 'cancelled')
    order by finished_at, ordinal limit ${MAX_NAMED_FAILURES}) m)`

// A batch is open until it is closed. It has ended when its own job has.
const BATCH_JSON = `json_build_object(
  'batch_id', b.id, 'name', b.payload ->> 'name',
  'status', case when b.status <> 'waiting' then job_client_status(b.status)
    when b.cancel_requested_at is not null then 'cancelling' when b.payload ->> 'is_open' = 'true' then 'open' else 'running' end,
  'progress', json_build_object('current', coalesce(b.progress_current, 0), 'total', coalesce(b.progress_total, 0)),
  'counts', ${buildCounts('job m where m.batch_id = b.id')},
  'failures', ${buildFailures('b.id')},
  'created_at', iso(b.created_at), 'started_at', iso((select min(m.started_at) from job m where m.batch_id = b.id)),
  'finished_at', iso(b.finished_at))`

const VISIBLE_BATCH_CONDITION = `b.name = '${BATCH_TASK}' and ${buildVisibleCondition('b')}`

/** One batch with the counts of its jobs. */
export const readBatch: ReadStatement<VisibleJob> = {
  name: 'batch',
  text: `select ${BATCH_JSON}::text from job b where b.id = $3::uuid and ${VISIBLE_BATCH_CONDITION}
    and ${buildRetainedCondition('$4', 'b')}`,
}

/** Owner of a batch that the caller may see, as text; empty if it has none. */
export const readBatchOwner: ReadStatement<VisibleJob> = {
  name: 'batch_owner',
  text: `select coalesce(b.owner_id::text, '') from job b where b.id = $3::uuid and ${VISIBLE_BATCH_CONDITION}
    and ${buildRetainedCondition('$4', 'b')}`,
}

/** Number of members per transaction of a cancellation, which locks the mailbox of each member with a limit. */
const MAX_CANCELLED_MEMBERS = 1000

const markBatch = (id: string): Query<unknown> =>
  sql.type(noRows)`
    update job set cancel_requested_at = coalesce(cancel_requested_at, now()) where id = ${id}::uuid and status || '' = 'waiting'`

const cancelMembers = (id: string): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    select job_cancel(array(select id from job where batch_id = ${id}::uuid and finished_at is null and cancel_requested_at is null
      order by ordinal desc limit ${MAX_CANCELLED_MEMBERS})) as id`

/**
 * Cancels a batch and its members, a thousand per transaction. Yields the jobs whose state has changed. The batch gets no
 * more members meanwhile.
 */
export async function* cancelBatch(db: Pick<Queries, 'any' | 'run'>, id: string): AsyncGenerator<string> {
  await db.run(markBatch(id))
  for (let changed: readonly { id: string }[] = [{ id }]; changed.length > 0; ) {
    changed = await db.any(cancelMembers(id))
    for (const job of changed) yield job.id
  }
  for (const job of await db.any(cancelJobs([id]))) yield job.id
}

/** The jobs of a batch in the order in which they were added, all or those of a status. */
export const readBatchJobs: ReadStatement<
  [batch: string, status: string | null, retention: JobRetention, ...page: PageValues]
> = {
  name: 'batch_jobs',
  text: buildArrayText({
    table: 'job',
    row: 'job',
    parameters: 3,
    where: 'job.batch_id = $1::uuid and ($2::text is null or job_client_status(job.status) = $2::text)',
    order: { 'job.ordinal': 'bigint' },
    direction: 'asc',
    hasPageNumbers: false,
    item: `(${buildJobJson('$3')}::jsonb || jsonb_build_object('after', coalesce(job.after, '{}')))`,
  }),
}

export const BATCH_JOB_ORDER = { 'job.ordinal': 'bigint' } as const

const BatchOutcome = z.object({
  total: z.number(),
  done: z.number(),
  failed: z.number(),
  cancelled: z.number(),
})

/** Number of a batch's jobs in total and by final status. */
export const countBatchJobs = (batch: string): Query<z.output<typeof BatchOutcome>> =>
  sql.type(BatchOutcome)`
    select count(*)::int as total, (count(*) filter (where status = 'done'))::int as done,
      (count(*) filter (where status = 'failed'))::int as failed,
      (count(*) filter (where status = 'cancelled'))::int as cancelled
    from job where batch_id = ${batch}::uuid`

/** Locks a batch, so that the second of two concurrent retries finds the jobs that the first one added. */
export const lockBatch = (id: string): Query<{ name: string | null; owner_id: number | null }> =>
  sql.type(z.object({ name: z.string().nullable(), owner_id: z.number().nullable() }))`
    select payload ->> 'name' as name, owner_id from job where id = ${id}::uuid for update`

const UnsuccessfulJob = RetriedJob.extend({
  after: z.array(z.string()).nullable(),
  after_outcome: z.enum(['done', 'any']).nullable(),
})
export type UnsuccessfulJob = z.output<typeof UnsuccessfulJob>

/**
 * Locks the jobs of a batch to retry, in the order in which they were added. These are the jobs that failed, those that
 * were cancelled because a dependency did not succeed, and cancelled ones on which these depend. Leaves out jobs that have
 * been retried.
 */
export const lockUnsuccessfulJobs = (batch: string): Query<UnsuccessfulJob> =>
  sql.type(UnsuccessfulJob)`
    with recursive member as materialized (
      select id, status, after, error_code from job where batch_id = ${batch}::uuid and status in ('failed', 'cancelled')
        and not exists (select from job again where again.retry_of = job.id)
    ), retried(id) as (
      select id from member where status = 'failed' or error_code = 'job.dependency_failed'
      union
      select needed.id from retried join member on member.id = retried.id join member needed on needed.id = any(member.after)
    )
    select ${RETRY_COLUMNS}, after, after_outcome from job where id in (select id from retried) order by ordinal for update`

/** Returns the latest retry of each of these jobs that exist, or the job itself, and its status. */
export const listLatestRetries = (
  ids: readonly string[],
): Query<{ id: string; latest_id: string; status: string }> =>
  sql.type(z.object({ id: z.string(), latest_id: z.string(), status: z.string() }))`
    with recursive retry as (
      select id, id as latest_id, 0 as depth from job where id = any(${sql.array(ids, 'uuid')})
      union all
      select retry.id, again.id, depth + 1 from retry join job again on again.retry_of = retry.latest_id
    )
    select distinct on (retry.id) retry.id, latest_id, job.status from retry join job on job.id = latest_id
    order by retry.id, depth desc`
