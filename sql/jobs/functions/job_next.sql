-- Returns the first available job of each of these mailboxes, from an ordinal on (null: any). Omits mailboxes that may
-- not run one more.
create or replace function job_next(mailboxes text[], firsts bigint[] default null)
returns table (id uuid, mailbox text, name text, mailbox_limit integer) language sql stable
as $$
  select head.id, wanted.mailbox, head.name, head.mailbox_limit
  from unnest(mailboxes, firsts) as wanted(mailbox, first) cross join lateral (
    select id, name, ordinal, mailbox_limit from job
    where job.mailbox = wanted.mailbox and job.status = 'available' and job.ordinal >= coalesce(wanted.first, 0)
    order by job.ordinal limit 1) head
  where (head.mailbox_limit is null or head.mailbox_limit > (
      select count(*) from job where job.mailbox = wanted.mailbox and job.lease_id is not null and job.mailbox_limit is not null))
    -- An actor that waits to retry a job takes no later one. It is delivered when the retry is due.
    and (head.mailbox_limit is distinct from 1 or not exists (
      select from job where job.mailbox = wanted.mailbox and job.status = 'scheduled' and job.attempt > 0 and job.ordinal < head.ordinal))
$$;
