-- True if an endpoint receives a type of event of an account. Callers check this first, because hardly any account has
-- one.
create or replace function webhook_is_subscribed(account integer, type text) returns boolean language sql stable as $$
  select exists (select from webhook_receivers(account, webhook_is_subscribed.type))
$$;
