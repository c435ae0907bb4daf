-- Applies the change or deletion of a tag to at most `max_posts` more posts. Returns how many it processed. A smaller
-- number means that all are done, and that the row of a deleted tag is gone.
create or replace function blog_tag_apply(tag bigint, max_posts integer) returns integer language plpgsql as $$
declare
  changed_tag blog_tag;
  posts bigint[];
begin
  -- Admits one call at a time. Transactions that add the tag to posts do not wait for this lock.
  select * into changed_tag from blog_tag where id = tag and applied_to is not null for no key update;
  if not found then return 0; end if;
  posts := array(select post_id from blog_post_tag where tag_id = tag and post_id > changed_tag.applied_to order by post_id limit max_posts);
  if changed_tag.deleted_at is null then
    perform blog_tags_rebuild(posts);
  else
    -- Locks posts before their tag links, so that two changes never deadlock.
    perform from blog_post where id = any(posts) order by id for update;
    delete from blog_post_tag where tag_id = tag and post_id = any(posts);
  end if;
  if cardinality(posts) = max_posts then
    update blog_tag set applied_to = posts[max_posts] where id = tag;
  elsif changed_tag.deleted_at is null then
    update blog_tag set applied_to = null where id = tag;
  else
    delete from blog_tag where id = tag;
  end if;
  return cardinality(posts);
end $$;
