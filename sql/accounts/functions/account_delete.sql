-- Marks an account as deleted and removes it from at most `max_organizations` of its organizations (see account_leave).
-- A task deletes its data later. No row if there is no such account.
create or replace function account_delete(id integer, max_organizations integer)
returns table (email text, inherited json, deleted json, invites json) language plpgsql as $$
#variable_conflict use_column
begin
  -- Locks organizations before accounts, as every change does. The second pass locks organizations joined before the
  -- account was locked.
  for pass in 1..2 loop
    perform from organization o where o.id in (
      select m.organization_id from organization_member m where m.user_id = account_delete.id order by m.organization_id limit max_organizations)
    order by o.id for update;
    select a.email into email from account a where a.id = account_delete.id and a.deleted_at is null for update;
    if not found then return; end if;
  end loop;
  update account a set deleted_at = now(), email = null, full_name = null, password_hash = '', is_active = false,
    deletion_at = null
  where a.id = account_delete.id;
  select l.inherited, l.deleted, l.invites into inherited, deleted, invites
  from account_leave(account_delete.id, max_organizations) l;
  return next;
end $$;
