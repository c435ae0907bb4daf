import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'
import type { PostStatus } from './posts.ts'

/** Exports posts, and imports posts from uploaded files. */

/** A post in an export. */
export interface ExportedPost {
  readonly id: number
  readonly json: string
}

// Bytes of content per statement, enough to be worth a round trip. A statement returns at least one post.
const EXPORT_BATCH_BYTES = 1_048_576

/** Posts after an id, ordered by id, as lines for {@link parseExportedPost}. */
export const readExportedPosts: ReadStatement<[after: number, status: PostStatus | null]> = {
  name: 'blog_exported_after',
  text: `
    with next as (
      select id, sum(octet_length(content)) over (order by id) - octet_length(content) as before from (
        select id, content from blog_post where id > $1::int and ($2::text is null or status = $2) order by id limit 100) few
    )
    select p.id || ' ' || (select row_to_json(post) from (
      select title, slug, excerpt, content, status, author_name, iso(p.created_at) as created_at, iso(updated_at) as updated_at,
        iso(published_at) as published_at, seo_title, seo_description, hero_image_url,
        array(select t.slug from blog_post_tag pt join blog_tag t on t.id = pt.tag_id
          where pt.post_id = p.id and t.deleted_at is null order by t.slug) as tag_slugs,
        array(select row_to_json(tag) from (
          select t.name, t.slug from blog_post_tag pt join blog_tag t on t.id = pt.tag_id
          where pt.post_id = p.id and t.deleted_at is null order by t.slug) tag) as tags) post)::text
    from next join blog_post p on p.id = next.id where before < ${EXPORT_BATCH_BYTES} order by p.id`,
}

/** Parses a line that {@link readExportedPosts} returned. */
export function parseExportedPost(line: string): ExportedPost {
  const space = line.indexOf(' ')
  return { id: Number(line.slice(0, space)), json: line.slice(space + 1) }
}

const UPLOAD_FORMATS = ['markdown', 'zip', 'json', 'xml'] as const
export type UploadFormat = (typeof UPLOAD_FORMATS)[number]

const IdRow = z.object({ id: z.number() })

export const createUpload = (fileName: string, format: UploadFormat): Query<{ id: number }> =>
  sql.type(IdRow)`insert into blog_upload (file_name, format) values (${fileName}, ${format}) returning id`

export const appendToUpload = (id: number, ordinal: number, bytes: Buffer): Query<unknown> =>
  sql.prepared('blog_upload_append', noRows)`
    insert into blog_upload_chunk (upload_id, ordinal, bytes) values (${id}, ${ordinal}, ${sql.binary(bytes)})`

/** Assigns an upload to the job that reads it. */
export const claimUpload = (id: number, jobId: string): Query<unknown> =>
  sql.type(noRows)`update blog_upload set job_id = ${jobId}::uuid where id = ${id}`

export const deleteUpload = (id: number): Query<unknown> =>
  sql.type(noRows)`delete from blog_upload where id = ${id}`

/** Deletes an upload that no job has claimed. */
export const discardUpload = (id: number): Query<unknown> =>
  sql.type(noRows)`delete from blog_upload where id = ${id} and job_id is null`

const Upload = z.object({ file_name: z.string(), format: z.enum(UPLOAD_FORMATS), result: z.unknown() })

export const readUpload = (id: number): Query<z.output<typeof Upload>> =>
  sql.type(Upload)`select file_name, format, result from blog_upload where id = ${id}`

/** Stores the result of an import and deletes the uploaded bytes. */
export const finishUpload = (id: number, result: object): Query<unknown> =>
  sql.type(noRows)`
    with gone as (delete from blog_upload_chunk where upload_id = ${id})
    update blog_upload set result = ${JSON.stringify(result)}::jsonb where id = ${id}`

const ChunkRow = z.object({ bytes: z.instanceof(Uint8Array) })

/** Reads one chunk of an upload. No row past the end of the upload. */
export const readUploadChunk = (id: number, ordinal: number): Query<{ bytes: Uint8Array }> =>
  sql.prepared('blog_upload_chunk', ChunkRow)`
    select bytes from blog_upload_chunk where upload_id = ${id} and ordinal = ${ordinal}`

