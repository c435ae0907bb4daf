import { z } from 'zod'

/** Links of account emails to a front end of the operator's own. */

const MAX_LENGTH = 2000

/** Payload fields of tasks that email a link. */
export const linkFields = {
  /** Page that receives the token; without it, the link leads to this service's own page. */
  redirect_to: z.string().optional(),
}

/** The page that a request names for the link of its email. */
export const RedirectTo = z
  .string()
  .max(MAX_LENGTH)
  .optional()
  .meta({
    description:
      'Page for the link of the email, of the origin of `PUBLIC_BASE_URL` or of one in `CORS_ORIGINS`. It gets the query parameter `token`. Default: a page of this service',
    examples: ['https://app.example.com/confirm'],
  })
