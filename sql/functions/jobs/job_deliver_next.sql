-- Delivers each of these mailboxes that has an available job, from an ordinal on (null: any), and may run one more. The
-- caller holds the locks of those with a limit. Returns the jobs that the deliveries start with.
create or replace function job_deliver_next(mailboxes text[], firsts bigint[] default null,
  delay interval default '0') returns setof uuid language plpgsql
as $$
declare
  heads uuid[];
begin
  select array_agg(head.id) into heads
  from unnest(mailboxes, firsts) as wanted(mailbox, first) cross join lateral (
    select id, ordinal, mailbox_limit from job
    where job.mailbox = wanted.mailbox and job.status = 'available' and job.ordinal >= coalesce(wanted.first, 0)
    order by job.ordinal limit 1) head
  where (head.mailbox_limit is null or head.mailbox_limit > (
      select count(*) from job where job.mailbox = wanted.mailbox and job.lease_id is not null and job.mailbox_limit is not null))
    -- An actor that waits to retry a job takes no later one. It is delivered when the retry is due.
    and (head.mailbox_limit is distinct from 1 or not exists (
      select from job where job.mailbox = wanted.mailbox and job.status = 'scheduled' and job.attempt > 0 and job.ordinal < head.ordinal));
  perform job_deliver(heads, delay);
  return query select unnest(heads);
end $$;
