import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import { cursorOf, MAX_COUNTED_ROWS } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Job search for admins. Each page scans a bounded number of jobs. */

/** Conditions of a job search; absent fields match any job. */
export interface JobFilter {
  readonly status?: string | undefined
  readonly queue?: string | undefined
  readonly task?: string | undefined
  /** Error code of the failure. */
  readonly code?: string | undefined
  readonly owner_id?: number | undefined
  readonly request_id?: string | undefined
  /** Creation time: `from` is inclusive, `to` exclusive. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** End time; both bounds are inclusive. */
  readonly ended_from?: string | undefined
  readonly ended_before?: string | undefined
  /** Case-insensitive substring of the label or the error text. */
  readonly search?: string | undefined
}

/** Maximum number of jobs to scan per page. Scanning this many takes 0.1 s. */
export const MAX_SCANNED_JOBS = 100_000

const FOUND_JOB_JSON = `json_build_object('job_id', job.id, 'name', job.name, 'queue', job.queue, 'owner_id', job.owner_id,
  'status', job_client_status(job.status), 'label', job.label, 'attempts', job.attempt, 'request_id', job.request_id,
  'error', case when job.error_code is not null then json_build_object('code', job.error_code, 'detail', job.error_detail) end,
  'created_at', iso(job.created_at), 'due_at', case when job.status = 'scheduled' then iso(job.run_at) end,
  'started_at', iso(job.started_at), 'finished_at', iso(job.finished_at),
  'retried_by', (select again.id from job again where again.retry_of = job.id))`

/** Cursors of found jobs, sorted by addition or by end. Ids hold the time of another clock than the database's. */
export const ADDED_ORDER = { created_at: 'timestamptz', ordinal: 'bigint' } as const
export const ENDED_ORDER = { finished_at: 'timestamptz', ordinal: 'bigint' } as const

/**
 * Cursor for sorting by a measure. It holds the newest job and the time of the first page, then the value and id of the
 * last job shown.
 */
export const MEASURED_ORDER = { newest: 'bigint', at: 'timestamptz', value: 'bigint', id: 'uuid' } as const

// Durations are measured up to the time of the first page. Otherwise, the duration of a running job would grow between
// pages, and the job could appear on two.
const MEASURED_AT = 'coalesce(($2::jsonb ->> 1)::timestamptz, now())'
const DUE_AT =
  'case when job.started_at < job.run_at then job.created_at else greatest(job.created_at, job.run_at) end'
const buildDurationMs = (from: string, to: string): string =>
  `greatest(0, round(extract(epoch from least(coalesce(${to}, ${MEASURED_AT}), ${MEASURED_AT}) - ${from}) * 1000))::bigint`
const MEASURES = {
  ran: `coalesce(${buildDurationMs('job.started_at', 'job.finished_at')}, 0)`,
  waited: buildDurationMs(DUE_AT, 'coalesce(job.started_at, job.finished_at)'),
  attempts: 'job.attempt::bigint',
} as const

type SearchStatement = ReadStatement<[filter: string, after: string | null, limit: number]>

/**
 * Returns a statement that finds jobs by a filter, in index order. The result is a line with the cursor of the next
 * page (empty on the last page), then a JSON array. A page ends after scanning {@link MAX_SCANNED_JOBS} jobs. It may thus
 * hold fewer than `limit` jobs, even none, and still have a cursor.
 */
