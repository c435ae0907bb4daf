-- Takes over the jobs of workers whose lease has expired. After an outage, a restart or a failover every lease looks expired
-- though its worker is alive: only a worker judges whose own lease has been renewed in time for `steady`, and so long the
-- database was there for all of them. Null: without that condition. At most `at_once` jobs, which the caller repeats until there are
-- none: each limited mailbox takes an entry of the lock table, which all connections share.
create or replace function job_recover(judge uuid, steady interval, suspect integer, most integer, at_once integer)
returns setof uuid
language plpgsql
as $$
#variable_conflict use_column
declare
  dead_pools text[];
  lost jsonb;
begin
  if judge is not null and not exists (select from worker_lease
      where worker_lease.id = judge and expires_at > now() and steady_since <= now() - steady) then
    return;
  end if;
  if not exists (select from worker_lease where expires_at < now())
     and not exists (select from job where status = 'running'
       and not exists (select from worker_lease where worker_lease.id = job.lease_id)) then
    return;
  end if;
  with dead as (delete from worker_lease where expires_at < now() returning pool_ids)
  select coalesce(array_agg(pool), '{}') into dead_pools from dead, unnest(pool_ids) pool;
  if cardinality(dead_pools) > 0 then
    perform graphile_worker.force_unlock_workers(dead_pools);
  end if;
  select jsonb_agg(jsonb_build_object('id', id, 'attempt', attempt, 'outcome', 'interrupted')) into lost
  from (
    select id, attempt from job
    where status = 'running' and not exists (select from worker_lease where worker_lease.id = job.lease_id) limit at_once) found;
  if lost is not null then
    return query select job_finish(lost, suspect, most);
  end if;
end $$;
