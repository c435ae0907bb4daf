-- Acquires the locks of these mailboxes until the transaction ends. Acquires them in key order, so that two
-- transactions never deadlock.
create or replace function mailbox_lock(mailboxes text[]) returns void language plpgsql
as $$
begin
  perform pg_advisory_xact_lock(key) from (
    select distinct mailbox_lock_key(mailbox) as key from unnest(mailboxes) mailbox order by 1) locks;
end $$;
