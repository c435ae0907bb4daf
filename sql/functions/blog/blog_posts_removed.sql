create or replace function blog_posts_removed() returns trigger language plpgsql as $$
begin
  perform blog_count_add(status, -count(*)) from changed group by status;
  return null;
end $$;

create or replace trigger blog_post_removed after delete on blog_post referencing old table as changed
  for each statement execute function blog_posts_removed();
