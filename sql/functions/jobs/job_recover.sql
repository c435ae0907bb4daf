-- Takes over the jobs of workers whose lease has expired. Right after a restart of PostgreSQL every lease looks expired
-- though its worker is alive, so nothing is taken over until the server has been up for `grace`.
create or replace function job_recover(grace interval, suspect integer, most integer)
returns setof uuid
language plpgsql
as $$
#variable_conflict use_column
declare
  dead_pools text[];
  lost jsonb;
begin
  if now() - pg_postmaster_start_time() < grace then return; end if;
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
  from job where status = 'running' and not exists (select from worker_lease where worker_lease.id = job.lease_id);
  if lost is not null then
    return query select job_finish(lost, suspect, most);
  end if;
end $$;
