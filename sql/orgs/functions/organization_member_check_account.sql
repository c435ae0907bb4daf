-- Prevents deleted accounts from joining, because their rows stay until all of their data is gone. Prevents deactivated
-- accounts from becoming owners. The lock makes a concurrent deactivation wait.
create or replace function organization_member_check_account() returns trigger language plpgsql as $$
begin
  perform from account where id = new.user_id and deleted_at is null for key share;
  if not found then
    raise exception 'There is no such account'
      using errcode = 'foreign_key_violation', constraint = 'organization_member_user_id_fkey';
  end if;
  if new.role = 'owner' then
    perform from account where id = new.user_id and is_active for share;
    if not found then
      raise exception 'An owner must be active' using errcode = 'check_violation', constraint = 'organization_member_owner';
    end if;
  end if;
  return new;
end $$;

create or replace trigger organization_member_check_account before insert on organization_member
  for each row execute function organization_member_check_account();

create or replace trigger organization_member_check_owner before update of role, user_id on organization_member
  for each row when (new.role = 'owner' and (old.role <> 'owner' or old.user_id <> new.user_id))
  execute function organization_member_check_account();
