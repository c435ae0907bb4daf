create or replace function blog_post_moved() returns trigger language plpgsql as $$
begin
  perform blog_count_add(old.status, -1), blog_count_add(new.status, 1);
  return null;
end $$;

create or replace trigger blog_post_moved after update of status on blog_post
  for each row when (old.status <> new.status) execute function blog_post_moved();
