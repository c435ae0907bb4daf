-- The link of a post and a tag has what orders the posts of a tag.
create or replace function blog_post_tag_placed() returns trigger language plpgsql as $$
begin
  -- Locked: a change of the post at the same time is seen here, or changes this row.
  select status, created_at, published_at into new.status, new.created_at, new.published_at
  from blog_post where id = new.post_id for share;
  if not found then
    -- For the foreign key to refuse.
    new.status := '';
    new.created_at := now();
  end if;
  return new;
end $$;

create or replace trigger blog_post_tag_placed before insert on blog_post_tag
  for each row execute function blog_post_tag_placed();
