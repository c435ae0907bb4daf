-- True if an account has an endpoint for a type of event. Callers check this first, because hardly any account has one.
create or replace function webhook_is_subscribed(account integer, type text) returns boolean language sql stable as $$
  select exists (select from webhook_endpoint e
    where e.account_id = account and e.is_active and webhook_is_subscribed.type = any(e.events))
$$;
