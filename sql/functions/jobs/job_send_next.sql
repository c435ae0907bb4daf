-- Sends a delivery for the next job of each of these mailboxes, within a range of ordinals. A null bound leaves the
-- range open. The next job is the first due one, or the one that an actor retries, even before it is due. Sends nothing
-- if there is none. The caller must hold the locks of the mailboxes.
create or replace function job_send_next(mailboxes text[], firsts bigint[] default null, lasts bigint[] default null,
  min_delay interval default '0') returns void
language plpgsql
as $$
begin
  perform job_send(array_agg(head.id), array_agg(wanted.last), min_delay)
  from unnest(mailboxes, firsts, lasts) as wanted(mailbox, first, last) cross join lateral (
    select id from job where job.mailbox = wanted.mailbox and job.status = 'queued' and not job.later and job.ordinal >= coalesce(wanted.first, 0)
      and job.ordinal <= coalesce(wanted.last, 9223372036854775807)
      -- Not now(), because this call may have waited for the transaction that added the job.
      and (job.mailbox_limit = 1 and job.attempt > 0 or job.run_at <= clock_timestamp())
    order by job.ordinal limit 1) head
  having count(*) > 0;
end $$;
