-- Returns the key of a mailbox's advisory lock. For a limited mailbox, transactions that add, claim or end a job hold
-- the lock. For any other, transactions that add a job without a delivery share the lock. A claim acquires it before it
-- leaves such a mailbox without a delivery.
create or replace function mailbox_lock_key(mailbox text) returns bigint
  language sql immutable parallel safe
  return hashtextextended('millrace.mailbox:' || mailbox, 0);
