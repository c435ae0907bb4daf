-- Returns the active endpoints that receive an event of an account: its own and those of the service. Without an account,
-- only endpoints of the service receive events, and only those of posts.
create or replace function webhook_receivers(account integer, type text) returns setof webhook_endpoint language sql stable as $$
  select e.* from webhook_endpoint e
  where e.account_id = account and e.is_active and webhook_receivers.type = any(e.events)
  union all
  select e.* from webhook_endpoint e
  where e.account_id is null and (account is not null or webhook_receivers.type = 'post.published')
    and e.is_active and webhook_receivers.type = any(e.events)
$$;
