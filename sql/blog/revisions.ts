import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import { buildListText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import type { PostFields } from './posts.ts'

/** Former versions of posts. */

export const REVISION_REASONS = ['update', 'restore', 'import'] as const

/** Values that a change gives a post. Absent fields keep their value, and null clears a field. */
export interface PostChange extends Partial<PostFields> {
  readonly id: number
  readonly slug?: string
  readonly tag_slugs?: readonly string[]
}

/** The change that replaces versions, and its author. */
export interface RevisionReason {
  readonly reason: (typeof REVISION_REASONS)[number]
  readonly editor: { readonly id: number | null; readonly name: string | null }
  /** Maximum number of versions that a post keeps. */
  readonly max: number
}

/** Keeps the current versions of locked posts before these changes, unless a change has no effect. */
export const keepRevisions = (
  changes: readonly PostChange[],
  { reason, editor, max }: RevisionReason,
): Query<unknown> =>
  sql.type(noRows)`
    select blog_revision_keep(${JSON.stringify(changes)}::jsonb, ${editor.id}::int, ${editor.name}::text, ${reason}, ${max}::int)`

export const REVISION_ORDER = { 'r.id': 'bigint' } as const

const REVISION_LIST_TEXT = buildListText('revisions', {
  table: 'blog_revision',
  row: 'r',
  parameters: 1,
  where: 'r.post_id = $1::bigint',
  order: REVISION_ORDER,
  direction: 'desc',
  item: 'blog_revision_json(r)',
})

/** The former versions of a post, the last first. Null if the post does not exist. */
export const readRevisions: ReadStatement<[post: number, ...page: PageValues]> = {
  name: 'blog_revisions',
  text: `select case when exists (select from blog_post where id = $1::bigint) then (${REVISION_LIST_TEXT}) end`,
}

/** One former version of a post, with its content. */
export const readRevision: ReadStatement<[post: number, revision: number]> = {
  name: 'blog_revision',
  text: `select left(blog_revision_json(r)::text, -1) || ',' || ltrim((select row_to_json(more) from (
      select r.excerpt, r.content, r.seo_title, r.seo_description, r.hero_image_url, r.tags::json as tags) more)::text, '{')
    from blog_revision r where r.post_id = $1::bigint and r.id = $2::bigint`,
}

const Version = z.object({
  title: z.string(),
  slug: z.string(),
  content: z.string(),
  excerpt: z.string().nullable(),
  seo_title: z.string().nullable(),
  seo_description: z.string().nullable(),
  hero_image_url: z.string().nullable(),
})
const StoredVersion = z.object({
  version: Version,
  tag_ids: z.array(z.number()),
  tag_slugs: z.array(z.string()),
})

/** Reads a former version to restore it, with those of its tags that still exist, which it locks. */
export const readVersion = (post: number, revision: number): Query<z.output<typeof StoredVersion>> =>
  sql.type(StoredVersion)`
    with found as (
      select * from blog_revision where post_id = ${post} and id = ${revision}
    ), tag as materialized (
      select id, slug from blog_tag
      where id = any(array(select (old ->> 'id')::bigint from found cross join json_array_elements(found.tags::json) old))
        and deleted_at is null
      order by id for key share
    )
    select json_build_object('title', title, 'slug', slug, 'content', content, 'excerpt', excerpt, 'seo_title', seo_title,
        'seo_description', seo_description, 'hero_image_url', hero_image_url) as version,
      (select coalesce(json_agg(id), '[]') from tag) as tag_ids,
      (select coalesce(json_agg(slug), '[]') from tag) as tag_slugs
    from found`
