-- Removes an account from at most `max_organizations` of its organizations. If it was the only active owner of an
-- organization, an heir becomes the owner (see organizations_inherit). Without other members, the organization is
-- deleted. Without other active members, it has no owner until an admin of the service appoints one. Returns the number
-- of organizations left, and the changes: `inherited` [{organization_id, heir_id}], `deleted` [{organization_id, slug}],
-- `invites` as invites_limit does.
create or replace function account_leave(id integer, max_organizations integer)
returns table (organizations integer, inherited json, deleted json, invites json) language plpgsql as $$
#variable_conflict use_column
declare
  organization_ids integer[] := array(select m.organization_id from organization_member m where m.user_id = account_leave.id
    order by m.organization_id limit max_organizations);
begin
  perform from organization o where o.id = any(organization_ids) order by o.id for update;
  inherited := organizations_inherit(account_leave.id, organization_ids);
  with orphaned as (
    select o.id as organization_id, o.slug
    from organization o
    where o.id = any(organization_ids) and o.deleted_at is null and not exists (
      select from organization_member other join account a on a.id = other.user_id and a.deleted_at is null
      where other.organization_id = o.id and other.user_id <> account_leave.id)
  ), deletion as (
    update organization o set deleted_at = now(), slug = null from orphaned where o.id = orphaned.organization_id
  )
  select coalesce(json_agg(o order by o.organization_id), '[]') into deleted from orphaned o;
  delete from organization_member m where m.user_id = account_leave.id and m.organization_id = any(organization_ids);
  invites := invites_limit(account_leave.id, organization_ids);
  organizations := cardinality(organization_ids);
  return next;
end $$;
