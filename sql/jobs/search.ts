import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import { cursorOf, MAX_COUNTED_ROWS } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { ENDED_CONDITIONS, type JobRetention } from './jobs.ts'
import { UNNEEDED_CONDITION } from './prune.ts'

/** Job search. Each page scans a bounded number of jobs. */

/** Conditions of a job search; absent fields match any job. */
export interface JobFilter {
  readonly status?: string | undefined
  readonly queue?: string | undefined
  readonly task?: string | undefined
  /** Error code of the failure. */
  readonly code?: string | undefined
  readonly owner_id?: number | undefined
  /** The batch to which the job belongs. */
  readonly batch?: string | undefined
  /** The caller's name for the mailbox. */
  readonly key?: string | undefined
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
  'owner_email', (select email from account where account.id = job.owner_id), 'status', job_client_status(job.status), 'label', job.label, 'attempts', job.attempt, 'request_id', job.request_id,
  'error', case when job.error_code is not null then json_build_object('code', job.error_code, 'detail', job.error_detail) end,
  'created_at', iso(job.created_at), 'due_at', case when job.status = 'scheduled' then iso(job.run_at) end,
  'started_at', iso(job.started_at), 'finished_at', iso(job.finished_at),
  'expires_at', iso(job_expires_at(job, $4::float8[])), 'batch_id', job.batch_id, 'key', job.key,
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

type SearchStatement = ReadStatement<
  [filter: string, after: string | null, limit: number, retention: JobRetention]
>
type Direction = 'asc' | 'desc'

/** The jobs that a search scans: all jobs, those of an owner, of a batch, or of an owner's key. */
type Source = 'all' | 'owner' | 'batch' | 'key'

/** Returns the smallest source that has the jobs of a filter, so that no search scans the jobs of others. */
export function chooseSource({ batch, key, owner_id }: JobFilter): Source {
  if (batch !== undefined) return 'batch'
  if (owner_id === undefined) return 'all'
  return key === undefined ? 'owner' : 'key'
}

const MATCH_CONDITION = `job_matches(looked.job, $1::jsonb)
  and (job_expires_at(looked.job, $4::float8[]) > now()) is not false`
const OWNER_CONDITION = `owner_id = ($1::jsonb ->> 'owner_id')::int`
const LIVE_STATUSES = ['waiting', 'scheduled', 'available', 'running']
const ENDED_STATUSES = ['done', 'failed', 'cancelled']
const SCANNED_COLUMNS = 'job, id, ordinal, created_at, finished_at'

const selectJobs = (where: string, rest = ''): string =>
  `select ${SCANNED_COLUMNS} from job where ${where} ${rest}`
const buildStatusCondition = (status: string): string =>
  `status = '${status}' and ($1::jsonb ->> 'status' is null or job_client_status('${status}') = $1::jsonb ->> 'status')`

// Ends the scan of an index where the retention ends, so that it reads no jobs that wait for the pruner.
const buildKeptCondition = (isFailed: boolean): string =>
  `finished_at > now() - make_interval(secs => ($4::float8[])[${isFailed ? 2 : 1}])`
const OWN_LIVE_CONDITIONS = LIVE_STATUSES.map(
  (status) => `${OWNER_CONDITION} and ${buildStatusCondition(status)}`,
)
const OWN_ENDED_CONDITIONS = ENDED_STATUSES.map(
  (status) =>
    `${OWNER_CONDITION} and ${buildStatusCondition(status)} and ${buildKeptCondition(status === 'failed')}`,
)

/** The latest {@link MAX_SCANNED_JOBS} jobs of a source in no order, by index. */
const SMALL_SOURCES: Readonly<Record<Exclude<Source, 'all'>, string>> = {
  // The index sorts the jobs of each status separately.
  owner: `select * from (${[...OWN_LIVE_CONDITIONS, ...OWN_ENDED_CONDITIONS]
    .map(
      (where) =>
        `(${selectJobs(where, `order by finished_at desc, ordinal desc limit ${MAX_SCANNED_JOBS}`)})`,
    )
    .join(' union all ')}) own`,
  batch: selectJobs(
    `batch_id = ($1::jsonb ->> 'batch')::uuid`,
    `order by ordinal desc limit ${MAX_SCANNED_JOBS}`,
  ),
  key: selectJobs(
    `${OWNER_CONDITION} and key = $1::jsonb ->> 'key'`,
    `order by ordinal desc limit ${MAX_SCANNED_JOBS}`,
  ),
}

const sortBy = (keys: readonly string[], direction: Direction): string =>
  keys.map((key) => `${key} ${direction}`).join(', ')

/** Returns SQL for the condition that a row is after the cursor, and for the cursor of the first of some rows. */
const buildCursorParts = (order: Readonly<Record<string, string>>, direction: Direction) => {
  const keys = Object.keys(order)
  const bounds = Object.values(order).map((type, index) => `($2::jsonb ->> ${index})::${type}`)
  return {
    keys,
    after: `($2::jsonb is null or (${keys.join(', ')}) ${direction === 'desc' ? '<' : '>'} (${bounds.join(', ')}))`,
    cursorOfFirst: (rows: string) => `(select ${cursorOf(keys)} from (${rows}) last)`,
  }
}

/**
 * Returns a statement for a page of found jobs. `fitting` selects one more than the page has. The result is a line with
 * the cursor of the next page (empty on the last page), then a JSON array. `endOfScan` is the cursor if fewer fit.
 */
const createPageStatement = (
  name: string,
  order: Readonly<Record<string, string>>,
  direction: Direction,
  fitting: string,
  endOfScan = 'null',
): SearchStatement => {
  const { keys, cursorOfFirst } = buildCursorParts(order, direction)
  const reversed = sortBy(keys, direction === 'desc' ? 'asc' : 'desc')
  return {
    name: `jobs_found_${name}`,
    text: `
      with fitting as materialized (${fitting}
      ), shown as (select * from fitting order by ${sortBy(keys, direction)} limit $3::int)
      select concat(
        case when (select count(*) from fitting) > $3::int
          then ${cursorOfFirst(`select * from shown order by ${reversed} limit 1`)} else ${endOfScan} end,
        E'\\n', (select coalesce(json_agg(${FOUND_JOB_JSON} order by ${keys.map((key) => `shown.${key} ${direction}`).join(', ')}), '[]')
          from shown cross join lateral (select (shown.job).*) job))`,
  }
}

/**
 * Returns a statement that finds jobs by a filter, in index order. `parts` are the conditions of the scanned jobs, each
 * with an index. A page ends after scanning {@link MAX_SCANNED_JOBS} jobs. It may thus hold fewer than `limit` jobs, even
 * none, and still have a cursor.
 */
const createScanStatement = (
  name: string,
  order: Readonly<Record<string, string>>,
  direction: Direction,
  parts: readonly string[],
): SearchStatement => {
  const { keys, after, cursorOfFirst } = buildCursorParts(order, direction)
  const rest = `(${parts.map((where) => selectJobs(where)).join(' union all ')}) scanned
    where ${after} order by ${sortBy(keys, direction)}`
  return createPageStatement(
    name,
    order,
    direction,
    `select * from (select * from ${rest} limit ${MAX_SCANNED_JOBS}) looked where ${MATCH_CONDITION} limit $3::int + 1`,
    cursorOfFirst(`select ${keys.join(', ')} from ${rest} offset ${MAX_SCANNED_JOBS - 1} limit 1`),
  )
}

/** Returns a statement that finds jobs by a filter in a small source, which it sorts. */
const createSortStatement = (
  name: string,
  order: Readonly<Record<string, string>>,
  direction: Direction,
  rows: string,
  where = 'true',
): SearchStatement => {
  const { keys, after } = buildCursorParts(order, direction)
  return createPageStatement(
    name,
    order,
    direction,
    `select * from (${rows}) looked where ${where} and ${after} and ${MATCH_CONDITION}
     order by ${sortBy(keys, direction)} limit $3::int + 1`,
  )
}

// The latest jobs. Materialized, because a plan for a few jobs would evaluate it for each.
const NEWEST = `select coalesce(($2::jsonb ->> 0)::bigint, (select max(ordinal) from (
  select ordinal from job order by created_at desc, ordinal desc limit 1000) latest)) as ordinal`
const LATEST_JOBS = selectJobs(
  'ordinal <= (select ordinal from newest)',
  `order by created_at desc, ordinal desc limit ${MAX_SCANNED_JOBS}`,
)

/**
 * Returns a statement that finds the jobs that match a filter, those with the greatest value of a measure first. It
 * considers the jobs `rows` that exist at the first page. The result has the format of `createPageStatement`.
 */
const createRankStatement = (
  source: string,
  measure: keyof typeof MEASURES,
  rows: string,
): SearchStatement => ({
  name: `jobs_found_${source}_${measure}`,
  text: `
    with newest as materialized (${NEWEST}), fitting as (
      select looked.id, value
      from (${rows}) looked
      cross join lateral (select (looked.job).*) job cross join lateral (select ${MEASURES[measure]} as value) measure
      where looked.ordinal <= (select ordinal from newest) and ${MATCH_CONDITION}
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

const createRankStatements = (source: string, rows: string) => ({
  '-ran': createRankStatement(source, 'ran', rows),
  '-waited': createRankStatement(source, 'waited', rows),
  '-attempts': createRankStatement(source, 'attempts', rows),
})

const createSmallSourceStatements = (source: Exclude<Source, 'all'>) => {
  const rows = SMALL_SOURCES[source]
  return {
    created_at: createSortStatement(`${source}_asc`, ADDED_ORDER, 'asc', rows),
    '-created_at': createSortStatement(`${source}_desc`, ADDED_ORDER, 'desc', rows),
    '-finished_at': createSortStatement(
      `${source}_ended`,
      ENDED_ORDER,
      'desc',
      rows,
      'finished_at is not null',
    ),
    ...createRankStatements(source, rows),
  }
}

/** The search statement for each source and sort order. */
export const readFoundJobs = {
  all: {
    created_at: createScanStatement('asc', ADDED_ORDER, 'asc', ['true']),
    '-created_at': createScanStatement('desc', ADDED_ORDER, 'desc', ['true']),
    // Repeats the status filter, so that a filter on one status can use the index on the status.
    '-finished_at': createScanStatement(
      'ended',
      ENDED_ORDER,
      'desc',
      Object.entries(ENDED_CONDITIONS).map(
        ([which, condition]) =>
          `${condition} and ${buildKeptCondition(which === 'failed')}
            and ($1::jsonb ->> 'status' is null or status = $1::jsonb ->> 'status')`,
      ),
    ),
    ...createRankStatements('all', LATEST_JOBS),
  },
  owner: {
    ...createSmallSourceStatements('owner'),
    '-finished_at': createScanStatement('owner_ended', ENDED_ORDER, 'desc', OWN_ENDED_CONDITIONS),
  },
  batch: createSmallSourceStatements('batch'),
  key: createSmallSourceStatements('key'),
} as const satisfies Record<Source, Record<string, SearchStatement>>

/**
 * Failures of the last `seconds`, grouped by task and code, most frequent first, as JSON. Counts the last 10,000
 * failures, or with a filter the matches among the last 100,000. `total_is_exact` is false if there were more.
 * `history` has the counts for 24 equal parts of the period. Scope `owner` reads the failures of the filter's owner.
 */
export const readFailures = {
  all: createFailureStatement('all', 'true', `$1::jsonb = '{}'`),
  owner: createFailureStatement('owner', OWNER_CONDITION, `$1::jsonb - 'owner_id' = '{}'`),
} as const

function createFailureStatement(
  name: string,
  where: string,
  isUnfiltered: string,
): ReadStatement<[filter: string, seconds: number, retention: JobRetention]> {
  return {
    name: `job_failures_${name}`,
    text: `
    with bound as materialized (
      select case when ${isUnfiltered} then ${MAX_COUNTED_ROWS} else ${MAX_SCANNED_JOBS} end as most
    ), looked as materialized (
      select id, name, queue, error_code, finished_at, job_matches(job, $1::jsonb) as fits from job
      where ${where} and status = 'failed' and finished_at > now() - make_interval(secs => $2::float8)
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
      'expires_at', iso(first_at + make_interval(secs => ($3::float8[])[2])),
      'last_job_id', last_id, 'last_detail', (select error_detail from job where id = last_id),
      'history', array(select coalesce((history ->> span::text)::int, 0) from generate_series(0, 23) span))
      order by jobs desc, name, error_code), '[]'))::text from groups`,
  }
}

/** Maximum number of jobs per bulk action. */
export const MAX_BULK_JOBS = 100_000

const Id = z.object({ id: z.string() })
type Status = 'waiting' | 'scheduled' | 'available' | 'running' | 'done' | 'failed' | 'cancelled'

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

// Repeats the parts of the filter that have an index.
const buildIndexCondition = ({ owner_id, batch, key }: JobFilter) => sql.fragment`
  ${owner_id === undefined ? sql.fragment`true` : sql.fragment`job.owner_id = ${owner_id}::int`}
  and ${batch === undefined ? sql.fragment`true` : sql.fragment`job.batch_id = ${batch}::uuid`}
  and ${key === undefined ? sql.fragment`true` : sql.fragment`job.key = ${key}`}`

const buildSelectionCondition = ({ filter, states, before, unretried, only }: JobSelection) => sql.fragment`
  ${buildIndexCondition(filter)} and ${only === undefined ? sql.fragment`true` : sql.fragment`job.id = any(${sql.array(only, 'uuid')})`} and
  (${before}::uuid is null or job.ordinal < (select ordinal from job where id = ${before}::uuid)) and job.status = any(${sql.array(states, 'text')}) and job_matches(job, ${JSON.stringify(filter)}::jsonb)
  and (not ${unretried} or not exists (select from job again where again.retry_of = job.id))`

const SelectionCount = z.object({ count: z.number(), now: z.string(), oldest_end: z.string().nullable() })

/** Returns the number of selected jobs, at most `max`, the first end of one of them, and the database's time. */
export const countSelectedJobs = (which: JobSelection, max: number): Query<z.output<typeof SelectionCount>> =>
  sql.type(SelectionCount)`
    select count(*)::int as count, now()::text as now, iso(min(finished_at)) as oldest_end
    from (select finished_at from job where ${buildSelectionCondition(which)} limit ${max}) meant`

/** Returns the ids of selected jobs after a given job, in the order in which they were added. */
export const listSelectedIds = (
  which: JobSelection,
  after: string | null,
  limit: number,
): Query<{ id: string }> =>
  sql.type(Id)`
    select id from job where ${buildSelectionCondition(which)}
      and ordinal > coalesce((select ordinal from job where id = ${after}::uuid), 0) order by ordinal limit ${limit}`

/** Deletes those of the given jobs that have ended and whose result no job needs; returns a row for each. */
export const deleteEndedJobs = (ids: readonly string[]): Query<{ id: string }> =>
  sql.type(Id)`delete from job where id = any(array(
      select id from job where id = any(${sql.array(ids, 'uuid')}) and finished_at is not null and ${UNNEEDED_CONDITION} order by ordinal for update))
    returning id`
