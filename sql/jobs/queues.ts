import { z } from 'zod'
import { QUEUE_CHANGED_CHANNEL, WORKER_CHANGED_CHANNEL } from '../connections/notify.ts'
import { JsonText, type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { buildWaitingSince, LIVE_COUNTS } from './lists.ts'
import { type TallyWindow, WINDOWS } from './tallies.ts'

/** Statements for admins to inspect and control queues and workers. */

/**
 * The named queues ($1), plus every queue that has jobs, workers or recent tallies. Tallies cover the last `spans` ($3)
 * spans of `span` ($2) seconds. Returns the time and two JSON texts: the queues, and a row `[queue, span, outcome,
 * attempts, runs, waits]` per tally.
 */
export const readQueues: ReadStatement<[names: readonly string[], span: number, spans: number]> = {
  name: 'queues',
  text: `
    with depth as (select * from ${LIVE_COUNTS} counted where queued > 0 or running > 0 or waiting > 0),
    tally as (
      -- Queue names need the collation of the index of queued jobs, which is read by queue.
      select queue collate "default" as queue, extract(epoch from starts_at)::bigint / $2::int as span, outcome, attempts, runs, waits from job_tally
      where job_tally.span = $2::int and starts_at > now() - make_interval(secs => $2::int * ($3::int + 1))
    ), named as (
      select unnest($1::text[]) as queue union select queue from depth union select queue from tally
      union select unnest(queues) from worker_lease
    )
    select unnest(array[iso(now()),
      (select coalesce(json_agg(json_build_object('queue', named.queue, 'queued', coalesce(depth.queued, 0),
          'running', coalesce(depth.running, 0), 'waiting', coalesce(depth.waiting, 0), 'oldest_at', iso(case when depth.queued > 0 then ${buildWaitingSince('named.queue')} end),
          'workers', (select count(*) from worker_lease where named.queue = any(queues) and expires_at > now()),
          'paused_at', iso(c.paused_at), 'paused_by', c.paused_by, 'limit', c.most_running) order by named.queue), '[]')::text
        from named left join depth on depth.queue = named.queue left join queue_control c on c.queue = named.queue),
      (select coalesce(json_agg(json_build_array(queue, span, outcome, attempts, runs, waits)), '[]')::text from tally)])`,
}

/** Returns the parameters of {@link readQueues} for a time window. */
export const getWindowParameters = (names: readonly string[], window: TallyWindow) =>
  [names, WINDOWS[window].span, WINDOWS[window].spans] as const

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
 */
export const readQueueShares = (lease: string): Query<z.output<typeof QueueShare>> =>
  sql.prepared('queue_shares', QueueShare)`
    select queue, 0 as concurrency, true as drained
    from worker_lease l, unnest(l.queues) queue where l.id = ${lease}::uuid and l.drained_at is not null
    union all
    select c.queue, case when c.paused_at is not null then 0 when c.most_running is not null
      then c.most_running / greatest(live.workers, 1) + case when live.earlier < c.most_running % greatest(live.workers, 1) then 1 else 0 end end, false
    from queue_control c cross join lateral (
      select count(*)::int as workers, count(*) filter (where l.id < ${lease}::uuid)::int as earlier
      from worker_lease l where c.queue = any(l.queues) and l.expires_at > now() and l.drained_at is null) live
    where not exists (select from worker_lease l where l.id = ${lease}::uuid and l.drained_at is not null)`
