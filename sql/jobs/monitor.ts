import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { buildRetainedCondition, type JobRetention } from './jobs.ts'
import { buildIndexPartCondition, buildIndexParts, buildWaitingSince, LIVE_COUNTS } from './lists.ts'

/** Data of the monitor page, read in one statement for a consistent snapshot. */

const MAX_LISTED_JOBS = 50

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
      select * from job where status = 'running'
    )
    select unnest(array[iso(now()),
      (select coalesce(json_agg(json_build_object('queue', queue, 'queued', queued, 'running', running,
          'waiting', waiting, 'oldest_at', iso(oldest)) order by queue), '[]')::text from (
        select queue, coalesce(max(queued), 0) as queued, coalesce(max(running), 0) as running, coalesce(max(waiting), 0) as waiting,
          max(oldest) as oldest from (
          select queue, queued, running, waiting, ${buildWaitingSince('counted.queue')} as oldest from ${LIVE_COUNTS} counted where queued > 0 or running > 0 or waiting > 0
          union all select distinct unnest(queues), 0, 0, 0, null::timestamptz from worker_lease) parts
        group by queue) queues),
      (select coalesce(json_agg(json_build_object('id', id, 'name', name, 'queues', queues, 'threads', threads,
          'memory_bytes', memory_bytes, 'started_at', iso(started_at), 'expires_at', iso(expires_at),
          'alive', expires_at > now(), 'drained', drained_at is not null, 'busy', busy, 'running', (select count(*) from running where lease_id = worker_lease.id))
          order by name, id), '[]')::text from worker_lease),
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
        from job where status = 'failed' and ${buildRetainedCondition('$1')} order by finished_at desc limit ${MAX_LISTED_JOBS}) jobs)])`,
}

/** Assigns the texts of {@link readMonitor} to named fields. */
export function parseMonitor(texts: readonly string[]): Monitor {
  const [at, queues, workers, running, queued, waiting, failed] = texts
  return {
    at: at!,
    queues: queues!,
    workers: workers!,
    running: running!,
    queued: queued!,
    waiting: waiting!,
    failed: failed!,
  }
}

const JobHistory = z.object({ json: z.string().nullable() })

/** Returns the latest events of a job with their times, oldest first. The caller must check that the job is visible. */
export const findJobHistory = (id: string, limit: number): Query<z.output<typeof JobHistory>> =>
  sql.prepared('job_history', JobHistory)`
    select json_agg(json_build_object('seq', seq, 'kind', kind, 'at', iso(created_at), 'data', data) order by seq)::text as json
    from (select * from job_event where job_id = ${id}::uuid order by seq desc limit ${limit}::int) events`
