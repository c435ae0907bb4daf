import { z } from 'zod'
import { JsonText, noRows, type Query, sql } from '../db.ts'
import { buildListText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Queries about posts and tags. Reads concatenate JSON that was built when the rows were written. */

// A row stores the JSON of its post in two parts.
export const POST_JSON = sql.fragment`p.fields || ',"tags":' || p.tags || '}'`

export const POST_STATUSES = ['draft', 'published', 'archived'] as const
export type PostStatus = (typeof POST_STATUSES)[number]

const POST_COUNT_QUERY = 'select coalesce(sum(posts), 0) from blog_post_count'
const POST_LIST = {
  table: 'blog_post',
  row: 'p',
  parameters: 0,
  direction: 'desc',
  item: POST_JSON.sql,
} as const
const TAGGED_POST_LIST = {
  table: 'blog_post_tag',
  row: 'pt',
  id: ['post_id', 'tag_id'],
  direction: 'desc',
  join: 'join blog_post p on p.id = pt.post_id',
  item: POST_JSON.sql,
} as const
export const TAG_CONDITION = 'pt.tag_id = (select t.id from blog_tag t where t.slug = $1::text)'

export const PUBLISHED_ORDER = { 'p.published_at': 'timestamptz', 'p.id': 'bigint' } as const
export const PUBLISHED_TAGGED_ORDER = { 'pt.published_at': 'timestamptz', 'pt.post_id': 'bigint' } as const
export const POST_ORDER = { 'p.created_at': 'timestamptz', 'p.id': 'bigint' } as const
export const TAGGED_POST_ORDER = { 'pt.created_at': 'timestamptz', 'pt.post_id': 'bigint' } as const

// A published post with a time to come is scheduled: the public does not see it yet.
export const isPublic = (row: 'p' | 'pt'): string =>
  `${row}.status = 'published' and ${row}.published_at <= now()`
const SCHEDULED_COUNT_QUERY = `select count(*) from blog_post where status = 'published' and published_at > now()`

/** Public posts, newest first. The stored count includes scheduled posts, which are few. */
export const readPublishedPosts: ReadStatement<PageValues> = {
  name: 'blog_published',
  text: buildListText('posts', {
    ...POST_LIST,
    where: isPublic('p'),
    order: PUBLISHED_ORDER,
    total: `(${POST_COUNT_QUERY} where status = 'published') - (${SCHEDULED_COUNT_QUERY})`,
  }),
}

/** Public posts with a tag, newest first. */
export const readPublishedPostsByTag: ReadStatement<[tagSlug: string, ...page: PageValues]> = {
  name: 'blog_published_tagged',
  text: buildListText('posts', {
    ...TAGGED_POST_LIST,
    parameters: 1,
    where: `${TAG_CONDITION} and ${isPublic('pt')}`,
    order: PUBLISHED_TAGGED_ORDER,
  }),
}

/** All posts, newest first. */
export const readPosts: ReadStatement<PageValues> = {
  name: 'blog_posts',
  text: buildListText('posts', { ...POST_LIST, where: 'true', order: POST_ORDER, total: POST_COUNT_QUERY }),
}

/** Posts with a status, newest first. */
export const readPostsByStatus: ReadStatement<[status: string, ...page: PageValues]> = {
  name: 'blog_posts_of',
  text: buildListText('posts', {
    ...POST_LIST,
    parameters: 1,
    where: 'p.status = $1::text',
    order: POST_ORDER,
    total: `${POST_COUNT_QUERY} where status = $1::text`,
  }),
}

/** Posts with a tag and a status, newest first. A null status matches any. */
export const readPostsByTag: ReadStatement<[tagSlug: string, status: string | null, ...page: PageValues]> = {
  name: 'blog_posts_tagged',
  text: buildListText('posts', {
    ...TAGGED_POST_LIST,
    parameters: 2,
    where: [`${TAG_CONDITION} and $2::text is null`, `${TAG_CONDITION} and pt.status = $2::text`],
    order: TAGGED_POST_ORDER,
  }),
}

/** One public post as JSON, or the current slug of the public post that had this slug. */
export const readPublishedPost: ReadStatement<[slug: string]> = {
  name: 'blog_published_post',
  text: `select coalesce(
    (select ${POST_JSON.sql} from blog_post p where p.slug = $1 and ${isPublic('p')}),
    (select p.slug from blog_redirect r join blog_post p on p.id = r.post_id where r.slug = $1 and ${isPublic('p')}))`,
}

/** One post as JSON, whatever its status. */
export const readPostById: ReadStatement<[id: number]> = {
  name: 'blog_post_by_id',
  text: `select ${POST_JSON.sql} from blog_post p where p.id = $1::bigint`,
}

export const TAG_ORDER = { 'lower(t.name)': 'text', 't.name': 'text' } as const

/** Tags, ordered by name. */
export const readTags: ReadStatement<PageValues> = {
  name: 'blog_tags',
  text: buildListText('tags', {
    table: 'blog_tag',
    row: 't',
    parameters: 0,
    where: 't.deleted_at is null',
    order: TAG_ORDER,
    direction: 'asc',
    item: 'blog_tag_json(t)',
  }),
}

/** Reads one post as public JSON. */
export const readPost = (id: number): Query<{ json: string }> =>
  sql.prepared('blog_post', JsonText)`select ${POST_JSON} as json from blog_post p where id = ${id}`

/** Fields of a post that editors can set. */
export interface PostFields {
  readonly title: string
  readonly content: string
  readonly excerpt: string | null
  readonly seo_title: string | null
  readonly seo_description: string | null
  readonly hero_image_url: string | null
}

export interface NewPost extends PostFields {
  readonly slug: string
  readonly authorId: number | null
  readonly authorName: string | null
}

/** Adds a draft. No row if the slug is taken. */
export const insertPost = (p: NewPost): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    insert into blog_post (title, slug, content, excerpt, seo_title, seo_description, hero_image_url, author_id, author_name)
    values (${p.title}, ${p.slug}, ${p.content}, ${p.excerpt}, ${p.seo_title}, ${p.seo_description}, ${p.hero_image_url},
      ${p.authorId}, ${p.authorName})
    on conflict (slug) do nothing
    returning id`

/**
 * Changes fields of a post: null clears a field, and absent fields keep their value. No row if the post does not exist.
 */
export const updatePost = (
  id: number,
  changes: Partial<PostFields> & { readonly slug?: string },
): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    update blog_post p set
      title = coalesce(c ->> 'title', p.title), slug = coalesce(c ->> 'slug', p.slug),
      content = coalesce(c ->> 'content', p.content),
      excerpt = case when c ? 'excerpt' then c ->> 'excerpt' else p.excerpt end,
      seo_title = case when c ? 'seo_title' then c ->> 'seo_title' else p.seo_title end,
      seo_description = case when c ? 'seo_description' then c ->> 'seo_description' else p.seo_description end,
      hero_image_url = case when c ? 'hero_image_url' then c ->> 'hero_image_url' else p.hero_image_url end,
      updated_at = now()
    from (select ${JSON.stringify(changes)}::jsonb as c) given
    where p.id = ${id}
    returning p.id`

/** Locks a post, so that only one transaction at a time changes its tags. */
export const lockPost = (id: number): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`select id from blog_post where id = ${id} for update`

export const deletePost = (id: number): Query<unknown> =>
  sql.type(noRows)`delete from blog_post where id = ${id}`

const SluggedRow = z.object({ id: z.number(), slug: z.string() })

/** Finds and locks the tags with these slugs. The lock prevents their deletion until the transaction ends. */
export const lockTagsBySlug = (slugs: readonly string[]): Query<z.output<typeof SluggedRow>> =>
  sql.type(SluggedRow)`
    select id, slug from blog_tag where slug = any(${sql.array([...slugs], 'text')}) order by id for key share`

/** Replaces the tags of a post. */
export const setTags = (postId: number, tagIds: readonly number[]): Query<unknown> =>
  sql.type(noRows)`
    with removed as (
      delete from blog_post_tag where post_id = ${postId} and tag_id <> all(${sql.array([...tagIds], 'int8')})
    )
    insert into blog_post_tag (post_id, tag_id) select ${postId}, given from unnest(${sql.array([...tagIds], 'int8')}) given
    on conflict do nothing`

export const insertTag = (name: string, slug: string): Query<{ json: string }> =>
  sql.type(
    JsonText,
  )`insert into blog_tag as t (name, slug) values (${name}, ${slug}) returning blog_tag_json(t)::text as json`

/** Changes a tag; null keeps a field. No row if the tag does not exist. {@link applyTagChange} updates its posts. */
export const updateTag = (id: number, name: string | null, slug: string | null): Query<{ json: string }> =>
  sql.type(JsonText)`
    update blog_tag t set name = coalesce(${name}, name), slug = coalesce(${slug}, slug),
      applied_to = case when (coalesce(${name}, name), coalesce(${slug}, slug)) = (name, slug) then applied_to else 0 end
    where id = ${id} and deleted_at is null
    returning blog_tag_json(t)::text as json`

/**
 * Hides a tag. Affects no row if the tag does not exist. {@link applyTagChange} removes it from its posts, then deletes its
 * row.
 */
export const hideTag = (id: number): Query<unknown> =>
  sql.type(noRows)`
    update blog_tag set name = null, slug = null, deleted_at = now(), applied_to = 0 where id = ${id} and deleted_at is null`

/**
 * Maximum number of posts to update per transaction after a change or deletion of a tag. The posts stay locked for
 * about 30 ms.
 */
export const RETAG_BATCH_SIZE = 500

/**
 * Applies the change or deletion of a tag to at most `max` more posts. A count below `max` means that none are left.
 */
export const applyTagChange = (id: number, max: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`select blog_tag_apply(${id}, ${max}::int) as count`

/**
 * Finds a tag with posts still to update, and the number of those posts. No row if every tag change has been applied.
 */
export const findUnappliedTag = (): Query<{ id: number; posts: number }> =>
  sql.type(z.object({ id: z.number(), posts: z.number() }))`
    select t.id, (select count(*)::int from blog_post_tag l where l.tag_id = t.id and l.post_id > t.applied_to) as posts
    from blog_tag t where t.applied_to is not null order by t.id limit 1`
