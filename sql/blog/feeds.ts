import type { ReadStatement } from '../reads/reader.ts'
import { isPublic, TAG_CONDITION } from './posts.ts'

/** Reads what feeds and sitemaps show. */

/** Number of posts in a feed. */
export const FEED_POSTS = 20
/** Maximum length of a content in a feed, in characters. Longer posts show only their excerpt. */
const MAX_FEED_CONTENT = 30_000
/** Maximum number of addresses in a sitemap (https://www.sitemaps.org/protocol.html). */
const MAX_SITEMAP_POSTS = 50_000

const buildFeedText = (rows: string): string => `
  select concat('[', string_agg(item, ',' order by published_at desc, id desc), ']') from (
    select p.published_at, p.id, (select row_to_json(post) from (
      select p.id, p.title, p.slug, p.excerpt, case when length(p.content) <= ${MAX_FEED_CONTENT} then p.content end as content,
        p.author_name, iso(p.published_at) as published_at, iso(greatest(p.updated_at, p.published_at)) as changed_at,
        p.hero_image_url, p.tags::json as tags) post)::text as item
    from ${rows} limit ${FEED_POSTS}) newest`

/** The newest public posts, as a JSON list. */
export const readFeed: ReadStatement<[]> = {
  name: 'blog_feed',
  text: buildFeedText(`blog_post p where ${isPublic('p')} order by p.published_at desc, p.id desc`),
}

/** The newest public posts with a tag, as a JSON list. */
export const readTaggedFeed: ReadStatement<[tagSlug: string]> = {
  name: 'blog_feed_tagged',
  text: buildFeedText(`blog_post_tag pt join blog_post p on p.id = pt.post_id
    where ${TAG_CONDITION} and ${isPublic('pt')} order by pt.published_at desc, pt.post_id desc`),
}

/** The newest public posts, one line each: the slug, a space, and the time of the last change. */
export const readSitemap: ReadStatement<[]> = {
  name: 'blog_sitemap',
  text: `
    select string_agg(slug || ' ' || changed_at, E'\\n' order by published_at desc, id desc) from (
      select slug, iso(greatest(updated_at, published_at)) as changed_at, published_at, id from blog_post p
      where ${isPublic('p')} order by published_at desc, id desc limit ${MAX_SITEMAP_POSTS}) newest`,
}
