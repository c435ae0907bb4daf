import { z } from 'zod'
import type { Settings } from '../platform/settings/settings.ts'

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

/** True if a link may lead to this page. Compares whole origins, so a token never reaches another site. */
export function isAllowedRedirect(
  { publicBaseUrl, corsOrigins }: Pick<Settings, 'publicBaseUrl' | 'corsOrigins'>,
  redirectTo: string,
): boolean {
  if (!/^https?:\/\//i.test(redirectTo) || !URL.canParse(redirectTo)) return false
  const { origin, username, password } = new URL(redirectTo)
  if (username !== '' || password !== '') return false
  return origin === new URL(publicBaseUrl).origin || corsOrigins.has(origin)
}
