import { z } from 'zod'
import {
  deletePost,
  insertPost,
  lockPost,
  lockTagsBySlug,
  type NewPost,
  readPost,
  setTags,
  updatePost,
} from '../../../sql/blog/posts.ts'
import { announcePosts, archivePost, publishPost } from '../../../sql/blog/publishing.ts'
import { keepRevisions } from '../../../sql/blog/revisions.ts'
import { storePostWords } from '../../../sql/blog/search.ts'
import type { Queries } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { enqueueAnnouncement } from '../../../tasks/blog/announcement.ts'
import { LIMITS } from '../../../tasks/blog/limits.ts'
import { slugify, slugifyTitle } from '../../../tasks/blog/slugs.ts'
import { failInvalidField } from '../../pipeline/request/input.ts'
import { Moment } from '../../pipeline/request/schemas.ts'
import { type Answer, answerCompactJson, route } from '../../pipeline/route.ts'
import { toEditor } from './editor.ts'
import { BODY_BYTES, POST_FIELDS, Post, PostParams } from './shapes.ts'

type PostAnswer = Answer<z.input<typeof Post>>

const NewPostBody = z
  .strictObject({
    title: POST_FIELDS.title,
    slug: POST_FIELDS.slug.nullish(),
    content: POST_FIELDS.content.nullish(),
    excerpt: POST_FIELDS.excerpt.nullish(),
    tag_slugs: POST_FIELDS.tag_slugs.nullish(),
    seo_title: POST_FIELDS.seo_title.nullish(),
    seo_description: POST_FIELDS.seo_description.nullish(),
    hero_image_url: POST_FIELDS.hero_image_url.nullish(),
  })
  .meta({ id: 'BlogPostCreate' })
const Changes = NewPostBody.extend({ title: POST_FIELDS.title.nullish() }).meta({ id: 'BlogPostUpdate' })

// With an offset, the first and the last of PostgreSQL's years may be outside of JSON's.
const PublicationTime = Moment.refine(
  (text) => !/^(0001|9999)/.test(text),
  'must be in the years 2 to 9998',
).meta({
  format: 'date-time',
})
const Publication = z
  .strictObject({ published_at: PublicationTime.optional().describe('Default: now') })
  .meta({ id: 'BlogPublication' })

const SLUG_RULE = 'A slug in any script is converted to lower-case ASCII letters, digits and hyphens.'

