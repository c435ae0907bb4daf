-- Publishes a post at a time, or now if the time is null. A time to come schedules it. Until the post has been public, its
-- time of publication can change. Returns `public` or `scheduled`, the new state. Returns `missing` without such a post, and
-- `fixed` if the post has been public, so that it can no longer be scheduled.
create or replace function blog_publish(post bigint, at timestamptz) returns text language plpgsql as $$
declare
  p blog_post;
  shown_at timestamptz;
begin
  -- The lock also finds that a concurrent transaction has deleted the post.
  select * into p from blog_post where id = post for no key update;
  if not found then return 'missing'; end if;
  -- The time of an announced post may be later than now(), if this transaction began before.
  if p.announced_at is not null or p.status = 'published' and p.published_at <= now() then
    if p.status <> 'published' and at > now() then return 'fixed'; end if;
    shown_at := p.published_at;
  else
    shown_at := coalesce(at, case when p.published_at <= now() then p.published_at else now() end);
  end if;
  update blog_post set status = 'published', published_at = shown_at, updated_at = now()
  where id = post and (status <> 'published' or published_at <> shown_at);
  perform blog_announce(array[post]);
  return case when p.announced_at is null and shown_at > now() then 'scheduled' else 'public' end;
end $$;
