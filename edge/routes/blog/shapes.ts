import { z } from 'zod'
import { POST_STATUSES } from '../../../sql/blog/posts.ts'
import { fail } from '../../../sql/errors.ts'
import { exceedsLength, LIMITS } from '../../../tasks/blog/limits.ts'
import { IMAGE_ADDRESS_RULE, isSafeImageAddress } from '../../../tasks/blog/public.ts'
import { PageFields } from '../../pipeline/request/lists.ts'
import { LongRowId, Timestamp } from '../../pipeline/request/schemas.ts'
import { type Answer, answerCompactJson } from '../../pipeline/route.ts'

/** Requests and responses of the blog routes. */

export const Tag = z
  .strictObject({ id: z.int(), name: z.string(), slug: z.string(), created_at: Timestamp })
  .meta({ id: 'BlogTagResponse' })
export const TagList = z
  .strictObject({ tags: z.array(Tag), ...PageFields })
  .meta({ id: 'BlogTagListResponse' })

export const Status = z.enum(POST_STATUSES)

export const Post = z
  .strictObject({
    id: z.int(),
    title: z.string(),
    slug: z.string(),
    excerpt: z.string().nullable(),
    content: z.string(),
    status: Status,
    author_id: z.int().nullable(),
    author_name: z.string().nullable(),
    created_at: Timestamp,
    updated_at: Timestamp,
    published_at: Timestamp.nullable(),
    seo_title: z.string().nullable(),
    seo_description: z.string().nullable(),
    hero_image_url: z.string().nullable(),
    tags: z.array(Tag),
  })
  .meta({ id: 'BlogPostResponse' })
export const PostList = z
  .strictObject({
    posts: z.array(
      Post.extend({
        snippet: z.string().optional().describe('Words around the first match; only with `search`'),
      }).meta({ id: 'BlogPostItem' }),
    ),
    ...PageFields,
  })
  .meta({ id: 'BlogPostListResponse' })

export const Exported = Post.omit({ id: true, author_id: true, tags: true })
  .extend({
    tag_slugs: z.array(z.string()),
    tags: z.array(z.strictObject({ name: z.string(), slug: z.string() })),
  })
  .meta({ id: 'ExportedPost' })

/** Returns the schema of a text of at most `max` characters. */
const boundedText = (max: number) =>
  z
    .string()
    .refine((given) => !exceedsLength(given, max), `must have at most ${max} characters`)
    .meta({ maxLength: max })
const requiredText = (max: number) => boundedText(max).trim().min(1)

/** Fields of a post that an editor sets, with their limits. */
export const POST_FIELDS = {
  title: requiredText(LIMITS.title),
  slug: requiredText(LIMITS.slug),
  content: boundedText(LIMITS.content),
  excerpt: boundedText(LIMITS.excerpt),
  tag_slugs: z.array(boundedText(LIMITS.tag_slug)).max(LIMITS.tags),
  seo_title: boundedText(LIMITS.seo_title),
  seo_description: boundedText(LIMITS.seo_description),
  hero_image_url: boundedText(LIMITS.hero_image_url)
    .refine(isSafeImageAddress, IMAGE_ADDRESS_RULE)
    .describe(`URL of a picture: ${IMAGE_ADDRESS_RULE}`),
}
export const TAG_FIELDS = { name: requiredText(LIMITS.tag_name), slug: requiredText(LIMITS.tag_slug) }

// Enough for a million characters, each an escaped surrogate pair of 12 bytes, plus the other fields.
export const BODY_BYTES = 16 * 1024 * 1024

/** Maximum and default number of posts on a page. */
export const PAGE_SIZES = { max: 100, fallback: 20 }
export const TagSlug = z.string().max(LIMITS.tag_slug)

/** Body of a redirect from a former slug. */
export const MovedPost = z.strictObject({ slug: z.string() }).meta({ id: 'MovedPost' })

// Both parameters are named `post`, because the API reference allows only one name for a path segment.
export const SlugParams = z.object({ post: z.string().max(LIMITS.slug).describe('Slug of the post') })
export const PostParams = z.object({ post: LongRowId })
export const TagParams = z.object({ tag_id: LongRowId })

/**
 * Answers with the JSON text of a post.
 * @throws fail('post.missing') if `text` is null.
 */
export function answerPost<T>(text: string | null): Answer<T> {
  if (text === null) throw fail('post.missing')
  return answerCompactJson<T>(text)
}
