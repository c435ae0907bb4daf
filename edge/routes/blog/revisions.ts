import { z } from 'zod'
import { lockPost, readPost, setTags, updatePost } from '../../../sql/blog/posts.ts'
import {
  keepRevisions,
  REVISION_ORDER,
  REVISION_REASONS,
  readRevision,
  readRevisions,
  readVersion,
} from '../../../sql/blog/revisions.ts'
import { storePostWords } from '../../../sql/blog/search.ts'
import { fail } from '../../../sql/errors.ts'
import { buildPageQueryFields, buildPageValues, PageFields } from '../../pipeline/request/lists.ts'
import { LongRowId, Timestamp } from '../../pipeline/request/schemas.ts'
import { answerCompactJson, answerJson, route } from '../../pipeline/route.ts'
import { toEditor } from './editor.ts'
import { answerPost, PAGE_SIZES, Post, PostParams } from './shapes.ts'

/** Routes for the former versions of posts. */

const { id, title, slug, updated_at, author_id, author_name, ...fields } = Post.shape
const { excerpt, content, seo_title, seo_description, hero_image_url, tags } = fields

const RevisionItem = z.strictObject({
  ...{ id, title, slug },
  updated_at: updated_at.describe('Time at which this version was written'),
  replaced_at: Timestamp.describe('Time at which a change replaced it'),
  replaced_by: z.enum(REVISION_REASONS).describe('The kind of that change'),
  editor_id: author_id.describe('The account that made that change; null without one'),
  editor_name: author_name,
})
const Revision = RevisionItem.extend({
  excerpt,
  content,
  seo_title,
  seo_description,
  hero_image_url,
  tags,
}).meta({
  id: 'BlogRevision',
})
const RevisionList = z
  .strictObject({ revisions: z.array(RevisionItem.meta({ id: 'BlogRevisionItem' })), ...PageFields })
  .meta({ id: 'BlogRevisionList' })

const RevisionParams = PostParams.extend({ revision: LongRowId })

export const revisionRoutes = [
  route({
    method: 'get',
    path: '/posts/:post/revisions',
    summary: 'List the former versions of a post, the last first',
    description: 'Each change of a post keeps the version that it replaces, up to `BLOG_MAX_REVISIONS`.',
    auth: 'editor',
    params: PostParams,
    query: z.object(buildPageQueryFields(REVISION_ORDER, PAGE_SIZES)),
    response: RevisionList,
    errors: ['post.missing'],
    reads: 'list',
    handle: async ({ params, query, reader }) =>
      answerPost(await reader.text(readRevisions, [params.post, ...buildPageValues(query)])),
  }),

  route({
    method: 'get',
    path: '/posts/:post/revisions/:revision',
    summary: 'Get a former version of a post',
    auth: 'editor',
    params: RevisionParams,
    response: Revision,
    errors: ['revision.missing'],
    handle: async ({ params, edge }) => {
      const text = await edge.reader.text(readRevision, [params.post, params.revision])
      if (text === null) throw fail('revision.missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'post',
    path: '/posts/:post/revisions/:revision/restore',
    summary: 'Restore a former version of a post',
    description: `Restores the texts, the slug, the image and those tags that still exist; status and dates stay. The version \
that it replaces becomes a revision.`,
    auth: 'editor',
    params: RevisionParams,
    response: Post,
    errors: ['post.missing', 'revision.missing', 'post.slug_taken'],
    sideEffect: true,
    handle: ({ params: { post, revision }, caller, edge, transaction }) =>
      transaction(async (tx) => {
        if ((await tx.maybeOne(lockPost(post))) === null) throw fail('post.missing')
        const stored = await tx.maybeOne(readVersion(post, revision))
        if (stored === null) throw fail('revision.missing')
        const { version, tag_ids: tagIds, tag_slugs } = stored
        const { maxRevisions: max } = edge.settings.blog
        const change = { id: post, ...version, tag_slugs }
        await tx.run(keepRevisions([change], { reason: 'restore', editor: toEditor(caller), max }))
        await tx.maybeOne(updatePost(post, version))
        await tx.run(setTags(post, tagIds))
        await tx.run(storePostWords([post]))
        return answerCompactJson((await tx.one(readPost(post))).json)
      }),
  }),
]
