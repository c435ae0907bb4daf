-- Serializes invites of an address with registrations and changes that give the address to an account. So either the
-- invite finds the account, or the account finds the invite. Callers must acquire the lock before they lock an
-- organization, and before they write a row with the address.
create or replace function invite_address_lock(email text) returns void language sql
  as $$ select pg_advisory_xact_lock(hashtextextended('millrace.invite:' || email, 0)) $$;
