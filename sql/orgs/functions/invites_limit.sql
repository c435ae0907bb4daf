-- Limits the pending invites of an account to its present rank in these organizations. Members, deactivated accounts and
-- accounts that have left may not invite, so their invites are revoked. An admin's invites of owners become invites of
-- admins. Callers hold the locks of the organizations. Returns [{invite_id, organization_id, email, before, after}]; a
-- null `after` means revoked.
create or replace function invites_limit(account_id integer, organization_ids integer[]) returns json language sql as $$
  with sent as (
    select i.id, i.role as before, case when m.role = 'owner' then i.role when m.role = 'admin' and i.role = 'owner' then 'admin'
      when m.role = 'admin' then i.role end as after
    from organization_invite i join organization o on o.id = i.organization_id and o.deleted_at is null
    left join account a on a.id = i.invited_by and a.is_active
    left join organization_member m on m.organization_id = i.organization_id and m.user_id = a.id
    where i.invited_by = invites_limit.account_id and i.organization_id = any(organization_ids) and i.status = 'pending'
  ), changed as (
    update organization_invite i set role = coalesce(s.after, s.before),
      status = case when s.after is null then 'revoked' else 'pending' end
    from sent s where i.id = s.id and s.after is distinct from s.before
    returning i.id as invite_id, i.organization_id, i.email, s.before, s.after
  )
  select coalesce(json_agg(c order by c.organization_id, c.invite_id), '[]') from changed c
$$;
