import { hostOf, isAllowedHost } from '../addresses.ts'

/** The addresses that webhooks may reach. */
export interface WebhookAddresses {
  /** CIDR ranges of private addresses that webhooks may reach; any entry also permits http. */
  readonly allowed: readonly string[]
}

/** Returns the normalized host of a webhook's URL, the key for its rate limits: one host has one name. */
export const webhookHost = (url: string): string => new URL(url).hostname.replace(/\.$/, '')

/**
 * Returns the reason why a URL is not allowed for webhooks; null if it is allowed. It checks only the text; each
 * connection checks the address that the name resolves to.
 */
export function validateWebhookUrl(text: string, { allowed }: WebhookAddresses): string | null {
  if (text.length > 2000 || !URL.canParse(text)) return 'must be a URL of at most 2000 characters'
  const url = new URL(text)
  if (url.protocol !== 'https:' && (url.protocol !== 'http:' || allowed.length === 0))
    return 'must begin with https://'
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password'
  return isAllowedHost(hostOf(url), allowed) ? null : 'must not be a private address'
}
