-- Rescues the running jobs of workers whose lease has expired. After an outage, a restart or a failover, every lease
-- looks expired although its worker is alive. So a worker may rescue only if its own lease `rescuer` has been renewed
-- on time for `steady`. All workers could then reach the database during that time. A null `rescuer` skips this check.
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
  entries jsonb;
begin
  if rescuer is not null and not exists (select from worker_lease
      where worker_lease.id = rescuer and expires_at > now() and steady_since <= now() - steady) then
    return;
  end if;
  if not exists (select from worker_lease where expires_at < now())
     and not exists (select from job_orphans(1)) then
    return;
  end if;
  with dead as (delete from worker_lease where expires_at < now() returning pool_ids)
  select coalesce(array_agg(pool), '{}') into dead_pools from dead, unnest(pool_ids) pool;
  perform job_unlock_deliveries(dead_pools);
  select jsonb_agg(jsonb_build_object('id', id, 'attempt', attempt, 'outcome', 'interrupted')) into entries
  from job_orphans(batch_size);
  if entries is not null then
    return query select job_finish(entries, suspect, max_interruptions);
  end if;
end $$;
