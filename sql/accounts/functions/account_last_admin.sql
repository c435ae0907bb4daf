-- Ensures that an active admin always remains, even under concurrent changes. The last one cannot be demoted,
-- deactivated, deleted or scheduled for deletion.
create or replace function account_last_admin() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock(7236501146);
  -- A separate statement, so that it sees the commit of the previous lock holder.
  if not exists (select from account where role = 'admin' and is_active and deletion_at is null) then
    raise exception 'The last active admin has to stay' using errcode = 'check_violation', constraint = 'account_last_admin';
  end if;
  return null;
end $$;

create or replace trigger account_last_admin_update after update of role, is_active, deletion_at on account
  for each row when (old.role = 'admin' and old.is_active and old.deletion_at is null
    and (new.role <> 'admin' or not new.is_active or new.deletion_at is not null))
  execute function account_last_admin();

create or replace trigger account_last_admin_delete after delete on account
  for each row when (old.role = 'admin' and old.is_active and old.deletion_at is null)
  execute function account_last_admin();
