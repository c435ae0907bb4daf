-- True if a caller may see and stop an endpoint: as its account, as an admin or owner of its organization, or with
-- `everything`. Always false for deleted endpoints. An API key of an organization manages no endpoints of another
-- organization or of the service. The events belong to the account, not to the organization, so this function does not permit showing or
-- redirecting them.
create or replace function webhook_can_manage(e webhook_endpoint, account integer, everything boolean, organization integer)
returns boolean language sql stable as $$
  select e.deleted_at is null and (organization is null or coalesce(e.organization_id = organization, e.account_id is not null))
    and (everything or coalesce(e.account_id = account, false) or exists (
      select from organization_member m where m.organization_id = e.organization_id and m.user_id = account
        and m.role in ('owner', 'admin')))
$$;
