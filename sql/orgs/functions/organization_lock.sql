-- Locks an organization for a change and returns the caller's role in it. The role is null if the caller is no member.
-- No row if there is no such organization.
create or replace function organization_lock(id integer, caller integer) returns table (role text) language plpgsql as $$
#variable_conflict use_column
begin
  perform from organization o where o.id = organization_lock.id and o.deleted_at is null for update;
  if not found then return; end if;
  -- A separate statement, so that it sees the commit of the previous lock holder.
  return query select (select m.role from organization_member m
    where m.organization_id = organization_lock.id and m.user_id = caller);
end $$;
