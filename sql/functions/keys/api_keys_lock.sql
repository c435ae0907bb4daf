-- Locks an account for a change of its keys, and returns how many it has; no row when the account is gone.
create or replace function api_keys_lock(account integer) returns setof integer language plpgsql as $$
begin
  perform from account a where a.id = account and a.deleted_at is null for no key update;
  if not found then return; end if;
  -- A separate statement, so that it sees what the previous holder of the lock has committed.
  return query select count(*)::int from api_key k where k.account_id = account;
end $$;
