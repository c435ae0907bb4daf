import { buildTimeSpanCondition, cursorOf, type List, mapOrders } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { buildJobJson, type JobRetention, PRIVATE_QUEUES } from './jobs.ts'

/**
 * Lists and counts of jobs for the edge. Each part of a list reads its rows in index order, and thus never sorts all
 * jobs. Scope `own` covers the jobs of an account ($1) and public jobs without an owner. Scope `all` is for admins.
 */
type Scope = 'own' | 'all'

const SCOPE_CONDITIONS: Readonly<Record<Scope, readonly string[]>> = {
  own: ['job.owner_id = $1::int', `job.owner_id is null and job.queue not in ${PRIVATE_QUEUES}`],
  all: ['$1::int is null or true'],
}

/** Selects up to `limit` rows for each scope condition, in index order. */
const selectRowsInScope = (scope: Scope, of: string, order: string, limit: string): string =>
  SCOPE_CONDITIONS[scope]
    .map(
      (visible) =>
        `(select job.id, job.ordinal, job.finished_at from job where (${visible}) and ${of} order by ${order} limit ${limit})`,
    )
    .join(' union all ')

type Direction = List['direction']

const selectRunningRows = (scope: Scope, after: string, limit: string, way: Direction = 'desc'): string =>
  selectRowsInScope(
    scope,
    `job.status = 'running' and ${after}`,
    `job.finished_at ${way}, job.ordinal ${way}`,
    limit,
  )

/** Public statuses of jobs that have no worker, with the statuses that they stand for. */
const PENDING_STATUSES = { queued: ['scheduled', 'available'], waiting: ['waiting'] } as const
type PendingStatus = keyof typeof PENDING_STATUSES

/** Condition for pending jobs, in the words of the predicate of `job_queued_idx` so that the planner uses it. */
const buildPendingCondition = (status: PendingStatus): string =>
  `job.status in (${PENDING_STATUSES[status].map((each) => `'${each}'`).join(', ')}) and job.finished_at is null`
/** SQL for the sorted parts of `job_queued_idx`, by queue and status. */
export const buildIndexParts = (status: PendingStatus): string =>
  `(select distinct queue, status from job_count, (values ${PENDING_STATUSES[status].map((each) => `('${each}')`).join(', ')}) part(status))`
export const buildIndexPartCondition = (status: PendingStatus): string =>
  `${buildPendingCondition(status)} and job.queue = q.queue and job.status = q.status`

// Scope `all` reads each queue separately, which is cheap because there are few queues.
const selectPendingRows = (
  status: PendingStatus,
  scope: Scope,
  after: string,
  limit: string,
  way: Direction = 'asc',
): string =>
  scope === 'own'
    ? PENDING_STATUSES[status]
        .map((each) =>
          selectRowsInScope(
            scope,
            `job.status = '${each}' and ${after}`,
            `job.finished_at ${way}, job.ordinal ${way}`,
            limit,
          ),
        )
        .join(' union all ')
    : `select job.* from ${buildIndexParts(status)} q cross join lateral (
        select job.id, job.ordinal, job.finished_at from job
        where ${buildIndexPartCondition(status)} and ${after} order by job.ordinal ${way} limit ${limit}) job`

const buildRetainedCondition = (isFailed: boolean): string =>
  `job.finished_at > now() - make_interval(secs => ($3::float8[])[${isFailed ? 2 : 1}])`
const ENDED_STATUSES = ['done', 'failed', 'cancelled']

// The indexes on all ended jobs have no owner column. The indexes by owner sort by status before time, so scope `own`
// reads each status separately. Scope `all` reads failed jobs separately, unless another status is asked for.
const selectEndedRows = (scope: Scope, status: string, after: string, limit: string): string =>
  (scope === 'own' ? ENDED_STATUSES : [...ENDED_STATUSES, null])
    .map((one) => {
      const asked =
        one === null
          ? `${status} is null`
          : scope === 'own' || one === 'failed'
            ? `coalesce(${status}, '${one}') = '${one}'`
            : `${status} = '${one}'`
      const of = one === null ? `job.status <> 'failed'` : `job.status = '${one}'`
      return selectRowsInScope(
        scope,
        `${asked} and ${of} and ${buildRetainedCondition(one === 'failed')} and ${after}`,
        'job.finished_at desc, job.ordinal desc',
        limit,
      )
    })
    .join(' union all ')

