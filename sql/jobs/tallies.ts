import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Outcomes of attempts per time span. These statistics outlive the jobs. */

/**
 * Histogram bounds in seconds: five per decade from 1 ms to 10,000 s. A percentile interpolated between two of them is
 * accurate within a factor of 1.6 (the fifth root of ten).
 */
export const HISTOGRAM_BOUNDS: readonly number[] = Array.from({ length: 36 }, (_, n) =>
  Number((10 ** (n / 5 - 3)).toPrecision(3)),
)

/** Time windows that end now: `spans` spans of `span` seconds each, as in `job_tally_add`. */
export const WINDOWS = {
  '10m': { span: 10, spans: 60 },
  '1h': { span: 60, spans: 60 },
  '24h': { span: 1200, spans: 72 },
  '7d': { span: 7200, spans: 84 },
} as const
export type TallyWindow = keyof typeof WINDOWS

/** Outcome of an attempt. After `retry`, `release` and `interrupted`, the job is requeued. */
export type TallyOutcome = 'done' | 'failed' | 'cancelled' | 'retry' | 'release' | 'interrupted'

/** Number and times of the attempts with the same queue, task and outcome. */
export interface Tally {
  readonly queue: string
  readonly name: string
  readonly outcome: TallyOutcome
  readonly attempts: number
  readonly run_seconds: number
  readonly wait_seconds: number
  /** Histograms of run and wait times with the bounds of {@link HISTOGRAM_BOUNDS}. */
  readonly runs: readonly number[]
  readonly waits: readonly number[]
}

/** Names of a worker's counters other than tallies. */
export type WorkerCounter = 'children_lost' | 'leases_lost' | 'statements_too_slow' | 'threads_killed'

/** Adds a worker's new counts to the stored tallies and counters. */
export const addTallies = (
  tallies: readonly Tally[],
  counters: Readonly<Partial<Record<WorkerCounter, number>>>,
): Query<unknown> =>
  sql.prepared('job_tally_add', noRows)`
    with counted as (
      insert into worker_counter as c (name, value)
      select key, value::bigint from jsonb_each_text(${JSON.stringify(counters)}::jsonb) order by key
      on conflict on constraint worker_counter_pkey do update set value = c.value + excluded.value
    )
    select job_tally_add(${JSON.stringify(tallies)}::jsonb)`

const KEPT_WINDOWS = Object.values(WINDOWS)

/**
 * Prunes tallies that have left their window, and the totals of tasks of worker queues without an attempt in the longest
 * window; returns their number.
 */
export const deleteExpiredTallies = (): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (delete from job_tally t using unnest(${sql.array(
      KEPT_WINDOWS.map(({ span }) => span),
      'int4',
    )}, ${sql.array(
      KEPT_WINDOWS.map(({ spans }) => spans + 2),
      'int4',
    )}) as kept(span, spans)
    where t.span = kept.span and t.starts_at < now() - make_interval(secs => kept.span * kept.spans) returning 1),
    unused as (
      delete from job_tally where span = 0 and position('/' in name) > 0
        and (queue, name) not in (select queue, name from job_tally where span = ${WINDOWS['7d'].span}::int4) returning 1
    )
    select ((select count(*) from expired) + (select count(*) from unused))::int as count`

/** Returns SQL for the sum of a column of histograms. Summing by element takes a fourth of the time of `unnest`. */
export const buildHistogramSum = (column: string): string =>
  `array[${Array.from({ length: HISTOGRAM_BOUNDS.length + 1 }, (_, n) => `coalesce(sum(${column}[${n + 1}]), 0)::bigint`).join(', ')}]`

/**
 * Maximum number of tasks of worker queues, and of worker queues, that have their own series in the metrics. Callers choose
 * these names, so there is no other bound. The rest adds up to one series.
 */
export const MAX_NAMED_SERIES = 200
/** Queue and task of the series of the rest. */
export const OTHER_SERIES = 'other'

// The name of a job contains a slash if and only if it belongs to a worker queue.
const IS_OF_WORKER_QUEUE = `position('/' in name) > 0`

/** All-time tallies, counters and live workers for metrics, as JSON texts. Workers of callers are not among them. */
export const readTallyTotals: ReadStatement<[]> = {
  name: 'job_totals',
  text: `
    with named as (
      select name from job_tally where span = 0 and ${IS_OF_WORKER_QUEUE}
      group by name order by sum(attempts) desc, name limit ${MAX_NAMED_SERIES}
    ), total as (
      select queue, name, outcome, attempts, run_seconds, wait_seconds, runs, waits from job_tally
      where span = 0 and (not ${IS_OF_WORKER_QUEUE} or name in (select name from named))
      union all
      select '${OTHER_SERIES}', '${OTHER_SERIES}', outcome, sum(attempts)::bigint, sum(run_seconds), sum(wait_seconds),
        ${buildHistogramSum('runs')}, ${buildHistogramSum('waits')}
      from job_tally where span = 0 and ${IS_OF_WORKER_QUEUE} and name not in (select name from named) group by outcome
    )
    select unnest(array[
    (select coalesce(json_agg(json_build_object('queue', queue, 'name', name, 'outcome', outcome, 'attempts', attempts,
      'run_seconds', run_seconds, 'wait_seconds', wait_seconds, 'runs', runs, 'waits', waits)), '[]')::text from total),
    (select coalesce(json_object_agg(name, value), '{}')::text from worker_counter),
    (select coalesce(json_agg(json_build_object('name', name, 'threads', threads, 'busy', busy, 'memory_bytes', memory_bytes,
      'running', (select count(*) from job where job.status = 'running' and job.lease_id = worker_lease.id))), '[]')::text
      from worker_lease where expires_at > now() and queue is null)])`,
}
