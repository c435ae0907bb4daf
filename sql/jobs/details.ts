import type { ReadStatement } from '../reads/reader.ts'
import { buildJobJson, buildRetainedCondition, buildVisibleCondition, type VisibleJob } from './jobs.ts'

/** Statement that reads the details of one job as a consistent snapshot. */

/** Maximum number of attempts to list; older ones are omitted. */
const MAX_ATTEMPTS = 1000
/** Maximum number of queued jobs to count ahead of a job. */
export const MAX_JOBS_AHEAD = 1000
const MAX_LISTED_BLOCKERS = 50
/** Maximum number of unended jobs to list of those on which a job depends. */
export const MAX_LISTED_DEPENDENCIES = 100
/** Maximum length of a chain of retries in each direction. */
const MAX_CHAIN_LENGTH = 100

// Condition for fields that only the owner and admins see. The mailbox is one of them, because an actor's mailbox is
// named after its payload.
const OWNER_OR_ADMIN_CONDITION = '($2::boolean or job.owner_id = $1::int)'

const toSeconds = (interval: string): string => `round(greatest(extract(epoch from ${interval}), 0), 3)`

// The `job` row holds the start of the first attempt and the end of the last. Event rows hold all other starts and
// ends.
const ATTEMPTS_JSON = `(
  select coalesce(json_agg(json_build_object(
    'attempt', n,
    'worker', case when ${OWNER_OR_ADMIN_CONDITION} then coalesce(ended ->> 'worker', case when n = job.attempt then job.worker end) end,
    'claimed_at', iso(claimed_at), 'ended_at', iso(ended_at),
    'waited_seconds', ${toSeconds(`claimed_at - greatest(job.created_at, coalesce((ended ->> 'due_at')::timestamptz, job.run_at))`)},
    'ran_seconds', case when ended_at is not null then ${toSeconds('ended_at - claimed_at')} end,
    'outcome', coalesce(ended ->> 'outcome', case when ended_at is not null then job.status end),
    'error', case
      when ended ? 'code' then json_build_object('code', ended ->> 'code', 'detail', coalesce(ended ->> 'detail', ''))
      when ended is null and n = job.attempt and job.error_code is not null
        then json_build_object('code', job.error_code, 'detail', job.error_detail) end) order by n), '[]')
  from (
    select n, case when n = 1 then job.started_at else e.claimed_at end as claimed_at,
      coalesce(e.ended_at, case when n = job.attempt then job.finished_at end) as ended_at, e.ended
    from generate_series(greatest(1, job.attempt - ${MAX_ATTEMPTS} + 1), job.attempt) n left join (
      select attempt, min(created_at) filter (where ended is null) as claimed_at,
        min(created_at) filter (where ended is not null) as ended_at,
        (array_agg(ended) filter (where ended is not null))[1] as ended
      from job_event_row
      where job_id = job.id and attempt is not null and attempt > job.attempt - ${MAX_ATTEMPTS} group by attempt) e on e.attempt = n) a)`

// A batch waits for its members.
const DEPENDENCIES_JSON = `(
  select coalesce(json_agg(json_build_object('job_id', id, 'name', name, 'status', job_client_status(status)) order by ordinal), '[]')
  from (
    select d.id, d.name, d.status, d.ordinal from job_dependency link join job d on d.id = link.after_id
    where link.job_id = job.id and job.status = 'waiting' and not link.has_ended and ${buildVisibleCondition('d')}
    union all
    (select m.id, m.name, m.status, m.ordinal from job m
    where m.batch_id = job.id and job.status = 'waiting' and m.finished_at is null and ${buildVisibleCondition('m')}
    order by m.ordinal limit ${MAX_LISTED_DEPENDENCIES})
    order by ordinal limit ${MAX_LISTED_DEPENDENCIES}) dependency)`

