import { z } from 'zod'
import { applyTagChange, hideTag, insertTag, RETAG_BATCH_SIZE, updateTag } from '../../../sql/blog/posts.ts'
import type { Queries } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { LIMITS } from '../../../tasks/blog/limits.ts'
import { retagPosts } from '../../../tasks/blog/retag.task.ts'
import { slugify, slugifyTag } from '../../../tasks/blog/slugs.ts'
import { enqueue } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { failInvalidField } from '../../pipeline/request/input.ts'
import { answerJson, type Input, route } from '../../pipeline/route.ts'
import { TAG_FIELDS, Tag, TagParams } from './shapes.ts'

/** Routes that change tags. */
export const tagRoutes = [
  route({
    method: 'post',
    path: '/tags',
    summary: 'Create a tag',
    auth: 'editor',
    body: z
      .strictObject({ name: TAG_FIELDS.name, slug: TAG_FIELDS.slug.nullish() })
      .meta({ id: 'BlogTagCreate' }),
    response: Tag,
    status: 201,
    errors: ['tag.name_taken', 'tag.slug_taken'],
    sideEffect: true,
    handle: ({ body: { name, slug }, transaction }) => {
      const tag = insertTag(name, slug ? normalizeSlug(slug) : slugifyTag(name))
      return transaction(async (tx) => answerJson((await tx.one(tag)).json))
    },
  }),

  route({
    method: 'put',
    path: '/tags/:tag_id',
    summary: 'Update a tag',
    description: `null or absent fields stay unchanged. The first ${RETAG_BATCH_SIZE} posts of the tag show the change \
immediately; a job updates the others.`,
    auth: 'editor',
    params: TagParams,
    body: z
      .strictObject({ name: TAG_FIELDS.name.nullish(), slug: TAG_FIELDS.slug.nullish() })
      .meta({ id: 'BlogTagUpdate' }),
    response: Tag,
    errors: ['tag.missing', 'tag.name_taken', 'tag.slug_taken'],
    handle: (input) => {
      const { name, slug } = input.body
      const change = updateTag(input.params.tag_id, name ?? null, slug ? normalizeSlug(slug) : null)
      return input.transaction(async (tx) => {
        const changed = await tx.maybeOne(change)
        if (changed === null) throw fail('tag.missing')
        await updatePosts(tx, input)
        return answerJson(changed.json)
      })
    },
  }),

  route({
    method: 'delete',
    path: '/tags/:tag_id',
    summary: 'Delete a tag',
    description: `Removes the tag from its first ${RETAG_BATCH_SIZE} posts immediately; a job removes it from the others.`,
    auth: 'editor',
    params: TagParams,
    errors: ['tag.missing'],
    handle: (input) =>
      input.transaction(async (tx) => {
        if ((await tx.run(hideTag(input.params.tag_id))) === 0) throw fail('tag.missing')
        await updatePosts(tx, input)
        return undefined
      }),
  }),
]

/** Applies the change of a tag to its first posts, and enqueues a job for the others, if any. */
async function updatePosts(
  tx: Queries,
  { params, edge, requestId }: Input<z.output<typeof TagParams>, unknown, unknown, Caller>,
): Promise<void> {
  const { count } = await tx.one(applyTagChange(params.tag_id, RETAG_BATCH_SIZE))
  if (count < RETAG_BATCH_SIZE) return
  await enqueue(tx, retagPosts, {}, { ownerId: null, requestId, settings: edge.settings })
}

function normalizeSlug(given: string): string {
  const slug = slugify(given)
  if (slug === '') throw failInvalidField('body', 'slug', 'must have a letter or a digit', 'invalid_format')
  if (slug.length > LIMITS.tag_slug)
    throw failInvalidField(
      'body',
      'slug',
      `must have at most ${LIMITS.tag_slug} characters in ASCII`,
      'too_big',
    )
  return slug
}
