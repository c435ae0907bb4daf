import { z } from 'zod'
import { countField } from '../platform/settings/fields.ts'

export interface BlogSettings {
  /** Title of the feeds. */
  readonly title: string
  /** Address of a post for readers, with `{slug}`; null: that of this API. */
  readonly postUrl: string | null
  /** Maximum number of former versions that a post keeps. */
  readonly maxRevisions: number
}

export const blogShape = {
  BLOG_TITLE: z.string().trim().min(1).max(200).optional(),
  BLOG_POST_URL: z
    .url({ protocol: /^https?$/ })
    .refine((url) => url.includes('{slug}'), 'must contain {slug}')
    .optional(),
  BLOG_MAX_REVISIONS: countField(100, 1, 10_000),
}

type Env = z.output<z.ZodObject<typeof blogShape>>

export const buildBlogSettings = (env: Env & { readonly PROJECT_NAME: string }): BlogSettings => ({
  title: env.BLOG_TITLE ?? env.PROJECT_NAME,
  postUrl: env.BLOG_POST_URL ?? null,
  maxRevisions: env.BLOG_MAX_REVISIONS,
})
