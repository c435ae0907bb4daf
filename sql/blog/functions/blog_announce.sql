-- Sends the event `post.published` for those of these posts that are public and not announced yet. Each post is announced
-- once, because its row is locked and marked together with the event. Returns the number of announced posts.
create or replace function blog_announce(posts bigint[]) returns integer language sql as $$
  with due as materialized (
    select id from blog_post
    where id = any(posts) and status = 'published' and published_at <= now() and announced_at is null
    order by id for no key update
  ), announced as (
    update blog_post p set announced_at = now() from due where p.id = due.id returning p.id, p.author_id, p.fields, p.tags
  ), sent as (
    insert into webhook_delivery (endpoint_id, type, body)
    select e.id, 'post.published', webhook_body('post.published', now(), a.author_id,
      ((a.fields || ',"tags":' || a.tags || '}')::jsonb - 'content')::json)
    from announced a cross join lateral webhook_receivers(a.author_id, 'post.published') e order by a.id, e.id
  )
  select count(*)::integer from announced
$$;
