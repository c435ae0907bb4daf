-- Accepts and returns all pending invites of an address that an account has just got or verified. Existing members keep their role.
-- A deactivated account cannot be an owner, so it joins as an admin instead.
create or replace function invites_accept(account_id integer, address text)
returns table (invite_id bigint, organization_id integer, role text, was_member boolean) language plpgsql as $$
#variable_conflict use_column
begin
  perform invites_lock(address);
  return query
  with accepted as (
    update organization_invite i set status = 'accepted', accepted_at = now() from organization o, account a
    where i.email = address and i.status = 'pending' and i.expires_at > now()
      and o.id = i.organization_id and o.deleted_at is null and a.id = invites_accept.account_id
    returning i.id, i.organization_id, case when i.role = 'owner' and not a.is_active then 'admin' else i.role end as role
  ), joined as (
    insert into organization_member (organization_id, user_id, role)
    select a.organization_id, invites_accept.account_id, a.role from accepted a
    on conflict on constraint organization_member_organization_id_user_id_key do nothing
    returning organization_id
  )
  select a.id, a.organization_id, a.role, not exists (select from joined j where j.organization_id = a.organization_id)
  from accepted a order by a.id;
end $$;
