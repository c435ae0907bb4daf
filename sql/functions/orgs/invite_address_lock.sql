-- Serializes invites of an address and its registration: either the invite finds the account, or the registration finds
-- the invite. Taken before any organization is locked.
create or replace function invite_address_lock(email text) returns void language sql
  as $$ select pg_advisory_xact_lock(hashtextextended('millrace.invite:' || email, 0)) $$;
