-- Rebuilds the tag lists of posts. Locks the posts first and reads their tags in a second statement, which sees the
-- commits of concurrent transactions.
create or replace function blog_tags_rebuild(posts bigint[]) returns void language plpgsql as $$
begin
  perform from blog_post where id = any(posts) order by id for update;
  update blog_post p set tags = now.tags
  from (
    select given.id, concat('[', string_agg(blog_tag_json(t)::text, ',' order by lower(t.name), t.name)
      filter (where t.name is not null), ']') as tags
    from unnest(posts) as given(id)
    left join blog_post_tag pt on pt.post_id = given.id left join blog_tag t on t.id = pt.tag_id group by given.id
  ) now
  where p.id = now.id and p.tags <> now.tags;
end $$;
