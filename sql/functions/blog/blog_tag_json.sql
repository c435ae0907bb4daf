create or replace function blog_tag_json(t blog_tag) returns json language sql stable as $$
  select json_build_object('id', t.id, 'name', t.name, 'slug', t.slug, 'created_at', iso(t.created_at))
$$;
