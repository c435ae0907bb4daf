import { z } from 'zod'
import { QUEUE_CHANGED_CHANNEL, WORKER_CHANGED_CHANNEL } from '../connections/notify.ts'
import { JsonText, type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { buildWaitingSince, LIVE_COUNTS } from './lists.ts'
import { buildHistogramSum, MAX_NAMED_SERIES, OTHER_SERIES, type TallyWindow, WINDOWS } from './tallies.ts'

/** Statements for admins to inspect and control queues and workers. */

/** SQL condition for the leases of workers. An endpoint of a worker queue has a lease for each of its jobs. */
export const IS_WORKER = `(info -> 'push') is null`

/** Maximum number of listed queues. Those with jobs, workers or controls come first. */
export const MAX_LISTED_QUEUES = 500

const IN_WINDOW = `job_tally.span = $2::int
  and starts_at > date_bin(make_interval(secs => $2::int), now(), 'epoch') - make_interval(secs => $2::int * $3::int)`

/** Maximum number of queues with times by span. Those with the most attempts of the window come first. */
export const MAX_TIMED_QUEUES = 20

/**
 * The named queues ($1), plus every queue that has jobs, workers, controls or recent tallies, and other worker queues.
 * Tallies cover the last `spans` ($3) spans of `span` ($2) seconds. Returns the time and four JSON texts. They
 * are the queues, a row `[queue, span, outcome, attempts]` per outcome and span, and a row `[queue, runs, waits]` per queue.
 * With `hasTimes` ($4), the last text has a row `[queue, runs, waits, span]` per span of {@link MAX_TIMED_QUEUES} queues.
 */
export const readQueues: ReadStatement<
  [names: readonly string[], span: number, spans: number, hasTimes: boolean]
> = {
  name: 'queues',
  text: `
    with depth as (select * from ${LIVE_COUNTS} counted where queued > 0 or running > 0 or waiting > 0),
    tally as (
      -- Queue names need the collation of the index of queued jobs, which is read by queue.
      select queue collate "default" as queue, extract(epoch from starts_at)::bigint / $2::int as span, outcome, sum(attempts) as attempts
      from job_tally where ${IN_WINDOW} group by 1, 2, 3
    ), worker as (
      select queue, count(*) filter (where expires_at > now()) as workers from (
        select unnest(queues) as queue, expires_at from worker_lease where ${IS_WORKER}) served group by queue
    ), named as (
      select queue from (
        select unnest($1::text[]) as queue, 0 as rank union all select queue, 1 from depth union all select queue, 1 from worker
        union all select q.name collate "default", 1 from worker_queue q join queue_control c on c.queue = q.name and (c.paused_at is not null or c.most_running is not null)
        union all select queue, 2 from tally
        union all (select name collate "default", 3 from worker_queue order by name limit ${MAX_LISTED_QUEUES})
      ) found group by queue order by min(rank), queue limit ${MAX_LISTED_QUEUES}
    )
    select unnest(array[iso(now()),
      (select coalesce(json_agg(json_build_object('queue', named.queue, 'queued', coalesce(depth.queued, 0),
          'running', coalesce(depth.running, 0), 'waiting', coalesce(depth.waiting, 0), 'oldest_at', iso(case when depth.queued > 0 then ${buildWaitingSince('named.queue')} end),
          'workers', coalesce(worker.workers, 0),
          'paused_at', iso(c.paused_at), 'paused_by', c.paused_by, 'limit', c.most_running) order by named.queue), '[]')::text
        from named left join depth on depth.queue = named.queue left join worker on worker.queue = named.queue
        left join queue_control c on c.queue = named.queue),
      (select coalesce(json_agg(json_build_array(queue, span, outcome, attempts)), '[]')::text
        from tally where queue in (select queue from named)),
      (select coalesce(json_agg(json_build_array(queue, runs, waits)), '[]')::text from (
        select queue, ${buildHistogramSum('runs')} as runs, ${buildHistogramSum('waits')} as waits
        from job_tally where ${IN_WINDOW} and queue collate "default" in (select queue from named) group by queue) summed),
      case when $4::boolean then (select coalesce(json_agg(json_build_array(queue, runs, waits, span)), '[]')::text from (
        select queue, extract(epoch from starts_at)::bigint / $2::int as span, ${buildHistogramSum('runs')} as runs, ${buildHistogramSum('waits')} as waits
        from job_tally where ${IN_WINDOW} and queue collate "default" in (
          select queue from tally group by queue order by sum(attempts) desc, queue limit ${MAX_TIMED_QUEUES}) group by 1, 2) timed)
        else '[]' end])`,
}

/**
 * Numbers of live HTTP workers by queue, as a JSON object for metrics. Queues beyond {@link MAX_NAMED_SERIES} add up to one
 * entry.
 */
export const readHttpWorkerCounts: ReadStatement<[]> = {
  name: 'http_worker_counts',
  text: `
    select coalesce(json_object_agg(queue, workers), '{}')::text from (
      select case when rank <= ${MAX_NAMED_SERIES} then queue else '${OTHER_SERIES}' end as queue, sum(workers) as workers from (
        select queue, count(*) as workers, row_number() over (order by count(*) desc, queue) as rank
        from worker_lease where queue is not null and ${IS_WORKER} and expires_at > now() group by queue) counted
      group by 1) bounded`,
}

/** Locks a worker queue against its deletion; no row if there is none of this name. */
export const lockQueueName = (queue: string): Query<{ name: string }> =>
  sql.type(z.object({ name: z.string() }))`
    select name from worker_queue where name = ${queue} for key share`

/** Returns the parameters of {@link readQueues} for a time window. */
export const getWindowParameters = (names: readonly string[], window: TallyWindow, hasTimes: boolean) =>
  [names, WINDOWS[window].span, WINDOWS[window].spans, hasTimes] as const

const NOTIFY_QUEUE_CHANGE = sql.fragment`pg_notify(${QUEUE_CHANGED_CHANNEL}, queue)`

/** Pauses a queue; returns no row and changes nothing if it is already paused. */
export const pauseQueue = (queue: string, by: number | null): Query<unknown> =>
  sql.type(z.object({}))`
    insert into queue_control as c (queue, paused_at, paused_by) values (${queue}, now(), ${by}::int)
    on conflict on constraint queue_control_pkey do update set paused_at = now(), paused_by = excluded.paused_by
    where c.paused_at is null
    returning ${NOTIFY_QUEUE_CHANGE}::text`

/** Resumes a queue; returns no row if it was not paused. */
export const resumeQueue = (queue: string): Query<unknown> =>
  sql.type(z.object({}))`
    update queue_control set paused_at = null, paused_by = null where queue = ${queue} and paused_at is not null
    returning ${NOTIFY_QUEUE_CHANGE}::text`

/** Sets the concurrency limit of a queue; null removes it. Returns no row if the limit is unchanged. */
export const setQueueLimit = (queue: string, max: number | null): Query<unknown> =>
  sql.type(z.object({}))`
    insert into queue_control as c (queue, most_running) values (${queue}, ${max}::int)
    on conflict on constraint queue_control_pkey do update set most_running = excluded.most_running
    where c.most_running is distinct from excluded.most_running
    returning ${NOTIFY_QUEUE_CHANGE}::text`

/** Returns the pause and the limit of a queue, for use in a transaction. */
export const getQueueControl = (queue: string): Query<{ json: string }> =>
  sql.type(JsonText)`
    select json_build_object('queue', q.queue, 'paused_at', iso(c.paused_at), 'paused_by', c.paused_by, 'limit', c.most_running)::text as json
    from (select ${queue}::text as queue) q left join queue_control c on c.queue = q.queue`

const QueueShare = z.object({ queue: z.string(), concurrency: z.number().nullable(), drained: z.boolean() })

/** Drains a worker so that it claims no more jobs, or undrains it. No row if no live worker has the lease. */
export const setWorkerDrained = (lease: string, isDrained: boolean): Query<{ name: string }> =>
  sql.type(z.object({ name: z.string() }))`
    update worker_lease set drained_at = case when ${isDrained} then coalesce(drained_at, now()) end
    where id = ${lease}::uuid and expires_at > now()
    returning name, pg_notify(${WORKER_CHANGED_CHANNEL}, '')::text`

/**
 * Returns the concurrency of a worker for each controlled queue; null means no limit, 0 a pause. The limit of a queue is
 * divided among its live, undrained workers, ordered by lease. `drained` is true for all queues of a drained worker.
 * Excludes worker queues, whose claims apply the controls themselves.
 */
export const readQueueShares = (lease: string): Query<z.output<typeof QueueShare>> =>
  sql.prepared('queue_shares', QueueShare)`
    select served.queue, 0 as concurrency, true as drained
    from worker_lease l, unnest(l.queues) served(queue) where l.id = ${lease}::uuid and l.drained_at is not null
    union all
    select c.queue, case when c.paused_at is not null then 0 when c.most_running is not null
      then c.most_running / greatest(live.workers, 1) + case when live.earlier < c.most_running % greatest(live.workers, 1) then 1 else 0 end end, false
    from queue_control c cross join lateral (
      select count(*)::int as workers, count(*) filter (where l.id < ${lease}::uuid)::int as earlier
      from worker_lease l where c.queue = any(l.queues) and l.queue is null and l.expires_at > now() and l.drained_at is null) live
    where not exists (select from worker_lease l where l.id = ${lease}::uuid and l.drained_at is not null)
      and not exists (select from worker_queue q where q.name = c.queue)`
