-- An organization keeps an owner, whatever runs at once. One that is going takes its members with it: its row is gone
-- before theirs, and there is nothing left to guard.
create or replace function organization_owner() returns trigger language plpgsql as $$
begin
  perform from organization where id = old.organization_id for update;
  if not found then return null; end if;
  -- A statement of its own, like above.
  if not exists (select from organization_member where organization_id = old.organization_id and role = 'owner') then
    raise exception 'An organization keeps an owner' using errcode = 'check_violation', constraint = 'organization_owner';
  end if;
  return null;
end $$;

create or replace trigger organization_owner_update after update of role, organization_id on organization_member
  for each row when (old.role = 'owner' and (new.role <> 'owner' or new.organization_id <> old.organization_id))
  execute function organization_owner();

create or replace trigger organization_owner_delete after delete on organization_member
  for each row when (old.role = 'owner')
  execute function organization_owner();
