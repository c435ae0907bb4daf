-- Locks an account for a new endpoint, and returns how many it has; no row when the account is gone.
create or replace function webhook_endpoints_lock(account integer) returns setof integer language plpgsql as $$
begin
  perform from account a where a.id = account and a.deleted_at is null for no key update;
  if not found then return; end if;
  -- A separate statement, so that it sees what the previous holder of the lock has committed.
  return query select count(*)::int from webhook_endpoint e
    where e.account_id = account and e.url is not null and e.deleted_at is null;
end $$;
