import { z } from 'zod'
import { deletePreviews, insertPreview, readPreviewedPost } from '../../../sql/blog/previews.ts'
import { fail } from '../../../sql/errors.ts'
import { previewTokenOf, verifyPreviewToken } from '../../../tasks/blog/previews.ts'
import type { Edge } from '../../pipeline/context.ts'
import { Timestamp } from '../../pipeline/request/schemas.ts'
import { answerCompactJson, route } from '../../pipeline/route.ts'
import { Post, PostParams } from './shapes.ts'

/** Routes for links that show a post to people without an account, such as a draft to its reviewers. */

const DAY_SECONDS = 86_400
const DEFAULT_DAYS = 7
const MAX_DAYS = 90

const NewPreview = z
  .strictObject({
    expires_in_seconds: z
      .int()
      .min(60)
      .max(MAX_DAYS * DAY_SECONDS)
      .optional()
      .describe(`Lifetime of the link; default: ${DEFAULT_DAYS} days`),
  })
  .meta({ id: 'BlogPreviewCreate' })
const Preview = z
  .strictObject({ url: z.url(), token: z.string(), expires_at: Timestamp })
  .meta({ id: 'BlogPreview' })

export const previewRoutes = [
  route({
    method: 'post',
    path: '/posts/:post/preview',
    summary: 'Create a link that shows a post to anybody',
    description: `The link shows the current version of the post, whatever its status, until it expires or the links of the post \
are revoked. A post has at most 100 links.`,
    auth: 'editor',
    params: PostParams,
    body: NewPreview.optional(),
    response: Preview,
    status: 201,
    errors: ['post.missing'],
    sideEffect: true,
    hasCredentials: true,
    addUnstored: addToken,
    handle: ({ params, body, transaction }) =>
      transaction(async (tx) => {
        const seconds = body?.expires_in_seconds ?? DEFAULT_DAYS * DAY_SECONDS
        const made = await tx.maybeOne(insertPreview(params.post, seconds))
        if (made === null) throw fail('post.missing')
        return answerCompactJson(JSON.stringify(made))
      }),
  }),

  route({
    method: 'delete',
    path: '/posts/:post/preview',
    summary: 'Revoke all preview links of a post',
    auth: 'editor',
    params: PostParams,
    errors: ['post.missing'],
    handle: ({ params, transaction }) =>
      transaction(async (tx) => {
        if ((await tx.maybeOne(deletePreviews(params.post))) === null) throw fail('post.missing')
        return undefined
      }),
  }),

  route({
    method: 'get',
    path: '/preview/:token',
    summary: 'Get the post of a preview link',
    auth: 'public',
    params: z.object({ token: z.string().max(100) }),
    response: Post,
    errors: ['preview.expired'],
    hasCredentials: true,
    hasSecretPath: true,
    handle: async ({ params, edge }) => {
      const id = verifyPreviewToken(edge.keys, params.token)
      const text = id === null ? null : await edge.reader.text(readPreviewedPost, [id])
      if (text === null) throw fail('preview.expired')
      return answerCompactJson(text, { headers: [['x-robots-tag', 'noindex']] })
    },
  }),
]

function addToken({ keys, settings }: Edge, text: string): string {
  const { id, expires_at } = JSON.parse(text) as { id: number; expires_at: string }
  const token = previewTokenOf(keys, id)
  return JSON.stringify({ url: `${settings.publicBaseUrl}/api/v1/blog/preview/${token}`, token, expires_at })
}