/** Routes that change posts. */
export const postRoutes = [
  route({
    method: 'post',
    path: '/posts',
    summary: 'Create a draft post',
    description: `${SLUG_RULE} If omitted, it is derived from the title. A slug in use is refused in both cases.`,
    auth: 'editor',
    body: NewPostBody,
    bodyBytes: BODY_BYTES,
    response: Post,
    status: 201,
    errors: ['post.slug_taken'],
    sideEffect: true,
    handle: async ({ body, caller, transaction }) => {
      const author = toEditor(caller)
      const { title, slug, tag_slugs: tags, ...rest } = body
      const draft = {
        title,
        content: rest.content ?? '',
        excerpt: rest.excerpt ?? null,
        seo_title: rest.seo_title ?? null,
        seo_description: rest.seo_description ?? null,
        hero_image_url: rest.hero_image_url ?? null,
        authorId: author.id,
        authorName: author.name,
      }
      return transaction(async (tx) => {
        const tagIds = tags ? await findTagIds(tx, tags) : []
        const id = await insertDraft(tx, slug ? normalizeSlug(slug) : slugifyTitle(title), draft)
        if (tagIds.length > 0) await tx.run(setTags(id, tagIds))
        await tx.run(storePostWords([id]))
        return answerStored(tx, id)
      })
    },
  }),

  route({
    method: 'put',
    path: '/posts/:post',
    summary: 'Update a post',
    description: `Changes only the given fields. null clears an excerpt, SEO text or hero image, and leaves any other \
field unchanged. \`tag_slugs\` replaces all tags. ${SLUG_RULE} Changing the slug of a published post changes its public \
URL. The post keeps the version that it replaces as a revision.`,
    auth: 'editor',
    params: PostParams,
    body: Changes,
    bodyBytes: BODY_BYTES,
    response: Post,
    errors: ['post.missing', 'post.slug_taken'],
    handle: async ({
      params: { post: id },
      body: { tag_slugs: tags, slug, ...rest },
      caller,
      edge,
      transaction,
    }) => {
      const changes = { ...dropUnchangedFields(rest), ...(slug ? { slug: normalizeSlug(slug) } : {}) }
      return transaction(async (tx) => {
        const tagIds = tags ? await findTagIds(tx, tags) : null
        if ((await tx.maybeOne(lockPost(id))) === null) throw fail('post.missing')
        const change = { id, ...changes, ...(tags ? { tag_slugs: tags } : {}) }
        const { maxRevisions: max } = edge.settings.blog
        await tx.run(keepRevisions([change], { reason: 'update', editor: toEditor(caller), max }))
        if (Object.keys(changes).length > 0 || tagIds !== null) await tx.maybeOne(updatePost(id, changes))
        if (tagIds !== null) await tx.run(setTags(id, tagIds))
        await tx.run(storePostWords([id]))
        return answerStored(tx, id)
      })
    },
  }),

  route({
    method: 'post',
    path: '/posts/:post/publish',
    summary: 'Publish a post',
    description: `Publishes the post now, or at \`published_at\`. A time to come schedules the post: it becomes public then, \
and until then another call reschedules it or publishes it now. Once the post has been public, \`published_at\` never changes.`,
    auth: 'editor',
    params: PostParams,
    body: Publication.optional(),
    response: Post,
    errors: ['post.missing', 'post.published'],
    sideEffect: true,
    handle: ({ params: { post: id }, body, transaction, edge, requestId }) =>
      transaction(async (tx) => {
        const { outcome } = await tx.one(publishPost(id, body?.published_at ?? null))
        if (outcome === 'missing') throw fail('post.missing')
        if (outcome === 'fixed') throw fail('post.published')
        const answer = await answerStored(tx, id)
        if (outcome === 'scheduled') await enqueueAnnouncement(tx, edge.settings, requestId)
        return answer
      }),
  }),

  route({
    method: 'post',
    path: '/posts/:post/archive',
    summary: 'Archive a post',
    description:
      'Hides the post from the public until it is published again. A scheduled post loses its `published_at`.',
    auth: 'editor',
    params: PostParams,
    response: Post,
    errors: ['post.missing'],
    sideEffect: true,
    handle: ({ params: { post: id }, transaction }) =>
      transaction(async (tx) => {
        if (!(await tx.one(archivePost(id))).found) throw fail('post.missing')
        return answerStored(tx, id)
      }),
  }),

  route({
    method: 'delete',
    path: '/posts/:post',
    summary: 'Delete a post',
    auth: 'editor',
    params: PostParams,
    errors: ['post.missing'],
    handle: ({ params, transaction }) =>
      transaction(async (tx) => {
        await tx.one(announcePosts([params.post]))
        if ((await tx.run(deletePost(params.post))) === 0) throw fail('post.missing')
        return undefined
      }),
  }),
]

async function answerStored(tx: Queries, id: number): Promise<PostAnswer> {
  return answerCompactJson((await tx.one(readPost(id))).json)
}

/** Converts a slug to its stored form. @throws fail('request.invalid') */
function normalizeSlug(given: string): string {
  const slug = slugify(given)
  if (slug === '') throw failInvalidField('body', 'slug', 'must have a letter or a digit', 'invalid_format')
  if (slug.length > LIMITS.slug)
    throw failInvalidField('body', 'slug', `must have at most ${LIMITS.slug} characters in ASCII`, 'too_big')
  return slug
}

/** Finds the ids of tags. @throws fail('request.invalid') if one does not exist. */
async function findTagIds(tx: Queries, slugs: readonly string[]): Promise<number[]> {
  const tags = await tx.any(lockTagsBySlug(slugs))
  const unknown = slugs.filter((slug) => !tags.some((tag) => tag.slug === slug))
  if (unknown.length > 0) {
    const named = unknown.slice(0, 10).map((slug) => JSON.stringify(slug))
    throw failInvalidField('body', 'tag_slugs', `no such tags: ${named.join(', ')}`, 'invalid_value')
  }
  return tags.map(({ id }) => id)
}

async function insertDraft(tx: Queries, slug: string, draft: Omit<NewPost, 'slug'>): Promise<number> {
  const made = await tx.maybeOne(insertPost({ ...draft, slug }))
  if (made === null) throw fail('post.slug_taken')
  return made.id
}

/** Drops absent fields, and fields for which null means unchanged. */
function dropUnchangedFields(changes: Omit<z.output<typeof Changes>, 'tag_slugs' | 'slug'>) {
  const kept = Object.entries(changes).filter(
    ([name, value]) => value !== undefined && !(value === null && (name === 'title' || name === 'content')),
  )
  return Object.fromEntries(kept) as Parameters<typeof updatePost>[1]
}