/** Cursor of the job list: the part of the list, then the sort keys within that part. */
export const JOB_ORDER = { part: 'bigint', at: 'timestamptz', ordinal: 'bigint' } as const

type Filters = [
  who: number | null,
  status: string | null,
  retention: JobRetention,
  from: string | null,
  to: string | null,
]
type JobList = ReadStatement<[...Filters, after: string | null, limit: number]>

export const scopeOf = (isAdmin: boolean): Scope => (isAdmin ? 'all' : 'own')

// Lists are not sorted by creation time, so jobs outside the time span are skipped one by one. Jobs that ended before
// the span are not read at all.
const ADDED_IN_SPAN_CONDITION = buildTimeSpanCondition('job.created_at', '$4', '$5')
const ENDED_IN_SPAN_CONDITION = `${ADDED_IN_SPAN_CONDITION} and ($4::timestamptz is null or job.finished_at >= $4::timestamptz)`
const PAGE_LIMIT = '$7::int + 1'
const buildStatusCondition = (status: string): string => `coalesce($2::text, '${status}') = '${status}'`

/**
 * Jobs after a cursor, filtered by status and time. Running jobs come first, then queued and waiting ones (oldest
 * first), then ended ones (latest first).
 */
export const readJobs: Readonly<Record<Scope, JobList>> = {
  own: buildJobList('own'),
  all: buildJobList('all'),
}

function buildJobList(scope: Scope): JobList {
  const part = '($6::jsonb ->> 0)::bigint'
  const ordinal = '($6::jsonb ->> 2)::bigint'
  const last = `($6::jsonb is null or ${part} < 3 or (job.finished_at, job.ordinal) < (($6::jsonb ->> 1)::timestamptz, ${ordinal}))`
  const pending = (status: PendingStatus, n: number): string =>
    selectPendingRows(
      status,
      scope,
      `${buildStatusCondition(status)} and ${ADDED_IN_SPAN_CONDITION} and ($6::jsonb is null or ${part} < ${n} or ${part} = ${n} and job.ordinal > ${ordinal})`,
      PAGE_LIMIT,
    )
  return {
    name: `jobs_${scope}`,
    text: buildPage(
      ['part', 'at', 'found.ordinal'],
      `part, case when part in (1, 2) then ordinal end, at desc, ordinal desc`,
      `select 0 as part, id, ordinal, timestamptz 'epoch' as at from (${selectRunningRows(scope, `${buildStatusCondition('running')} and ${ADDED_IN_SPAN_CONDITION} and ($6::jsonb is null or ${part} = 0 and job.ordinal < ${ordinal})`, PAGE_LIMIT)}) job
       union all
       select 1, id, ordinal, 'epoch' from (${pending('queued', 1)}) job
       union all
       select 2, id, ordinal, 'epoch' from (${pending('waiting', 2)}) job
       union all
       select 3, id, ordinal, finished_at from (${selectEndedRows(scope, '$2::text', `${ENDED_IN_SPAN_CONDITION} and ${last}`, PAGE_LIMIT)}) job`,
    ),
  }
}

/**
 * Returns a statement for one page. Its result is a line with the cursor of the next page (empty on the last page),
 * then a JSON array of jobs.
 */
function buildPage(keys: readonly string[], order: string, found: string): string {
  return `
    select concat(case when count(*) > $7::int then max(${cursorOf(keys)}) filter (where n = $7::int) end,
      E'\\n[', string_agg((${buildJobJson('$3')})::text, ',' order by n) filter (where n <= $7::int), ']')
    from (
      select *, row_number() over (order by ${order}) as n from (${found}) parts order by n limit ${PAGE_LIMIT}
    ) found join job on job.id = found.id`
}

/** Maximum number of ended jobs of each state to sort. */
export const MAX_SORTED_JOBS = 800

