-- Copies changed sort columns of a post to its tag links.
create or replace function blog_post_tags_update_order() returns trigger language plpgsql as $$
begin
  update blog_post_tag set status = new.status, created_at = new.created_at, published_at = new.published_at
  where post_id = new.id;
  return null;
end $$;

create or replace trigger blog_post_tags_update_order after update of status, created_at, published_at on blog_post
  for each row when ((old.status, old.created_at, old.published_at) is distinct from (new.status, new.created_at, new.published_at))
  execute function blog_post_tags_update_order();
