-- Delivers the mailboxes of these jobs, which have just become available. An older available job of the mailbox may be
-- ahead: the claim that takes it continues to these jobs. To stop before them, a claim needs the mailbox's lock, which
-- this transaction shares until its commit. The caller holds the locks of mailboxes with a limit.
create or replace function job_announce(ids uuid[]) returns void language plpgsql
as $$
declare
  mailboxes text[];
  -- An older job is looked for among the last 2000 of all jobs, because an open snapshot retains the dead index entries
  -- of claims.
  firsts bigint[];
  heads uuid[];
  behind text[];
begin
  select array_agg(mailbox), array_agg(first) into mailboxes, firsts from (
    select mailbox, min(ordinal) - 2000 as first from job where id = any(ids) group by mailbox) announced;
  select array_agg(id) filter (where id = any(ids)), array_agg(mailbox) filter (where id <> all(ids)) into heads, behind
  from job_next(mailboxes, firsts);
  if behind is not null then
    -- A claim of the jobs ahead holds this lock until its commit; after that, nothing is ahead of these jobs.
    perform pg_advisory_xact_lock_shared(key) from (
      select distinct mailbox_lock_key(mailbox) as key from unnest(behind) mailbox order by 1) locks;
    select heads || array_agg(id) into heads from job_next(behind, array(
      select firsts[array_position(mailboxes, mailbox)] from unnest(behind) mailbox)) where id = any(ids);
  end if;
  perform job_deliver(heads);
end $$;
