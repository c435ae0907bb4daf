-- Returns what a caller may do with a queue: `manage` and work for it, or only `use` it; null if the caller may not know of
-- it. A null caller acts without authentication, and so owns the queues that have no owner. `key_organization` limits the
-- caller's API key; null does not.
create or replace function worker_queue_access(q worker_queue, caller integer, is_admin boolean, key_organization integer)
returns text language sql stable
as $$
  select case
    when key_organization is not null and q.organization_id is distinct from key_organization then null
    when is_admin or caller is null and q.account_id is null and q.organization_id is null then 'manage'
    when q.account_id is not null then case when q.account_id = caller then 'manage' end
    else (select case when m.role = 'member' then 'use' else 'manage' end from organization_member m
      where m.organization_id = q.organization_id and m.user_id = caller) end
$$;
