-- Renews the lease of an HTTP worker whose queue the caller may work for; null if there is none. Returns the lease, the
-- attempts that run under it, or those that are given, and the declarations of their tasks. An attempt that has ended tells
-- how. Only a renewal needs the time since the last report, and only a report the schemas of results.
create or replace function worker_lease_renew(lease uuid, caller integer, is_admin boolean, key_organization integer, ids uuid[], attempts integer[])
returns json language plpgsql
as $$
#variable_conflict use_column
declare
  held worker_lease;
  jobs json;
  tasks text[];
begin
  select l.* into held from worker_lease l join worker_queue q on q.name = l.queue
  where l.id = lease and worker_queue_access(q, caller, is_admin, key_organization) = 'manage' and worker_queue_is_active(q);
  if not found then return null; end if;
  if ids is null or held.expires_at < now() + make_interval(secs => held.ttl_seconds / 2.0) then
    update worker_lease set expires_at = greatest(expires_at, now() + make_interval(secs => held.ttl_seconds)) where id = lease;
    -- A rescuer may have deleted it meanwhile.
    if not found then return null; end if;
    delete from worker_claim where lease_id = lease and created_at < now() - interval '2 minutes';
  end if;
  with given as (
    select id, attempt from unnest(ids, attempts) as g(id, attempt)
    union all
    select id, attempt from job where ids is null and lease_id = lease and status = 'running'
  ), found as (
    -- An endpoint may report before the job runs under its lease.
    select job.*, given.attempt as given, job.attempt = given.attempt and job.lease_id is not null
      and (job.lease_id = lease or held.info ? 'push') as is_current
    from given cross join lateral (select * from job where job.id = given.id and job.queue = held.queue offset 0) job
  ), dated as (
    select found.*, case when found.attempt = 1 then found.started_at else (
      select min(e.created_at) from job_event_row e where e.job_id = found.id and e.attempt = found.attempt and e.ended is null) end as claimed_at
    from found
  )
  select coalesce(json_agg(json_build_object('id', j.id, 'name', j.name, 'attempt', j.attempt, 'given', j.given, 'tries', j.tries,
    'max_tries', j.max_tries, 'is_current', j.is_current, 'is_cancelled', j.cancel_requested_at is not null,
    'ended', case when j.is_current then null when j.attempt = j.given and j.finished_at is not null then j.status else (
      select e.ended ->> 'outcome' from job_event_row e
      where e.job_id = j.id and e.attempt = j.given and e.ended is not null order by e.seq limit 1) end,
    'claimed_seconds', extract(epoch from clock_timestamp() - j.claimed_at)::float8,
    'waited_seconds', greatest(extract(epoch from j.claimed_at - greatest(j.created_at, j.run_at))::float8, 0),
    'silent_seconds', case when ids is null then extract(epoch from clock_timestamp() - greatest(j.claimed_at, (
      select e.created_at from job_event_row e where e.job_id = j.id order by e.seq desc limit 1)))::float8 end)), '[]'),
    array_agg(distinct substr(j.name, length(held.queue) + 2))
  into jobs, tasks from dated j;
  return json_build_object('queue', held.queue, 'ttl_seconds', held.ttl_seconds, 'is_drained', held.drained_at is not null, 'jobs', jobs,
    'tasks', (select coalesce(json_object_agg(t.queue || '/' || t.name, json_build_object(
      'result', case when ids is not null then t.result_schema end, 'timeout_seconds', t.timeout_seconds, 'stall_seconds', t.stall_seconds)), '{}') from worker_task t where t.queue = held.queue and t.name = any(tasks)));
end $$;
