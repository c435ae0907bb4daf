create or replace function blog_post_count_of(p blog_post) returns setof blog_post_count language sql immutable as $$
  select null::bigint, p.status, 1
$$;
