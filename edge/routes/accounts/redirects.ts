import { isAllowedRedirect } from '../../../tasks/platform/addresses.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { failInvalidField } from '../../pipeline/request/input.ts'

/**
 * Returns the payload field for the page that a request names. Call it before any look-up of the address.
 * @throws request.invalid if its origin is not allowed.
 */
export function resolveRedirect(
  { settings }: { readonly settings: Settings },
  { redirect_to }: { readonly redirect_to?: string | undefined },
): { readonly redirect_to?: string } {
  if (redirect_to === undefined) return {}
  if (!isAllowedRedirect(settings, redirect_to))
    throw failInvalidField(
      'body',
      'redirect_to',
      'must be a URL of the origin of PUBLIC_BASE_URL or of one in CORS_ORIGINS',
      'custom',
    )
  return { redirect_to }
}
