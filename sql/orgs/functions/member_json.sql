create or replace function member_json(m organization_member) returns json language sql stable parallel safe
  return json_build_object('id', m.id, 'organization_id', m.organization_id, 'user_id', m.user_id, 'role', m.role,
    'joined_at', iso(m.joined_at));
