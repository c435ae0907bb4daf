-- Returns a webhook endpoint as public JSON.
create or replace function webhook_endpoint_json(e webhook_endpoint) returns json language sql stable parallel safe
  return json_build_object('id', e.id, 'scope', case when e.account_id is null then 'service' else 'account' end, 'account_id', e.account_id, 'organization_id', e.organization_id, 'url', e.url,
    'events', e.events, 'description', e.description, 'is_active', e.is_active, 'failures', e.failures,
    'failing_since', iso(e.failing_since), 'paused_until', iso(e.paused_until), 'disabled_at', iso(e.disabled_at),
    'proved_at', iso(e.proved_at), 'secret_rolled_at', iso(e.secret_rolled_at), 'created_at', iso(e.created_at),
    'updated_at', iso(e.updated_at));
