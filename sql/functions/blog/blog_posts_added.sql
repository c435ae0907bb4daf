create or replace function blog_posts_added() returns trigger language plpgsql as $$
begin
  perform blog_count_add(status, count(*)) from changed group by status;
  return null;
end $$;

create or replace trigger blog_post_added after insert on blog_post referencing new table as changed
  for each statement execute function blog_posts_added();
