-- Keeps the former slug of a post that has been public. The new slug leads to this post, so its redirect ends.
create or replace function blog_redirect_keep() returns trigger language plpgsql as $$
begin
  delete from blog_redirect where slug = new.slug;
  if new.announced_at is not null or old.status = 'published' and old.published_at <= now() then
    insert into blog_redirect (slug, post_id) values (old.slug, new.id);
  end if;
  return null;
end $$;

create or replace trigger blog_redirect_keep after update of slug on blog_post
  for each row when (old.slug <> new.slug) execute function blog_redirect_keep();