// Jobs of other owners may block an actor. Only jobs that the caller can see are listed.
const BLOCKERS_JSON = `case when job.status in ('waiting', 'scheduled', 'available') then json_build_object(
  'ahead', (select count(*) from (
    select from job earlier where earlier.mailbox = job.mailbox and earlier.status = 'available'
      and earlier.ordinal < job.ordinal limit ${MAX_JOBS_AHEAD}) waiting),
  'queue', (select json_build_object('paused_at', iso(max(paused_at)), 'limit', max(most_running))
    from queue_control where queue = job.queue),
  'running', (select coalesce(json_agg(json_build_object('job_id', id, 'name', name) order by ordinal), '[]') from (
    select r.id, r.name, r.ordinal from job r
    where r.mailbox = job.mailbox and r.lease_id is not null and r.mailbox_limit is not null and ${buildVisibleCondition('r')}
    order by r.ordinal limit ${MAX_LISTED_BLOCKERS}) running),
  'jobs', ${DEPENDENCIES_JSON}) end`

// Only admins see the lines of our own processes, because they contain internal details.
const LOG_JSON = `case when $2::boolean or job.owner_id = $1::int and position('/' in job.name) > 0 then (
  select coalesce(json_agg(json_build_object('at', iso(at), 'attempt', attempt, 'level', level, 'message', message, 'data', data)
    order by at, id), '[]')
  from job_log where job_id = job.id and ($2::boolean or is_reported)) end`

// The declared secrets of a task of a worker queue; null for other tasks, and if the declaration is gone.
const SECRETS_JSON = `case when position('/' in job.name) > 0 then coalesce(
  (select to_json(t.secrets) from worker_task t where t.queue = job.queue and t.queue || '/' || t.name = job.name),
  (select '[]'::json from worker_queue q where q.name = job.queue and q.is_open)) end`

const RETRIED_JOBS_JSON = `(
  with recursive earlier(id, n) as (
    select job.retry_of, 1 where job.retry_of is not null
    union all
    select before.retry_of, n + 1 from earlier join job before on before.id = earlier.id
    where before.retry_of is not null and n < ${MAX_CHAIN_LENGTH})
  select coalesce(json_agg(id order by n desc), '[]') from earlier)`
const RETRIES_JSON = `(
  with recursive later(id, n) as (
    select again.id, 1 from job again where again.retry_of = job.id
    union all
    select again.id, n + 1 from later join job again on again.retry_of = later.id where n < ${MAX_CHAIN_LENGTH})
  select coalesce(json_agg(id order by n), '[]') from later)`

/**
 * One job with its attempts, the jobs that block it, and its retries. The payload is null unless the caller is the
 * owner or an admin.
 */
export const readJobDetails: ReadStatement<VisibleJob> = {
  name: 'job_details',
  text: `
    select json_build_object(
      'job', ${buildJobJson('$4')},
      'owner_id', job.owner_id,
      'request_id', case when ${OWNER_OR_ADMIN_CONDITION} then job.request_id end,
      'mailbox', case when ${OWNER_OR_ADMIN_CONDITION} then json_build_object('name', job.mailbox, 'limit', job.mailbox_limit) end,
      'key', case when ${OWNER_OR_ADMIN_CONDITION} then job.key end,
      'priority', case job.priority when -1 then 'high' when 1 then 'low' else 'normal' end,
      'after', coalesce(to_json(job.after), '[]'),
      'due_at', case when job.status = 'scheduled' then iso(job.run_at) end,
      'tries', job.tries, 'max_tries', job.max_tries, 'interruptions', job.interruptions,
      'payload', case when ${OWNER_OR_ADMIN_CONDITION} then job.payload end,
      'secrets', ${SECRETS_JSON},
      'attempts', ${ATTEMPTS_JSON},
      'waits_for', ${BLOCKERS_JSON},
      'log', ${LOG_JSON},
      'chain', json_build_object('retry_of', ${RETRIED_JOBS_JSON}, 'retried_by', ${RETRIES_JSON}))::text
    from job where ${buildVisibleCondition('job')} and job.id = $3::uuid and ${buildRetainedCondition('$4')}`,
}
