import { z } from 'zod'
import { deleteTag, insertTag, updateTag } from '../../../sql/blog.ts'
import { fail } from '../../../sql/errors.ts'
import { LIMITS } from '../../../tasks/blog/limits.ts'
import { slugify, slugOfTag } from '../../../tasks/blog/slugs.ts'
import { invalid } from '../../pipeline/input.ts'
import { json, route } from '../../pipeline/route.ts'
import { TAG_FIELDS, Tag, TagParams } from './shapes.ts'

/** Editing tags. */
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
      const tag = insertTag(name, slug ? normalized(slug) : slugOfTag(name))
      return transaction(async (tx) => json((await tx.one(tag)).json))
    },
  }),

  route({
    method: 'put',
    path: '/tags/:tag_id',
    summary: 'Update a tag; null or absent fields stay unchanged',
    auth: 'editor',
    params: TagParams,
    body: z
      .strictObject({ name: TAG_FIELDS.name.nullish(), slug: TAG_FIELDS.slug.nullish() })
      .meta({ id: 'BlogTagUpdate' }),
    response: Tag,
    errors: ['tag.missing', 'tag.name_taken', 'tag.slug_taken'],
    handle: ({ params, body: { name, slug }, transaction }) => {
      const change = updateTag(params.tag_id, name ?? null, slug ? normalized(slug) : null)
      return transaction(async (tx) => {
        const changed = await tx.maybeOne(change)
        if (changed === null) throw fail('tag.missing')
        return json(changed.json)
      })
    },
  }),

  route({
    method: 'delete',
    path: '/tags/:tag_id',
    summary: 'Delete a tag and remove it from all posts',
    auth: 'editor',
    params: TagParams,
    errors: ['tag.missing'],
    handle: ({ params, transaction }) =>
      transaction(async (tx) => {
        if ((await tx.run(deleteTag(params.tag_id))) === 0) throw fail('tag.missing')
        return undefined
      }),
  }),
]

function normalized(given: string): string {
  const slug = slugify(given)
  if (slug === '') throw invalid('body', 'slug', 'must have a letter or a digit', 'invalid_format')
  if (slug.length > LIMITS.tag_slug)
    throw invalid('body', 'slug', `must have at most ${LIMITS.tag_slug} characters in ASCII`, 'too_big')
  return slug
}