const createScanStatement = (
  name: string,
  order: Readonly<Record<string, string>>,
  direction: 'asc' | 'desc',
  where = 'true',
): SearchStatement => {
  const keys = Object.keys(order)
  const sorted = (way: 'asc' | 'desc') => keys.map((key) => `${key} ${way}`).join(', ')
  const bounds = Object.values(order).map((type, index) => `($2::jsonb ->> ${index})::${type}`)
  const rest = `job where ${where} and ($2::jsonb is null
    or (${keys.join(', ')}) ${direction === 'desc' ? '<' : '>'} (${bounds.join(', ')})) order by ${sorted(direction)}`
  const end = (rows: string) => `(select ${cursorOf(keys)} from (${rows}) last)`
  return {
    name: `jobs_found_${name}`,
    text: `
      with fitting as materialized (
        select * from (select job, ${keys.join(', ')} from ${rest} limit ${MAX_SCANNED_JOBS}) looked
        where job_matches(looked.job, $1::jsonb) limit $3::int + 1
      ), shown as (select * from fitting order by ${sorted(direction)} limit $3::int)
      select concat(
        case when (select count(*) from fitting) > $3::int
          then ${end(`select * from shown order by ${sorted(direction === 'desc' ? 'asc' : 'desc')} limit 1`)}
          else ${end(`select ${keys.join(', ')} from ${rest} offset ${MAX_SCANNED_JOBS - 1} limit 1`)} end,
        E'\\n', (select coalesce(json_agg(${FOUND_JOB_JSON} order by ${keys.map((key) => `shown.${key} ${direction}`).join(', ')}), '[]')
          from shown cross join lateral (select (shown.job).*) job))`,
  }
}

// Repeats the status filter, so that a filter on one status can use the index on the status.
const ENDED_CONDITION = `job.finished_at is not null and ($1::jsonb ->> 'status' is null or job.status = $1::jsonb ->> 'status')`

/**
 * Returns a statement that finds the jobs that match a filter, those with the greatest value of a measure first. It
 * considers the latest {@link MAX_SCANNED_JOBS} jobs. The result has the format of `createScanStatement`.
 */
const createRankStatement = (name: keyof typeof MEASURES): SearchStatement => ({
  name: `jobs_found_by_${name}`,
  text: `
    with newest as materialized (
      select coalesce(($2::jsonb ->> 0)::bigint, (select max(ordinal) from (
        select ordinal from job order by created_at desc, ordinal desc limit 1000) latest)) as ordinal
    ), fitting as (
      select looked.id, value
      from (select job, id from job where ordinal <= (select ordinal from newest) order by created_at desc, ordinal desc limit ${MAX_SCANNED_JOBS}) looked
      cross join lateral (select (looked.job).*) job cross join lateral (select ${MEASURES[name]} as value) measure
      where job_matches(looked.job, $1::jsonb)
    ), beyond as materialized (
      select * from fitting where $2::jsonb is null or (value, id) < (($2::jsonb ->> 2)::bigint, ($2::jsonb ->> 3)::uuid)
      order by value desc, id desc limit $3::int + 1
    ), shown as (select * from beyond order by value desc, id desc limit $3::int)
    select concat(
      case when (select count(*) from beyond) > $3::int then (
        select ${cursorOf(['(select ordinal from newest)', MEASURED_AT, 'value', 'id'])}
        from shown order by value, id limit 1) end,
      E'\\n', (select coalesce(json_agg(${FOUND_JOB_JSON} order by value desc, id desc), '[]') from shown join job using (id)))`,
})

/** The search statement for each sort order. */
export const readFoundJobs = {
  created_at: createScanStatement('asc', ADDED_ORDER, 'asc'),
  '-created_at': createScanStatement('desc', ADDED_ORDER, 'desc'),
  '-finished_at': createScanStatement('ended', ENDED_ORDER, 'desc', ENDED_CONDITION),
  '-ran': createRankStatement('ran'),
  '-waited': createRankStatement('waited'),
  '-attempts': createRankStatement('attempts'),
} as const satisfies Record<string, SearchStatement>

/**
 * Failures of the last `seconds`, grouped by task and code, most frequent first, as JSON. Counts the last 10,000
 * failures, or with a filter the matches among the last 100,000. `total_is_exact` is false if there were more.
 * `history` has the counts for 24 equal parts of the period.
 */
