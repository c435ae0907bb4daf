-- Prevents deleted accounts from joining. Their rows stay until all of their data is gone.
create or replace function organization_member_check_account() returns trigger language plpgsql as $$
begin
  perform from account where id = new.user_id and deleted_at is null for key share;
  if not found then
    raise exception 'There is no such account'
      using errcode = 'foreign_key_violation', constraint = 'organization_member_user_id_fkey';
  end if;
  return new;
end $$;

create or replace trigger organization_member_check_account before insert on organization_member
  for each row execute function organization_member_check_account();
