-- Returns an invite as public JSON. Omits its token, which only the edge can derive.
create or replace function invite_json(i organization_invite) returns json language sql stable parallel safe
  return json_build_object('id', i.id, 'organization_id', i.organization_id, 'email', i.email, 'role', i.role,
    'status', i.status, 'created_at', iso(i.created_at), 'expires_at', iso(i.expires_at));
