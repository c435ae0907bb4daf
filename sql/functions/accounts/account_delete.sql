-- Deletes an account. An organization that it alone owned passes to the highest-ranked, longest-standing other member,
-- or is deleted when there is none. Returns what became of them: `inherited` [{organization_id, heir_id}], `deleted`
-- [{organization_id, slug}]; no row when there is no such account.
create or replace function account_delete(id integer)
returns table (email text, inherited json, deleted json) language plpgsql as $$
#variable_conflict use_column
begin
  -- Organizations before accounts, as in every change; the second pass locks those joined before its row was locked.
  for pass in 1..2 loop
    perform from organization o where o.id in (
      select m.organization_id from organization_member m where m.user_id = account_delete.id)
    order by o.id for update;
    perform from account a where a.id = account_delete.id for update;
  end loop;
  with heir as (
    select distinct on (m.organization_id) m.id
    from organization_member own join organization_member m on m.organization_id = own.organization_id and m.id <> own.id
    where own.user_id = account_delete.id and own.role = 'owner' and not exists (
      select from organization_member other
      where other.organization_id = own.organization_id and other.role = 'owner' and other.id <> own.id)
    order by m.organization_id, array_position(array['admin', 'member'], m.role), m.joined_at, m.id
  ), promoted as (
    update organization_member m set role = 'owner' from heir where m.id = heir.id
    returning m.organization_id, m.user_id as heir_id
  )
  select coalesce(json_agg(p order by p.organization_id), '[]') into inherited from promoted p;
  with orphaned as (
    delete from organization o using organization_member own
    where own.organization_id = o.id and own.user_id = account_delete.id and own.role = 'owner' and not exists (
      select from organization_member other where other.organization_id = o.id and other.id <> own.id)
    returning o.id as organization_id, o.slug
  )
  select coalesce(json_agg(o order by o.organization_id), '[]') into deleted from orphaned o;
  return query
  with gone as (delete from account a where a.id = account_delete.id returning a.email)
  select gone.email, account_delete.inherited, account_delete.deleted from gone;
end $$;