export const readFailures: ReadStatement<[filter: string, seconds: number]> = {
  name: 'job_failures',
  text: `
    with bound as materialized (
      select case when $1::jsonb = '{}' then ${MAX_COUNTED_ROWS} else ${MAX_SCANNED_JOBS} end as most
    ), looked as materialized (
      select id, name, queue, error_code, finished_at, job_matches(job, $1::jsonb) as fits from job
      where status = 'failed' and finished_at > now() - make_interval(secs => $2::float8)
      order by finished_at desc, ordinal desc limit (select most + 1 from bound)
    ), failed as (
      select id, name, queue, error_code, finished_at from looked
      where fits order by finished_at desc limit (select most from bound)
    ), spans as (
      select name, queue, error_code, least(23, floor(extract(epoch from finished_at - (now() - make_interval(secs => $2::float8))) / ($2::float8 / 24))::int) as span,
        count(*) as jobs, count(retry) as retried, min(finished_at) as first_at, max(finished_at) as last_at,
        (array_agg(id order by finished_at desc))[1] as last_id
      from failed left join (select id as retry, retry_of from job where retry_of is not null) again on again.retry_of = failed.id
      group by name, queue, error_code, span
    ), groups as (
      select name, queue, error_code, sum(jobs) as jobs, sum(retried) as retried, min(first_at) as first_at, max(last_at) as last_at,
        (array_agg(last_id order by last_at desc))[1] as last_id, json_object_agg(span, jobs) as history
      from spans group by name, queue, error_code
    )
    select json_build_object('at', iso(now()), 'span_seconds', $2::float8 / 24,
      'total_is_exact', (select count(*) from looked) <= (select most from bound), 'groups', coalesce(json_agg(json_build_object('task', name,
      'queue', queue, 'code', error_code, 'jobs', jobs, 'retried', retried, 'first_at', iso(first_at), 'last_at', iso(last_at),
      'last_job_id', last_id, 'last_detail', (select error_detail from job where id = last_id),
      'history', array(select coalesce((history ->> span::text)::int, 0) from generate_series(0, 23) span))
      order by jobs desc, name, error_code), '[]'))::text from groups`,
}

/** Maximum number of jobs per bulk action. */
export const MAX_BULK_JOBS = 100_000

const Id = z.object({ id: z.string() })
type Status = 'scheduled' | 'available' | 'running' | 'done' | 'failed' | 'cancelled'

/** The jobs that a bulk action selects: those that match a filter, in some states, added before a given job, if any. */
export interface JobSelection {
  readonly filter: JobFilter
  readonly states: readonly Status[]
  /** Id of a job: only jobs added before it are selected. */
  readonly before: string | null
  /** True to exclude jobs that have been retried. */
  readonly unretried: boolean
  /** If set, only these ids are selected. */
  readonly only?: readonly string[] | undefined
}

const buildSelectionCondition = ({ filter, states, before, unretried, only }: JobSelection) => sql.fragment`
  ${only === undefined ? sql.fragment`true` : sql.fragment`job.id = any(${sql.array(only, 'uuid')})`} and
  (${before}::uuid is null or job.ordinal < (select ordinal from job where id = ${before}::uuid)) and job.status = any(${sql.array(states, 'text')}) and job_matches(job, ${JSON.stringify(filter)}::jsonb)
  and (not ${unretried} or not exists (select from job again where again.retry_of = job.id))`

/** Returns the number of selected jobs, at most `max`, and the database's time. */
export const countSelectedJobs = (which: JobSelection, max: number): Query<{ count: number; now: string }> =>
  sql.type(z.object({ count: z.number(), now: z.string() }))`
    select count(*)::int as count, now()::text as now from (select from job where ${buildSelectionCondition(which)} limit ${max}) meant`

/** Returns the ids of selected jobs after a given job, in the order in which they were added. */
export const listSelectedIds = (
  which: JobSelection,
  after: string | null,
  limit: number,
): Query<{ id: string }> =>
  sql.type(Id)`
    select id from job where ${buildSelectionCondition(which)}
      and ordinal > coalesce((select ordinal from job where id = ${after}::uuid), 0) order by ordinal limit ${limit}`

/** Deletes the given jobs that have ended; returns a row for each. */
export const deleteEndedJobs = (ids: readonly string[]): Query<{ id: string }> =>
  sql.type(Id)`delete from job where id = any(array(
      select id from job where id = any(${sql.array(ids, 'uuid')}) and finished_at is not null order by ordinal for update))
    returning id`
