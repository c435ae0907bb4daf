-- Sends an event to the endpoints of an account.
create or replace function webhook_emit(account integer, type text, data json) returns void language sql as $$
  insert into webhook_delivery (endpoint_id, type, body)
  select e.id, webhook_emit.type, webhook_body(webhook_emit.type, now(), data) from webhook_endpoint e
  where e.account_id = account and e.is_active and webhook_emit.type = any(e.events)
$$;
