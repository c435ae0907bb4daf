-- Returns an organization as public JSON.
create or replace function organization_json(o organization) returns json language sql stable parallel safe
  return json_build_object('id', o.id, 'name', o.name, 'slug', o.slug, 'description', o.description,
    'is_active', o.is_active, 'created_at', iso(o.created_at), 'updated_at', iso(o.updated_at));
