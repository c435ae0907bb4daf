-- Returns an API key as public JSON.
create or replace function api_key_json(k api_key) returns json language sql stable parallel safe
  return json_build_object('id', k.id, 'account_id', k.account_id, 'organization_id', k.organization_id, 'name', k.name,
    'hint', k.hint, 'scopes', k.scopes, 'created_at', iso(k.created_at), 'expires_at', iso(k.expires_at),
    'last_used_at', iso(k.last_used_at), 'budget', (
      select json_build_object('day_tokens', max(b.amount) filter (where b.kind = 'day_tokens'),
        'day_cost', max(b.amount) filter (where b.kind = 'day_cost'), 'month_tokens', max(b.amount) filter (where b.kind = 'month_tokens'),
        'month_cost', max(b.amount) filter (where b.kind = 'month_cost'))
      from ai_budget b where b.key_id = k.id));
