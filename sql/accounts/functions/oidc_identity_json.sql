-- Returns an identity as public JSON.
create or replace function oidc_identity_json(i oidc_identity) returns json language sql stable parallel safe
  return json_build_object('id', i.id, 'issuer', i.issuer, 'email', i.email, 'created_at', iso(i.created_at),
    'last_used_at', iso(i.last_used_at));