/** Alternative sort orders for jobs. */
export const JOB_SORT_ORDERS = { created_at: { 'job.ordinal': 'bigint' } } as const

/**
 * Jobs in the order in which they were added. No index serves ended jobs in this order, because it would slow down
 * every step of every job. Instead, the statement sorts the last {@link MAX_SORTED_JOBS} ended jobs of each state.
 */
export const readSortedJobs = mapOrders(JOB_SORT_ORDERS, (_column, _order, way) => ({
  own: buildSortedJobList('own', way),
  all: buildSortedJobList('all', way),
}))

function buildSortedJobList(scope: Scope, way: Direction): JobList {
  const after = `($6::jsonb is null or job.ordinal ${way === 'asc' ? '>' : '<'} ($6::jsonb ->> 0)::bigint)`
  const live = (status: string): string =>
    `${buildStatusCondition(status)} and ${ADDED_IN_SPAN_CONDITION} and ${after}`
  return {
    name: `jobs_${scope}_added_${way}`,
    text: buildPage(
      ['found.ordinal'],
      `ordinal ${way}`,
      `select * from (${selectRunningRows(scope, live('running'), PAGE_LIMIT, way)}) job
       union all select * from (${selectPendingRows('queued', scope, live('queued'), PAGE_LIMIT, way)}) job
       union all select * from (${selectPendingRows('waiting', scope, live('waiting'), PAGE_LIMIT, way)}) job
       union all select * from (${selectEndedRows(scope, '$2::text', ENDED_IN_SPAN_CONDITION, String(MAX_SORTED_JOBS))}) job where ${after}`,
    ),
  }
}

/** A stream of all jobs starts with at most this many running jobs, and as many queued and waiting ones. */
export const MAX_LIVE_JOBS = '1000'

type LiveIds = ReadStatement<[who: number | null, queue: string | null, task: string | null]>

/**
 * Ids of live jobs of a queue and a task (null: any), running ones first, for the start of the stream of all jobs. Jobs
 * of other tasks are skipped one by one.
 */
export const readLiveIds: Readonly<Record<Scope, LiveIds>> = {
  own: buildLiveIds('own'),
  all: buildLiveIds('all'),
}

function buildLiveIds(scope: Scope): LiveIds {
  const asked = (row: string): string =>
    `($2::text is null or ${row}.queue = $2::text) and ($3::text is null or job.name = $3::text)`
  // Skips the parts of other queues.
  const pending = asked(scope === 'all' ? 'q' : 'job')
  return {
    name: `job_live_ids_${scope}`,
    text: `
      (select id from (${selectRunningRows(scope, asked('job'), MAX_LIVE_JOBS)}) job order by ordinal limit ${MAX_LIVE_JOBS})
      union all
      (select id from (${selectPendingRows('queued', scope, pending, MAX_LIVE_JOBS)}) job where $1::int is null or true order by ordinal limit ${MAX_LIVE_JOBS})
      union all
      (select id from (${selectPendingRows('waiting', scope, pending, MAX_LIVE_JOBS)}) job order by ordinal limit ${MAX_LIVE_JOBS})`,
  }
}

/** SQL for the numbers of queued, running and waiting jobs per queue. */
export const LIVE_COUNTS = `(select queue, sum(queued)::int as queued, sum(running)::int as running, sum(waiting)::int as waiting
  from job_count group by queue)`

/** Returns SQL for the start of the longest wait of an available job in a queue; null if there is none. */
export const buildWaitingSince = (queue: string): string =>
  `(select run_at from job where ${buildPendingCondition('queued')} and status = 'available' and queue = ${queue} order by ordinal limit 1)`

/** Queued, running and waiting jobs per queue, with the longest wait in seconds, for metrics. */
export const readQueueDepths: ReadStatement<[]> = {
  name: 'job_queue_depths',
  text: `
    select coalesce(json_agg(json_build_object('queue', queue, 'queued', queued, 'running', running,
      'waiting', waiting, 'oldest_seconds', extract(epoch from now() - ${buildWaitingSince('counted.queue')}))), '[]')::text from ${LIVE_COUNTS} counted`,
}
