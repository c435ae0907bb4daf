-- Sends an event of an account to the endpoints that receive it.
create or replace function webhook_emit(account integer, type text, data json) returns void language sql as $$
  insert into webhook_delivery (endpoint_id, type, body)
  select e.id, webhook_emit.type, webhook_body(webhook_emit.type, now(), account, data)
  from webhook_receivers(account, webhook_emit.type) e
$$;
