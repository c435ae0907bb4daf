-- Returns a passkey as public JSON.
create or replace function passkey_json(p passkey) returns json language sql stable parallel safe
  return json_build_object('id', p.id, 'name', p.name, 'is_synced', p.is_synced, 'transports', p.transports,
    'created_at', iso(p.created_at), 'last_used_at', iso(p.last_used_at));
