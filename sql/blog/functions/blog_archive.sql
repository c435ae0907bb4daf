-- Archives a post. A scheduled post loses its time of publication. Returns false without such a post.
create or replace function blog_archive(post bigint) returns boolean language plpgsql as $$
begin
  -- The lock also finds that a concurrent transaction has deleted the post.
  perform from blog_post where id = post for no key update;
  if not found then return false; end if;
  -- A post may have become public a moment ago.
  perform blog_announce(array[post]);
  -- A transaction that is older than an announced post's time still keeps it.
  update blog_post set status = 'archived', updated_at = now(),
    published_at = case when status <> 'published' or published_at <= now() or announced_at is not null then published_at end
  where id = post and status <> 'archived';
  return true;
end $$;