/** Prunes uploads older than a day whose job has ended or was never added. Returns the number deleted. */
export const deleteAbandonedImports = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with abandoned as (
      delete from blog_upload where id in (
        select u.id from blog_upload u left join job j on j.id = u.job_id and j.finished_at is null
        where u.created_at < now() - interval '1 day' and j.id is null order by u.created_at limit ${batch})
      returning 1
    )
    select count(*)::int as count from abandoned`

/**
 * A post to import. If a time or the author is undefined, a new post gets that of the import and an existing post keeps
 * its own.
 */
export interface ImportedPost {
  readonly title: string
  readonly slug: string
  readonly content: string
  readonly status: PostStatus
  readonly excerpt: string | null
  readonly seo_title: string | null
  readonly seo_description: string | null
  readonly hero_image_url: string | null
  /** Null means no author. */
  readonly author_name: string | null | undefined
  readonly created_at: string | undefined
  readonly updated_at: string | undefined
  readonly published_at: string | null | undefined
}

/** Reads the full name of the importer. The name is null without an importer, or if the importer has none. */
export const readImporterName = (id: number | null): Query<{ name: string | null }> =>
  sql.type(z.object({ name: z.string().nullable() }))`
    select (select full_name from account where id = ${id}::int) as name`

const SluggedRow = z.object({ id: z.number(), slug: z.string() })
export type SluggedRow = z.output<typeof SluggedRow>

/** Finds and locks the posts with these slugs. The lock prevents changes to them until the transaction ends. */
export const lockPostsBySlug = (slugs: readonly string[]): Query<SluggedRow> =>
  sql.type(SluggedRow)`
    select id, slug from blog_post where slug = any(${sql.array([...slugs], 'text')}) order by id for update`

const buildImportedPostRows = (posts: readonly ImportedPost[]) => sql.fragment`(
    select g ->> 'title' as title, g ->> 'slug' as slug, g ->> 'content' as content, g ->> 'status' as status,
      g ->> 'excerpt' as excerpt, g ->> 'seo_title' as seo_title, g ->> 'seo_description' as seo_description,
      g ->> 'hero_image_url' as hero_image_url, g ? 'author_name' as has_author, g ->> 'author_name' as author_name,
      (g ->> 'created_at')::timestamptz as created_at, (g ->> 'updated_at')::timestamptz as updated_at,
      (g ->> 'published_at')::timestamptz as published_at, n
    from jsonb_array_elements(${JSON.stringify(posts)}::jsonb) with ordinality as list(g, n))`

/** Adds posts in order and returns them. Skips posts whose slug is taken. Public posts count as announced. */
export const insertPosts = (
  posts: readonly ImportedPost[],
  author: { readonly id: number | null; readonly name: string | null },
): Query<SluggedRow> =>
  sql.type(SluggedRow)`
    insert into blog_post (title, slug, content, status, excerpt, seo_title, seo_description, hero_image_url, author_id,
      author_name, created_at, updated_at, published_at, announced_at)
    select title, slug, content, status, excerpt, seo_title, seo_description, hero_image_url,
      case when not has_author then ${author.id}::int end, case when has_author then author_name else ${author.name}::text end,
      coalesce(created_at, now()), coalesce(updated_at, created_at, now()), shown_at,
      case when status = 'published' and shown_at <= now() then now() end
    from ${buildImportedPostRows(posts)} g
      cross join lateral (select case when status = 'published' then coalesce(published_at, created_at, now()) else published_at end) s (shown_at)
    order by n
    on conflict (slug) do nothing
    returning id, slug`

/**
 * Overwrites existing posts with imported ones. Public posts count as announced. An announced post keeps its time of
 * publication if the new one is to come. Call `announcePosts` before.
 */
export const overwritePosts = (posts: readonly ImportedPost[]): Query<SluggedRow> =>
  sql.type(SluggedRow)`
    update blog_post p set title = g.title, content = g.content, status = g.status, excerpt = g.excerpt,
      seo_title = g.seo_title, seo_description = g.seo_description, hero_image_url = g.hero_image_url,
      author_id = case when not has_author then p.author_id end,
      author_name = case when has_author then g.author_name else p.author_name end,
      created_at = coalesce(g.created_at, p.created_at), updated_at = coalesce(g.updated_at, now()), published_at = s.shown_at,
      announced_at = coalesce(p.announced_at, case when g.status = 'published' and s.shown_at <= now() then now() end)
    from ${buildImportedPostRows(posts)} g join blog_post old using (slug)
      cross join lateral (select coalesce(case when old.announced_at is null or g.published_at <= now() then g.published_at end,
        old.published_at, case when g.status = 'published' then coalesce(g.created_at, now()) end)) s (shown_at)
    where p.id = old.id
    returning p.id, p.slug`

/** A tag that an import needs. If it is missing, it is created with this name. */
export interface NeededTag {
  readonly slug: string
  readonly name: string
}

const toTextArray = (all: readonly string[]) => sql.array([...all], 'text')
const toBigintArray = (all: readonly number[]) => sql.array([...all], 'int8')

/** Finds tags by slug and creates missing ones. A tag whose name is taken gets a name derived from its slug. */
export const findOrCreateTags = (tags: readonly NeededTag[]): Query<SluggedRow> => {
  const slugs = toTextArray(tags.map(({ slug }) => slug))
  return sql.type(SluggedRow)`
    with given as (
      select distinct on (slug) slug, name, n
      from unnest(${slugs}, ${toTextArray(tags.map(({ name }) => name))}) with ordinality as list(slug, name, n) order by slug, n
    ), named as (
      -- The first new tag with a name gets it, unless an existing tag has it; others get another name.
      select slug, case when row_number() over (partition by name order by n) = 1
        and not exists (select from blog_tag t where t.name = given.name) then name else blog_free_name(slug) end as name, n
      from given where not exists (select from blog_tag t where t.slug = given.slug)
    ), made as (
      insert into blog_tag (name, slug) select name, slug from named order by n on conflict do nothing returning id, slug
    )
    select id, slug from made union all select id, slug from blog_tag where slug = any(${slugs})`
}

/** Replaces the tags of posts. */
export const setTagsOfPosts = (
  postIds: readonly number[],
  links: readonly { readonly postId: number; readonly tagId: number }[],
): Query<unknown> => {
  const list = sql.fragment`unnest(${toBigintArray(links.map(({ postId }) => postId))}, ${toBigintArray(links.map(({ tagId }) => tagId))})
    as given(post_id, tag_id)`
  return sql.type(noRows)`
    with removed as (
      delete from blog_post_tag pt where pt.post_id = any(${toBigintArray(postIds)})
        and not exists (select from ${list} where given.post_id = pt.post_id and given.tag_id = pt.tag_id)
    )
    insert into blog_post_tag (post_id, tag_id) select post_id, tag_id from ${list} on conflict do nothing`
}
