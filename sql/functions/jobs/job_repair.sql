-- Repairs what no other function looks for: queued jobs that are due and have no delivery, and deliveries that have
-- been locked for long, also by the pool of a live worker. The service never leaves such rows behind by itself; a database
-- that has gone back to an earlier moment does, where a pool does not know what it had locked then. A delivery is handled
-- within moments, and twice without harm. What became due within `patience` is left alone. Entries of the schedule that
-- ran last in the future go on, too.
-- Returns the jobs for which it sent a delivery.
create or replace function job_repair(patience interval) returns setof uuid language plpgsql as $$
declare
  lost uuid[];
begin
  -- One at a time: concurrent repairs would find the same rows.
  if not pg_try_advisory_xact_lock(7236501147) then return; end if;

  perform graphile_worker.force_unlock_workers(array_agg(locked_by)) from (
    select distinct locked_by from graphile_worker._private_jobs
    where locked_by is not null and locked_at < now() - patience) stale
  having count(*) > 0;

  -- An entry of the schedule runs at no time before its last one: a worker whose clock was ahead has stopped it until then.
  update graphile_worker._private_known_crontabs set last_execution = now() where last_execution > now() + interval '5 min';

  -- Skips from mailbox to mailbox by the index, however many jobs each has.
  with recursive line as (
    (select mailbox from job where status = 'queued' order by mailbox limit 1)
    union all
    select (select job.mailbox from job where status = 'queued' and job.mailbox > line.mailbox order by job.mailbox limit 1)
    from line where line.mailbox is not null
  ), delivery as materialized (
    select payload ->> 'mailbox' as mailbox, (payload ->> 'first')::bigint as first, (payload ->> 'last')::bigint as last
    from graphile_worker._private_jobs where run_at <= now() and payload ->> 'mailbox' is not null
  )
  select coalesce(array_agg(head.id), '{}') into lost
  from line cross join lateral (
    (select job.* from job where job.mailbox = line.mailbox and job.status = 'queued' and not job.later
      and (job.mailbox_limit = 1 and job.attempt > 0 or job.run_at <= now()) order by job.ordinal limit 1)
    union all
    (select job.* from job where job.mailbox = line.mailbox and job.status = 'queued' and job.later
      and job.run_at <= now() order by job.ordinal limit 1)) head
  where greatest(head.created_at, head.run_at) < now() - patience
    -- For a limited mailbox any delivery will do, and while it is full, each job that ends sends the next one, but not for what
    -- was added to it for later.
    and not exists (
      select from delivery where delivery.mailbox = head.mailbox and (
        head.mailbox_limit is not null or delivery.first <= head.ordinal and coalesce(delivery.last, head.ordinal) >= head.ordinal))
    and (head.mailbox_limit is null or head.later or head.mailbox_limit > (
      select count(*) from job running
      where running.mailbox = head.mailbox and running.lease_id is not null and running.mailbox_limit is not null));
  perform job_send(lost);
  return query select unnest(lost);
end $$;
