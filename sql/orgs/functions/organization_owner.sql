-- Ensures that an organization keeps an active owner, even under concurrent changes. Deleted organizations are exempt.
-- So are organizations without an active member once the account of their owner is deleted: admins of the service repair
-- them.
create or replace function organization_owner() returns trigger language plpgsql as $$
begin
  perform from organization where id = old.organization_id and deleted_at is null for update;
  if not found then return null; end if;
  -- A separate statement, so that it sees the commit of the previous lock holder.
  if not exists (
    select from organization_member m join account a on a.id = m.user_id and a.is_active
    where m.organization_id = old.organization_id and m.role = 'owner'
  ) and (
    not exists (select from account a where a.id = old.user_id and a.deleted_at is not null)
    or exists (select from organization_member m join account a on a.id = m.user_id and a.is_active
      where m.organization_id = old.organization_id)
  ) then
    raise exception 'An organization must have an owner' using errcode = 'check_violation', constraint = 'organization_owner';
  end if;
  return null;
end $$;

create or replace trigger organization_owner_update after update of role, organization_id on organization_member
  for each row when (old.role = 'owner' and (new.role <> 'owner' or new.organization_id <> old.organization_id))
  execute function organization_owner();

create or replace trigger organization_owner_delete after delete on organization_member
  for each row when (old.role = 'owner')
  execute function organization_owner();
