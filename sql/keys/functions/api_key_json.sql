-- Returns an API key as public JSON.
create or replace function api_key_json(k api_key) returns json language sql stable parallel safe
  return json_build_object('id', k.id, 'account_id', k.account_id, 'organization_id', k.organization_id, 'name', k.name,
    'hint', k.hint, 'scopes', k.scopes, 'created_at', iso(k.created_at), 'expires_at', iso(k.expires_at),
    'last_used_at', iso(k.last_used_at));
