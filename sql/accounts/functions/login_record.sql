-- Records a login, and blocks concurrent changes to the account until the commit. No row if the account is gone, or if
-- its password or second factor differs from the one checked. `rehashed` is a hash of the same password under the
-- current parameters, and replaces `checked_hash`. Null changes nothing.
create or replace function login_record(id integer, checked_hash text, totp uuid, rehashed text)
returns table (role text, is_active boolean) language plpgsql as $$
#variable_conflict use_column
begin
  perform from account a where a.id = login_record.id and a.password_hash = checked_hash for no key update;
  if not found then return; end if;
  -- Reads under the account's lock, which enabling a second factor holds until its commit.
  if (select t.id from account_totp t where t.account_id = login_record.id and t.confirmed_at is not null)
    is distinct from totp then return; end if;
  return query update account a set last_login = case when a.is_active then now() else a.last_login end,
    password_hash = case when a.is_active then coalesce(rehashed, a.password_hash) else a.password_hash end
    where a.id = login_record.id returning a.role, a.is_active;
end $$;
