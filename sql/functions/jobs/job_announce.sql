-- Delivers the mailboxes of these jobs, which have just become available. An older available job of the mailbox may be
-- ahead: the claim that takes it continues to these jobs. To stop before them, a claim needs the mailbox's lock, which
-- this transaction shares until its commit. The caller holds the locks of mailboxes with a limit.
create or replace function job_announce(ids uuid[]) returns void language plpgsql
as $$
declare
  heads uuid[] := array(
    select distinct on (mailbox) id from job where id = any(ids) order by mailbox, ordinal);
  behind uuid[] := job_behind(heads);
begin
  if cardinality(behind) > 0 then
    -- A claim of the jobs ahead holds this lock until its commit; after that, nothing is ahead of these jobs.
    perform pg_advisory_xact_lock_shared(key) from (
      select distinct mailbox_lock_key(mailbox) as key from job where id = any(behind) order by 1) locks;
    behind := job_behind(behind);
  end if;
  perform job_deliver(array(
    select next.id from (
      select array_agg(mailbox) as mailboxes, array_agg(ordinal) as firsts from job where id = any(heads) and id <> all(behind)) head
    cross join lateral job_next(head.mailboxes, head.firsts) next));
end $$;
