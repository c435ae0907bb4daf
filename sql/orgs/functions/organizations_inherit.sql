-- Makes an heir an owner of each of these organizations whose only active owner is about to leave. The heir is the
-- highest-ranked, longest-standing other active member. Callers hold the locks of the organizations. Returns
-- [{organization_id, heir_id}].
create or replace function organizations_inherit(account_id integer, organization_ids integer[]) returns json language sql as $$
  with heir as (
    select distinct on (m.organization_id) m.id
    from organization_member own join organization o on o.id = own.organization_id and o.deleted_at is null
    join organization_member m on m.organization_id = o.id and m.id <> own.id
    join account a on a.id = m.user_id and a.is_active
    where own.user_id = organizations_inherit.account_id and own.organization_id = any(organization_ids)
      and own.role = 'owner' and not exists (
        select from organization_member other join account b on b.id = other.user_id and b.is_active
        where other.organization_id = own.organization_id and other.role = 'owner' and other.id <> own.id)
    order by m.organization_id, array_position(array['admin', 'member'], m.role), m.joined_at, m.id
  ), promoted as (
    update organization_member m set role = 'owner' from heir where m.id = heir.id
    returning m.organization_id, m.user_id as heir_id
  )
  select coalesce(json_agg(p order by p.organization_id), '[]') from promoted p
$$;
