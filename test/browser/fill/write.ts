import { previewTokenOf } from '../../../tasks/blog/previews.ts'
import { TEST_KEYS } from '../../keys.ts'
import type { Fill } from './fill.ts'

const LONG_WORD = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft'

/** 10,000 posts in every state, 10,000 tags, and 10,000 revisions of one post. */
export const fill: Fill = async ({ query, accountId }) => {
  await query(
    `insert into blog_tag (name, slug)
     select case n % 10 when 0 then left($1, 70) else 'Tag' end || ' ' || n, 'tag-' || n from generate_series(1, 10000) n`,
    [LONG_WORD],
  )
  // One vector for all posts, because computing 10,000 takes most of the time.
  await query('alter table blog_post disable trigger blog_post_index_insert')
  const posts = await query(
    `insert into blog_post (title, slug, excerpt, content, status, author_id, author_name, created_at, published_at, hero_image_url)
     select case n % 5 when 0 then left(repeat($1 || ' ', 3), 200) else 'Post ' || n end, 'post-' || n,
       case when n % 3 = 0 then null when n < 100 then left(repeat('An excerpt about mills. ', 30), 500) else '' end,
       case when n % 4 = 0 or n > 200 then '' else E'# Mills\\n\\nThree mills, **rebuilt**.\\n\\n- ' || $1 end,
       case when n % 4 = 0 then 'draft' when n % 7 = 0 then 'archived' else 'published' end, $2::int,
       case n % 6 when 0 then null when 1 then $1 else 'Ada' end, now() - n * interval '1 hour',
       case when n % 4 = 0 then null when n % 50 = 1 then now() + n * interval '1 hour' else now() - n * interval '1 hour' end,
       case n % 8 when 1 then 'https://example.com/' || $1 || '.png' end
     from generate_series(1, 10000) n returning id`,
    [LONG_WORD, accountId],
  )
  const { id } = posts[0]!
  await query('alter table blog_post enable trigger blog_post_index_insert')
  await query(
    `insert into blog_post_part (post_id, part, search)
     select id, 0, given.search from blog_post, (select search_vector('Post about mills') as search) given`,
  )
  await query(
    `insert into blog_post_tag (post_id, tag_id, status, created_at, published_at)
     select p.id, t.id, p.status, p.created_at, p.published_at
     from (select * from blog_post where id < $1 + 300) p join blog_tag t on t.id between (select min(id) from blog_tag) + p.id % 97 and (select min(id) from blog_tag) + p.id % 97 + case when p.id = $1 then 12 else p.id % 3 end`,
    [id],
  )
  await query(
    `insert into blog_revision (post_id, title, slug, content, tags, updated_at, replaced_by, editor_id, editor_name)
     select $1::bigint, case n % 5 when 0 then $2 else 'Version ' || n end, 'version-' || n, 'Text ' || n, '[]', now() - n * interval '1 hour',
       (array['update', 'restore', 'import'])[n % 3 + 1], $3::int, case n % 2 when 0 then $2 end
     from generate_series(1, 10000) n`,
    [id, LONG_WORD, accountId],
  )
  const [preview] = await query(
    `insert into blog_preview (post_id, expires_at) values ($1, now() + interval '1 day') returning id`,
    [id],
  )
  return {
    '/write/:post': `/write/${String(id)}`,
    '/write/preview': `/write/preview#token=${previewTokenOf(TEST_KEYS, preview!.id as number)}`,
  }
}
