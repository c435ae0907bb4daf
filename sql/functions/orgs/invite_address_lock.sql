-- Serializes invites of an address and what gives an account this address, a registration or a change: either the invite
-- finds the account, or that finds the invite. Taken before any organization is locked, and before a row has the address.
create or replace function invite_address_lock(email text) returns void language sql
  as $$ select pg_advisory_xact_lock(hashtextextended('millrace.invite:' || email, 0)) $$;
