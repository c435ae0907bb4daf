-- Whether a caller may see and stop an endpoint: its account, admins and owners of its organization, and who may do
-- everything; with an API key of an organization, none of another one. Of a deleted one nobody may. What it is told is
-- its account's and not the organization's: callers refuse others whatever shows that, or sends it anywhere.
create or replace function webhook_managed(e webhook_endpoint, account integer, everything boolean, organization integer)
returns boolean language sql stable as $$
  select e.deleted_at is null and (organization is null or coalesce(e.organization_id = organization, true))
    and (everything or coalesce(e.account_id = account, false) or exists (
      select from organization_member m where m.organization_id = e.organization_id and m.user_id = account
        and m.role in ('owner', 'admin')))
$$;
