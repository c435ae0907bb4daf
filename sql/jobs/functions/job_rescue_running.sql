-- Rescues the running jobs of workers whose lease has expired. After an outage, a restart or a failover, every lease
-- looks expired although its worker is alive. So a worker may rescue only if its own lease `rescuer` has been renewed
-- on time for `steady`. All workers could then reach the database during that time. A null `rescuer` skips this check. An
-- HTTP worker has chosen a longer time, for which the rescuer must have been steady.
--
-- A suspect that an HTTP worker ran alone has crashed, as in an isolated process of ours. After three such crashes, it fails.
--
-- Rescues at most `batch_size` jobs, because each limited mailbox takes an entry of the lock table, which all
-- connections share. The caller repeats the call until none is left.
create or replace function job_rescue_running(rescuer uuid, steady interval, suspect integer, max_interruptions integer, batch_size integer)
returns setof uuid
language plpgsql
as $$
#variable_conflict use_column
declare
  dead_pools text[];
  dead_http uuid[];
  steady_from timestamptz := '-infinity';
  entries jsonb;
begin
  if rescuer is not null then
    select steady_since into steady_from from worker_lease
    where worker_lease.id = rescuer and expires_at > now() and steady_since <= now() - steady;
    if not found then return; end if;
  end if;
  if not exists (select from worker_lease where expires_at < now())
     and not exists (select from job_orphans(1)) then
    return;
  end if;
  with dead as (
    delete from worker_lease
    where expires_at < now() and (ttl_seconds is null or steady_from <= now() - make_interval(secs => ttl_seconds))
    returning worker_lease.id, pool_ids, queue
  )
  select coalesce((select array_agg(pool) from dead, unnest(pool_ids) pool), '{}'), array(select dead.id from dead where queue is not null)
  into dead_pools, dead_http;
  perform job_unlock_deliveries(dead_pools);
  select jsonb_agg(jsonb_build_object('id', id, 'attempt', attempt) || case
    when lease_id = any(dead_http) and interruptions >= suspect and running = 1 then jsonb_build_object('outcome', 'crashed',
      'interruptions', greatest(interruptions, max_interruptions - 3) + 1, 'code', 'job.crashed',
      'detail', 'The job was given up after 3 crashes of the worker that ran it alone')
    else '{"outcome": "interrupted"}' end) into entries
  from (select *, count(*) over (partition by lease_id) as running from job_orphans(batch_size)) orphan;
  if entries is not null then
    return query select job_finish(entries, suspect, max_interruptions);
  end if;
end $$;
