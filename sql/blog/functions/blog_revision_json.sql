-- Returns a former version as public JSON for lists.
create or replace function blog_revision_json(r blog_revision) returns json language sql stable as $$
  select row_to_json(revision) from (select r.id, r.title, r.slug, iso(r.updated_at) as updated_at,
    iso(r.replaced_at) as replaced_at, r.replaced_by, r.editor_id, r.editor_name) revision
$$;
