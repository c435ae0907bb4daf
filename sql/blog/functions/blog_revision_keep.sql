-- Keeps the current versions of posts that changes are about to replace. A change names its post as `id`, and has the new
-- values as updatePost takes them, and `tag_slugs` if it replaces the tags. A change without an effect keeps nothing. The
-- caller has locked the posts. Each post keeps at most `max_revisions` versions.
create or replace function blog_revision_keep(changes jsonb, editor integer, editor_name text, reason text, max_revisions integer)
returns void language sql as $$
  with kept as (
    insert into blog_revision (post_id, title, slug, excerpt, content, seo_title, seo_description, hero_image_url, tags, updated_at,
      replaced_by, editor_id, editor_name)
    select p.id, p.title, p.slug, p.excerpt, p.content, p.seo_title, p.seo_description, p.hero_image_url, p.tags, p.updated_at,
      reason, editor, blog_revision_keep.editor_name
    from jsonb_array_elements(changes) c cross join lateral (select * from blog_post where id = (c ->> 'id')::bigint offset 0) p
    where (p.title, p.slug, p.content, p.excerpt, p.seo_title, p.seo_description, p.hero_image_url) is distinct from (
        coalesce(c ->> 'title', p.title), coalesce(c ->> 'slug', p.slug), coalesce(c ->> 'content', p.content),
        case when c ? 'excerpt' then c ->> 'excerpt' else p.excerpt end,
        case when c ? 'seo_title' then c ->> 'seo_title' else p.seo_title end,
        case when c ? 'seo_description' then c ->> 'seo_description' else p.seo_description end,
        case when c ? 'hero_image_url' then c ->> 'hero_image_url' else p.hero_image_url end)
      or c ? 'tag_slugs' and array(select distinct given from jsonb_array_elements_text(c -> 'tag_slugs') g (given) order by 1)
        <> array(select tag ->> 'slug' from jsonb_array_elements(p.tags::jsonb) tag order by 1)
    returning post_id
  )
  -- The new rows are not visible here, so one place stays free for each.
  delete from blog_revision r using kept
  where r.id in (select old.id from blog_revision old where old.post_id = kept.post_id order by old.id desc offset max_revisions - 1)
$$;
