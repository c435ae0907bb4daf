create or replace function blog_count_add(given text, more bigint) returns void language sql as $$
  with free as (
    select id from blog_post_count where status = given order by id limit 100 for update skip locked
  ), folded as (
    delete from blog_post_count c using free where c.id = free.id returning c.posts
  )
  insert into blog_post_count (status, posts) select given, more + coalesce(sum(posts), 0) from folded
$$;
