import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { buildRetainedCondition, type JobRetention } from './jobs.ts'
import { buildWaitingSince, LIVE_COUNTS } from './lists.ts'

/** Job reads for the routes under `/tasks`. */

const TASK_RESULT_JSON = `json_build_object(
  'task_id', job.id,
  'task_name', case when starts_with(name, queue || '.') or starts_with(name, queue || '/') then substr(name, length(queue) + 2) else name end,
  'queue_type', queue,
  'status', case status when 'done' then 'completed' when 'cancelled' then 'failed' else job_client_status(status) end,
  'result', result,
  'error', case
    when error_code is not null then json_build_object('code', error_code, 'detail', error_detail)
    when status = 'cancelled' then json_build_object('code', 'job.cancelled', 'detail', 'The job was cancelled') end,
  'enqueued_at', iso(created_at), 'started_at', iso(started_at), 'finished_at', iso(finished_at))`
// Names of jobs of worker queues have a slash.
const VISIBLE_TASK_CONDITION = `(queue = any($4::text[]) or position('/' in name) > 0) and ($2::boolean or owner_id is null or owner_id = $1::int)
  and ${buildRetainedCondition('$5')}`

/**
 * State and result of a task, if the caller may see it. `queues` lists the public queues. The other parameters are
 * those of `VisibleJob`.
 */
export const readTaskResult: ReadStatement<
  [who: number | null, everything: boolean, id: string, queues: readonly string[], retention: JobRetention]
> = {
  name: 'task_result',
  text: `select ${TASK_RESULT_JSON}::text from job where id = $3::uuid and ${VISIBLE_TASK_CONDITION}`,
}

/** States and results of several tasks, in the order of `ids`. `missing` has the `names` of those that were not found. */
export const readTaskResults: ReadStatement<
  [
    who: number | null,
    everything: boolean,
    ids: readonly string[],
    queues: readonly string[],
    retention: JobRetention,
    names: readonly string[],
  ]
> = {
  name: 'task_results',
  text: `
    select json_build_object('results', coalesce(json_agg(json order by n) filter (where json is not null), '[]'),
      'missing', coalesce(json_agg(wanted.name order by n) filter (where json is null), '[]'))::text
    from unnest($3::uuid[], $6::text[]) with ordinality as wanted(id, name, n) left join lateral (
      select ${TASK_RESULT_JSON} as json from job where job.id = wanted.id and ${VISIBLE_TASK_CONDITION}) found on true`,
}

/** Numbers of queued, running and waiting jobs of each named queue, and the age of its longest-waiting job in seconds. */
export const readNamedQueues: ReadStatement<[queues: readonly string[]]> = {
  name: 'task_queues',
  text: `
    select json_agg(json_build_object('queue_type', q.name, 'depth', coalesce(live.queued, 0), 'running', coalesce(live.running, 0),
      'waiting', coalesce(live.waiting, 0), 'oldest_seconds', extract(epoch from now() - ${buildWaitingSince('q.name')})::float8) order by q.name)::text
    from unnest($1::text[]) as q(name) left join ${LIVE_COUNTS} live on live.queue = q.name`,
}

const Percentiles = z.strictObject({
  p50: z.number(),
  p95: z.number(),
  p99: z.number(),
  max: z.number(),
})
/** Percentiles of durations in ms. */
export type Percentiles = z.output<typeof Percentiles>

const LoadTimes = z.object({
  seconds: z.number(),
  latency: Percentiles.nullable(),
  start: Percentiles.nullable(),
})

const buildPercentiles = (from: string, to: string) => {
  const values = sql.fragment`extract(epoch from ${sql.identifier([to])} - ${sql.identifier([from])})::float8 * 1000`
  return sql.fragment`
    case when count(*) > 0 then json_build_object(
      'p50', percentile_cont(0.5) within group (order by ${values}),
      'p95', percentile_cont(0.95) within group (order by ${values}),
      'p99', percentile_cont(0.99) within group (order by ${values}),
      'max', max(${values})) end`
}

/**
 * Returns the times of the jobs of a load test that ran. `seconds` is the time from the first addition to the last end. `latency` is
 * the time from addition to end, and `start` the time from addition to start, both in ms.
 */
export const getLoadTestTimes = (batch: string): Query<z.output<typeof LoadTimes>> =>
  sql.type(LoadTimes)`
    select coalesce(extract(epoch from max(finished_at) - min(created_at)), 0)::float8 as seconds,
      ${buildPercentiles('created_at', 'finished_at')} as latency, ${buildPercentiles('created_at', 'started_at')} as start
    from job where batch_id = ${batch}::uuid and started_at is not null and finished_at is not null`
