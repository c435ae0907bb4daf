import { hostOf, isAllowedHost } from '../platform/addresses.ts'

export interface WebhookAddresses {
  /** CIDR ranges of private addresses that webhooks may reach; any entry also permits http. */
  readonly allowed: readonly string[]
}

/** Returns the normalized host of a webhook URL, which is the key of its rate limit. */
export const webhookHostOf = (url: string): string => new URL(url).hostname.replace(/\.$/, '')

/**
 * Returns the reason why a URL is not allowed for webhooks, or null if it is allowed. Only the text is checked here.
 * Each connection checks the resolved address.
 */
export function validateWebhookUrl(text: string, { allowed }: WebhookAddresses): string | null {
  if (text.length > 2000 || !URL.canParse(text)) return 'must be a URL of at most 2000 characters'
  const url = new URL(text)
  if (url.protocol !== 'https:' && (url.protocol !== 'http:' || allowed.length === 0))
    return 'must begin with https://'
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password'
  return isAllowedHost(hostOf(url), allowed) ? null : 'must not be a private address'
}
