-- Returns an account as public JSON.
create or replace function account_json(a account) returns json language sql stable parallel safe
  return json_build_object('id', a.id, 'email', a.email, 'full_name', a.full_name, 'is_active', a.is_active,
    'is_verified', a.is_verified, 'role', a.role, 'last_login', iso(a.last_login), 'created_at', iso(a.created_at),
    'updated_at', iso(a.updated_at), 'deletion_at', iso(a.deletion_at));
