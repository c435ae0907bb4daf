import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { buildRetainedCondition, type JobRetention } from './jobs.ts'
import { buildIndexPartCondition, buildIndexParts, buildWaitingSince, LIVE_COUNTS } from './lists.ts'
import { IS_WORKER, MAX_LISTED_QUEUES } from './queues.ts'

/** Data of the monitor page, read in one statement for a consistent snapshot. */

const MAX_LISTED_JOBS = 50
/** Maximum number of listed workers: own ones first, then live ones of worker queues. */
const MAX_LISTED_WORKERS = 500

/** The parts of the monitor page as JSON texts; `at` is the database's time. */
export interface Monitor {
  readonly at: string
  /** Queues with their depth and longest wait. */
  readonly queues: string
  /** Workers with a lease. */
  readonly workers: string
  /** The running jobs that were added first, like `queued` and `waiting`. `failed` has the latest failures. */
  readonly running: string
  readonly queued: string
  readonly waiting: string
  readonly failed: string
  /** Totals over all queues and workers, also those beyond the maximum of a list. */
  readonly totals: { readonly queues: string; readonly workers: string }
}

/** Returns SQL for the pending jobs that were added first. */
const selectFirstJobs = (status: 'queued' | 'waiting'): string => `
  select job.* from ${buildIndexParts(status)} q cross join lateral (
    select id, ordinal, name, queue, created_at, run_at, status, label, waits_for from job
    where ${buildIndexPartCondition(status)} order by ordinal limit ${MAX_LISTED_JOBS}) job`

/** Data of the monitor page, as texts for {@link parseMonitor}. */
export const readMonitor: ReadStatement<[retention: JobRetention]> = {
  name: 'monitor',
  text: `
    with queued as (${selectFirstJobs('queued')}), waiting as (${selectFirstJobs('waiting')}), running as (
      select id, lease_id, name, queue, label, progress_current, progress_total, attempt, cancel_requested_at, started_at
      from job where status = 'running'
    ), depth as (select * from ${LIVE_COUNTS} counted where queued > 0 or running > 0 or waiting > 0),
    worker as (select * from worker_lease where ${IS_WORKER})
    select unnest(array[iso(now()),
      (select coalesce(json_agg(json_build_object('queue', queue, 'queued', queued, 'running', running, 'waiting', waiting,
          'oldest_at', iso(case when queued > 0 then ${buildWaitingSince('listed.queue')} end)) order by queue), '[]')::text from (
        select queue, max(queued) as queued, max(running) as running, max(waiting) as waiting from (
          select queue, queued, running, waiting, 1 as rank from depth
          union all select unnest(queues), 0, 0, 0, case when queue is null then 0 else 2 end from worker) parts
        group by queue order by min(rank), queue limit ${MAX_LISTED_QUEUES}) listed),
      (select coalesce(json_agg(json_build_object('id', id, 'name', name, 'queue', queue, 'host', info ->> 'host',
          'language', info ->> 'language', 'version', info ->> 'version', 'queues', queues, 'threads', case when queue is null then threads end,
          'memory_bytes', case when queue is null then memory_bytes end, 'started_at', iso(started_at), 'expires_at', iso(expires_at),
          'alive', expires_at > now(), 'drained', drained_at is not null, 'busy', case when queue is null then busy end,
          'running', coalesce(load.running, 0)) order by queue nulls first, name, id), '[]')::text
        from (select * from worker order by queue is not null, expires_at <= now(), queue, name, id limit ${MAX_LISTED_WORKERS}) listed
        left join (select lease_id, count(*) as running from running group by lease_id) load on load.lease_id = listed.id),
      (select coalesce(json_agg(job order by id), '[]')::text from (
        select running.id, json_build_object('job_id', running.id, 'name', running.name, 'queue', running.queue, 'label', label,
          'progress', case when progress_current is not null or progress_total is not null
            then json_build_object('current', progress_current, 'total', progress_total) end,
          'attempts', attempt, 'cancelling', cancel_requested_at is not null, 'started_at', iso(running.started_at),
          'worker', worker_lease.name) as job
        from running left join worker_lease on worker_lease.id = lease_id order by running.id limit ${MAX_LISTED_JOBS}) jobs),
      (select coalesce(json_agg(job order by ordinal), '[]')::text from (
        select ordinal, json_build_object('job_id', id, 'name', name, 'queue', queue, 'created_at', iso(created_at),
          'due_at', case when status = 'scheduled' then iso(run_at) end) as job
        from queued order by ordinal limit ${MAX_LISTED_JOBS}) jobs),
      (select coalesce(json_agg(job order by ordinal), '[]')::text from (
        select ordinal, json_build_object('job_id', id, 'name', name, 'queue', queue, 'created_at', iso(created_at),
          'label', label, 'waits_for', waits_for) as job
        from waiting order by ordinal limit ${MAX_LISTED_JOBS}) jobs),
      (select coalesce(json_agg(job order by finished_at desc), '[]')::text from (
        select finished_at, json_build_object('job_id', id, 'name', name, 'queue', queue, 'attempts', attempt,
          'error', json_build_object('code', error_code, 'detail', error_detail), 'finished_at', iso(finished_at),
          'expires_at', iso(job_expires_at(job, $1::float8[])),
          'retried_by', (select id from job again where again.retry_of = job.id)) as job
        from job where status = 'failed' and ${buildRetainedCondition('$1')} order by finished_at desc limit ${MAX_LISTED_JOBS}) jobs),
      (select json_build_object('queued', coalesce(sum(queued), 0), 'running', coalesce(sum(running), 0),
        'waiting', coalesce(sum(waiting), 0))::text from depth),
      (select json_build_object('alive', count(*))::text from worker where expires_at > now())])`,
}

/** Assigns the texts of {@link readMonitor} to named fields. */
export function parseMonitor(texts: readonly string[]): Monitor {
  const [at, queues, workers, running, queued, waiting, failed, jobTotal, workerTotal] = texts
  return {
    at: at!,
    queues: queues!,
    workers: workers!,
    running: running!,
    queued: queued!,
    waiting: waiting!,
    failed: failed!,
    totals: { queues: jobTotal!, workers: workerTotal! },
  }
}

const JobHistory = z.object({ json: z.string().nullable() })

/** Returns the latest events of a job with their times, oldest first. The caller must check that the job is visible. */
export const findJobHistory = (id: string, limit: number): Query<z.output<typeof JobHistory>> =>
  sql.prepared('job_history', JobHistory)`
    select json_agg(json_build_object('seq', seq, 'kind', kind, 'at', iso(created_at), 'data', data) order by seq)::text as json
    from (select * from job_event where job_id = ${id}::uuid order by seq desc limit ${limit}::int) events`
