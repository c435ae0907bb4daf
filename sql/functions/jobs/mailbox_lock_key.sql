-- The key of a mailbox's advisory lock. Of a limited mailbox a transaction that adds, claims or ends a job has it. Of another, those
-- that add a job without a delivery share it, and a claim has it before the mailbox is left without one.
create or replace function mailbox_lock_key(mailbox text) returns bigint
  language sql immutable parallel safe
  return hashtextextended('millrace.mailbox:' || mailbox, 0);
