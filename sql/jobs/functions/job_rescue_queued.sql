-- Rescues jobs that nothing would start: available jobs without a delivery. Also releases deliveries that
-- have been locked for long, even by the pool of a live worker. The service itself never leaves such rows behind, but a
-- database restored to an earlier moment has them. The pools of its workers do not know the restored locks. Handling a
-- delivery takes moments, and handling it twice does no harm.
--
-- Skips jobs that became available within `grace`. Returns the jobs for which it sent a delivery.
create or replace function job_rescue_queued(grace interval) returns setof uuid language plpgsql as $$
declare
  undelivered text[];
  limited text[];
  rescued uuid[];
begin
  -- Admits one call at a time, because concurrent rescues would find the same rows.
  if not pg_try_advisory_xact_lock(7236501147) then return; end if;

  perform job_unlock_deliveries(array(
    select distinct locked_by from graphile_worker._private_jobs where locked_by is not null and locked_at < now() - grace));

  -- Uses the index to skip from mailbox to mailbox, however many jobs each has.
  with recursive mailboxes as (
    (select mailbox from job where status = 'available' order by mailbox limit 1)
    union all
    select (select job.mailbox from job where status = 'available' and job.mailbox > mailboxes.mailbox order by job.mailbox limit 1)
    from mailboxes where mailboxes.mailbox is not null
  ), delivery as materialized (
    select payload ->> 'mailbox' as mailbox, (payload ->> 'first')::bigint as first
    from graphile_worker._private_jobs where payload ->> 'mailbox' is not null
    union all
    select mailbox, first from worker_delivery
  )
  select array_agg(mailboxes.mailbox), array_agg(mailboxes.mailbox) filter (where mailbox_limit is not null) into undelivered, limited
  from mailboxes cross join lateral (
    select job.* from job where job.mailbox = mailboxes.mailbox and job.status = 'available' order by job.ordinal limit 1) head
  where greatest(head.created_at, head.run_at) < now() - grace
    and not exists (select from delivery where delivery.mailbox = head.mailbox and delivery.first <= head.ordinal)
    -- Its next job is scheduled for the next start.
    and not exists (select from start_rate r where r.name = head.mailbox and start_rate_allowed(r) < 1);
  if undelivered is not null then
    perform mailbox_lock(limited);
    rescued := array(select id from job_next(undelivered));
    perform job_deliver(rescued);
    return query select unnest(rescued);
  end if;
end $$;
