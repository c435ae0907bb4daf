-- Invites of an address and its registration come one after the other: either the invite finds the account, or the
-- account finds the invite. Taken before any organization is locked.
create or replace function invite_address_lock(email text) returns void language sql
  as $$ select pg_advisory_xact_lock(hashtextextended('millrace.invite:' || email, 0)) $$;
