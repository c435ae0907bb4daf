-- Deactivates an account, and makes its deletion due if `for_deletion`. It keeps its memberships. If it was the only
-- active owner of an organization, an heir becomes an owner, too (see organizations_inherit). Returns the account and the
-- changes: `inherited` as account_leave does, `invites` as invites_limit does. No row if there is no such account.
create or replace function account_deactivate(id integer, for_deletion boolean)
returns table (profile text, inherited json, invites json) language plpgsql as $$
#variable_conflict use_column
declare
  organization_ids integer[];
begin
  -- Locks in the order of account_delete.
  for pass in 1..2 loop
    organization_ids := array(select m.organization_id from organization_member m where m.user_id = account_deactivate.id);
    perform from organization o where o.id = any(organization_ids) order by o.id for update;
    perform from account a where a.id = account_deactivate.id and a.deleted_at is null for no key update;
    if not found then return; end if;
  end loop;
  update account a set is_active = false, deletion_at = case when for_deletion then least(a.deletion_at, now()) else a.deletion_at end,
    updated_at = case when a.is_active or for_deletion then now() else a.updated_at end
  where a.id = account_deactivate.id returning account_json(a)::text into profile;
  inherited := organizations_inherit(account_deactivate.id, organization_ids);
  invites := invites_limit(account_deactivate.id, organization_ids);
  return next;
end $$;
