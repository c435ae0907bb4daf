import { fail } from '../../../sql/errors.ts'
import type { JobCallback } from '../../../sql/webhooks/webhooks.ts'
import { validateWebhookUrl, webhookHostOf } from '../../../tasks/webhooks/url.ts'
import type { AdmittedRequest } from '../request/admitted-request.ts'
import { failInvalidField } from '../request/input.ts'

/**
 * Parses `?callback_url=`; null if it is absent. Throws request.invalid for a URL that webhooks may not call, or
 * without background=true. Throws webhook.no_account if the caller has no account.
 */
export function parseCallback(
  { edge, exchange }: Pick<AdmittedRequest, 'edge' | 'exchange'>,
  isBackground: boolean,
): JobCallback | null {
  const { caller, request } = exchange
  const url = request.query === '' ? null : new URLSearchParams(request.query).get('callback_url')
  if (url === null) return null
  if (!isBackground) throw failInvalidField('query', 'callback_url', 'needs background=true', 'custom')
  const problem = validateWebhookUrl(url, edge.settings.webhooks)
  if (problem !== null) throw failInvalidField('query', 'callback_url', problem, 'custom')
  if (caller === null || caller.ownerId === null) throw fail('webhook.no_account')
  return { accountId: caller.ownerId, url, host: webhookHostOf(url), keyId: caller.key?.id ?? null }
}
