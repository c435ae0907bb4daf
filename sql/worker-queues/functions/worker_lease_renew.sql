-- Renews the lease of an HTTP worker whose queue the caller may work for; null if there is none. Returns the lease, the
-- attempts that it runs, or those that are given, and the declarations of their tasks.
create or replace function worker_lease_renew(lease uuid, caller integer, is_admin boolean, key_organization integer, ids uuid[], attempts integer[])
returns json language plpgsql
as $$
#variable_conflict use_column
declare
  held worker_lease;
  jobs json;
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
  if ids is null then
    select coalesce(json_agg(worker_attempt(job, lease, job.attempt)), '[]') into jobs from job where lease_id = lease and status = 'running';
  else
    select coalesce(json_agg(worker_attempt(job, lease, given.attempt)), '[]') into jobs
    from unnest(ids, attempts) as given(id, attempt) join job on job.id = given.id and job.queue = held.queue;
  end if;
  return json_build_object('queue', held.queue, 'ttl_seconds', held.ttl_seconds, 'is_drained', held.drained_at is not null, 'jobs', jobs,
    'tasks', (select coalesce(json_object_agg(t.queue || '/' || t.name, json_build_object('result', t.result_schema,
      'timeout_seconds', t.timeout_seconds, 'stall_seconds', t.stall_seconds)), '{}') from worker_task t where t.queue = held.queue
      and (ids is null or t.queue || '/' || t.name in (select j ->> 'name' from json_array_elements(jobs) j))));
end $$;
