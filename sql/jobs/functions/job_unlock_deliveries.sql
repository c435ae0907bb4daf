-- Unlocks the deliveries that these pools of graphile-worker hold, and wakes all workers.
create or replace function job_unlock_deliveries(pools text[]) returns void language plpgsql
as $$
begin
  if cardinality(pools) > 0 then
    perform graphile_worker.force_unlock_workers(pools);
    perform pg_notify('deliveries', '');
  end if;
end $$;
