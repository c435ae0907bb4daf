-- Copies the sort columns of the post to a new link between a post and a tag.
create or replace function blog_post_tag_set_order() returns trigger language plpgsql as $$
begin
  -- Locks the post, so that a concurrent change of it is either visible here, or updates this row.
  select status, created_at, published_at into new.status, new.created_at, new.published_at
  from blog_post where id = new.post_id for share;
  if not found then
    -- The post does not exist, so the foreign key rejects the row.
    new.status := '';
    new.created_at := now();
  end if;
  return new;
end $$;

create or replace trigger blog_post_tag_set_order before insert on blog_post_tag
  for each row execute function blog_post_tag_set_order();
