-- Removes an account from at most `max_organizations` of its organizations. If it was the only owner of an
-- organization, the highest-ranked, longest-standing other member becomes the owner. Without other members, the
-- organization is deleted. Returns the number of organizations left, and the changes: `inherited` [{organization_id,
-- heir_id}], `deleted` [{organization_id, slug}].
create or replace function account_leave(id integer, max_organizations integer)
returns table (organizations integer, inherited json, deleted json) language plpgsql as $$
#variable_conflict use_column
declare
  organization_ids integer[] := array(select m.organization_id from organization_member m where m.user_id = account_leave.id
    order by m.organization_id limit max_organizations);
begin
  perform from organization o where o.id = any(organization_ids) order by o.id for update;
  with heir as (
    select distinct on (m.organization_id) m.id
    from organization_member own join organization o on o.id = own.organization_id and o.deleted_at is null
    join organization_member m on m.organization_id = o.id and m.id <> own.id
    join account a on a.id = m.user_id and a.deleted_at is null
    where own.user_id = account_leave.id and own.organization_id = any(organization_ids) and own.role = 'owner' and not exists (
      select from organization_member other
      where other.organization_id = own.organization_id and other.role = 'owner' and other.id <> own.id)
    order by m.organization_id, array_position(array['admin', 'member'], m.role), m.joined_at, m.id
  ), promoted as (
    update organization_member m set role = 'owner' from heir where m.id = heir.id
    returning m.organization_id, m.user_id as heir_id
  )
  select coalesce(json_agg(p order by p.organization_id), '[]') into inherited from promoted p;
  with orphaned as (
    select o.id as organization_id, o.slug
    from organization_member own join organization o on o.id = own.organization_id and o.deleted_at is null
    where own.user_id = account_leave.id and own.organization_id = any(organization_ids) and own.role = 'owner' and not exists (
      select from organization_member other join account a on a.id = other.user_id and a.deleted_at is null
      where other.organization_id = o.id and other.id <> own.id)
  ), deletion as (
    update organization o set deleted_at = now(), slug = null from orphaned where o.id = orphaned.organization_id
  )
  select coalesce(json_agg(o order by o.organization_id), '[]') into deleted from orphaned o;
  delete from organization_member m where m.user_id = account_leave.id and m.organization_id = any(organization_ids);
  organizations := cardinality(organization_ids);
  return next;
end $$;
