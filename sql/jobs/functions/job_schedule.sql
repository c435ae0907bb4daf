-- Makes scheduled jobs that have become due available, at most `batch_size` of them. Returns their number, and the
-- seconds until the next one is due (null: none is scheduled).
create or replace function job_schedule(batch_size integer) returns table (moved integer, next_seconds float8) language plpgsql
as $$
declare
  due uuid[];
begin
  -- Admits one call at a time, because concurrent calls would find the same rows.
  if pg_try_advisory_xact_lock(7236501148) then
    due := array(select id from job where status = 'scheduled' and run_at <= now() order by run_at, ordinal limit batch_size);
    if cardinality(due) > 0 then
      perform mailbox_lock(array(select mailbox from job where id = any(due) and mailbox_limit is not null));
      with available as (
        update job set status = 'available' where id = any(due) and status = 'scheduled' returning id
      )
      select coalesce(array_agg(id), '{}') into due from available;
      perform job_announce(due);
    end if;
  end if;
  moved := coalesce(cardinality(due), 0);
  select extract(epoch from run_at - now()) into next_seconds from job where status = 'scheduled' order by run_at, ordinal limit 1;
  return next;
end $$;
