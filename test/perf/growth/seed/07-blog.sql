-- 100,000 posts of about a kilobyte, each with three of 1,000 tags. Every other post also has the first tag. Posts have former
-- slugs, revisions and links.

call growth.drop_indexes('blog_post_part');

insert into blog_tag (name, slug, created_at)
select 'Tag ' || n, 'tag-' || n, growth.moment(n, size, '1 year') from growth.size(1000) size, generate_series(1, size) n;

insert into blog_post (title, slug, excerpt, content, status, author_id, author_name, created_at, updated_at, published_at,
  announced_at)
select 'Post ' || n || ' about ' || growth.word(n), 'post-' || n, 'About ' || growth.word(n),
  (select string_agg('Line ' || l || ' of post ' || n || ' is about *' || growth.word(n + l) || '*.' || chr(10), '') from generate_series(1, 25) l),
  state, 2 + n % 2, 'An author', at, at, case when state <> 'draft' then at end,
  case when state <> 'draft' then at end
from growth.size(100000) size, generate_series(1, size) n, growth.moment(n, size, '5 years') at,
  lateral (select case when n % 10 = 0 then 'draft' when n % 20 = 1 then 'archived' else 'published' end as state) of_it;

insert into blog_post_tag (post_id, tag_id)
select p.id, 1 + growth.pick(p.id::int, k, growth.size(1000)) from blog_post p, generate_series(1, 3) k
union select id, 1 from blog_post where id % 2 = 0
-- A tag that is rare at any size.
union select id, growth.size(1000) from blog_post where id % greatest(1, growth.size(100000) / 20) = 0;
call growth.restore_indexes();

insert into blog_revision (post_id, title, slug, content, tags, updated_at, replaced_by)
select 1, 'Old', 'post-1', 'Old', '[]', now(), 'update' from generate_series(1, 100);
insert into blog_revision (post_id, title, slug, content, tags, updated_at, replaced_by)
select id, 'Old', slug, 'Old', '[]', now(), 'update' from blog_post where id > 1;
insert into blog_redirect (slug, post_id) select 'former-' || (row_number() over (order by id)), id from blog_post where status = 'published';
insert into blog_preview (post_id, expires_at) select id, now() + interval '10 days' from blog_post order by id;
insert into search_word (owner_id, word)
select distinct -1, word from blog_post_part, unnest(tsvector_to_array(search)) word where length(word) > 2 on conflict do nothing;
