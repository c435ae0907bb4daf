-- Returns a pending change of address as public JSON.
create or replace function email_change_json(c email_change) returns json language sql stable parallel safe
  return json_build_object('email', c.email, 'old_confirmed', c.old_confirmed_at is not null,
    'new_confirmed', c.new_confirmed_at is not null, 'created_at', iso(c.created_at), 'expires_at', iso(c.expires_at));
