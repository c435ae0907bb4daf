-- Sends a delivery for what is next in each of these mailboxes, from an ordinal on (null: from the oldest)
-- and up to another (null: however many): the first due job; of an actor
-- its first message, also when that is not due. Where nothing waits there is none. The caller has the mailboxes' locks.
create or replace function job_send_next(mailboxes text[], firsts bigint[] default null, lasts bigint[] default null,
  pause interval default '0') returns void
language plpgsql
as $$
begin
  perform job_send(array_agg(head.id), array_agg(wanted.last), pause)
  from unnest(mailboxes, firsts, lasts) as wanted(mailbox, first, last) cross join lateral (
    select id from job where job.mailbox = wanted.mailbox and job.status = 'queued' and job.ordinal >= coalesce(wanted.first, 0)
      and job.ordinal <= coalesce(wanted.last, 9223372036854775807)
      -- Not now(): this may have waited for whoever added it.
      and (job.mailbox_limit = 1 or job.run_at <= clock_timestamp())
    order by job.ordinal limit 1) head
  having count(*) > 0;
end $$;
