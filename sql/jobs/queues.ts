import { z } from 'zod'
import { JsonText, type Query, sql } from '../db.ts'
import { QUEUE_CHANGED, WORKER_CHANGED } from '../notify.ts'
import type { ReadStatement } from '../reader.ts'
import { LIVE_COUNTS, waitingSince } from './lists.ts'
import { WINDOWS, type Window } from './tallies.ts'

/** The queues as admins see and steer them. */

/**
 * The queues of some names ($1), and all that have jobs, workers or figures of the last `spans` ($3) spans of `span` ($2)
 * seconds: as JSON texts, the time, the queues, and of each span `[queue, span, outcome, attempts, runs, waits]`.
 */
export const readQueues: ReadStatement<[names: readonly string[], span: number, spans: number]> = {
  name: 'queues',
  text: `
    with depth as (select * from ${LIVE_COUNTS} counted where queued > 0 or running > 0),
    tally as (
      -- The names of queues have the collation of the index of waiting jobs, which is read by them.
      select queue collate "default" as queue, extract(epoch from starts_at)::bigint / $2::int as span, outcome, attempts, runs, waits from job_tally
      where job_tally.span = $2::int and starts_at > now() - make_interval(secs => $2::int * ($3::int + 1))
    ), named as (
      select unnest($1::text[]) as queue union select queue from depth union select queue from tally
      union select unnest(queues) from worker_lease
    )
    select unnest(array[iso(now()),
      (select coalesce(json_agg(json_build_object('queue', named.queue, 'queued', coalesce(depth.queued, 0),
          'running', coalesce(depth.running, 0), 'oldest_at', iso(case when depth.queued > 0 then ${waitingSince('named.queue')} end),
          'workers', (select count(*) from worker_lease where named.queue = any(queues) and expires_at > now()),
          'paused_at', iso(c.paused_at), 'paused_by', c.paused_by, 'limit', c.most_running) order by named.queue), '[]')::text
        from named left join depth on depth.queue = named.queue left join queue_control c on c.queue = named.queue),
      (select coalesce(json_agg(json_build_array(queue, span, outcome, attempts, runs, waits)), '[]')::text from tally)])`,
}

/** Its parameters for a window. */
export const queuesOf = (names: readonly string[], window: Window) =>
  [names, WINDOWS[window].span, WINDOWS[window].spans] as const

const changed = sql.fragment`pg_notify(${QUEUE_CHANGED}, queue)`

/** Pauses a queue; one that is paused stays as it is, and answers no row. */
export const pauseQueue = (queue: string, by: number | null): Query<unknown> =>
  sql.type(z.object({}))`
    insert into queue_control as c (queue, paused_at, paused_by) values (${queue}, now(), ${by}::int)
    on conflict on constraint queue_control_pkey do update set paused_at = now(), paused_by = excluded.paused_by
    where c.paused_at is null
    returning ${changed}::text`

/** Resumes a queue; no row: it was not paused. */
export const resumeQueue = (queue: string): Query<unknown> =>
  sql.type(z.object({}))`
    update queue_control set paused_at = null, paused_by = null where queue = ${queue} and paused_at is not null
    returning ${changed}::text`

/** Sets how many jobs of a queue run at once; null: no limit. No row: it is so already. */
export const limitQueue = (queue: string, max: number | null): Query<unknown> =>
  sql.type(z.object({}))`
    insert into queue_control as c (queue, most_running) values (${queue}, ${max}::int)
    on conflict on constraint queue_control_pkey do update set most_running = excluded.most_running
    where c.most_running is distinct from excluded.most_running
    returning ${changed}::text`

/** What is asked of a queue now, within a transaction. */
export const controlOf = (queue: string): Query<{ json: string }> =>
  sql.type(JsonText)`
    select json_build_object('queue', q.queue, 'paused_at', iso(c.paused_at), 'paused_by', c.paused_by, 'limit', c.most_running)::text as json
    from (select ${queue}::text as queue) q left join queue_control c on c.queue = q.queue`

const Share = z.object({ queue: z.string(), places: z.number().nullable() })

/** Has a worker start no more jobs, or start them again; no row: there is no such worker. */
export const drainWorker = (lease: string, isDrained: boolean): Query<{ name: string }> =>
  sql.type(z.object({ name: z.string() }))`
    update worker_lease set drained_at = case when ${isDrained} then coalesce(drained_at, now()) end
    where id = ${lease}::uuid and expires_at > now()
    returning name, pg_notify(${WORKER_CHANGED}, '')::text`

/**
 * How many jobs of each controlled queue a worker may run; null: as many as it can. A limit is divided among the workers
 * of the queue that are alive and not drained, in the order of their leases; a drained one may run none.
 */
export const sharesOf = (lease: string): Query<z.output<typeof Share>> =>
  sql.prepared('queue_shares', Share)`
    select queue, 0 as places from worker_lease l, unnest(l.queues) queue where l.id = ${lease}::uuid and l.drained_at is not null
    union all
    select c.queue, case when c.paused_at is not null then 0 when c.most_running is not null
      then c.most_running / greatest(of.workers, 1) + case when of.place < c.most_running % greatest(of.workers, 1) then 1 else 0 end end as places
    from queue_control c cross join lateral (
      select count(*)::int as workers, count(*) filter (where l.id < ${lease}::uuid)::int as place
      from worker_lease l where c.queue = any(l.queues) and l.expires_at > now() and l.drained_at is null) of
    where not exists (select from worker_lease l where l.id = ${lease}::uuid and l.drained_at is not null)`
