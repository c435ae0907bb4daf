create or replace function blog_tag_json(t blog_tag) returns json language sql stable as $$
  select row_to_json(tag) from (select t.id, t.name, t.slug, iso(t.created_at) as created_at) tag
$$;
