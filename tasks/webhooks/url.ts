import { hostOf, mayBeReached } from '../addresses.ts'

/** Which addresses webhooks may reach. */
export interface WebhookAddresses {
  /** CIDR ranges of private addresses that may be reached all the same; then http is allowed, too. */
  readonly allowed: readonly string[]
}

/** The host of a webhook's URL as URLs are parsed, by which deliveries are counted: one host has one name. */
export const webhookHost = (url: string): string => new URL(url).hostname.replace(/\.$/, '')

/**
 * Why a URL can't be that of a webhook; null: it can, as far as its text says. What its name resolves to is checked whenever it
 * is connected to.
 */
export function webhookUrlProblem(text: string, { allowed }: WebhookAddresses): string | null {
  if (text.length > 2000 || !URL.canParse(text)) return 'must be a URL of at most 2000 characters'
  const url = new URL(text)
  if (url.protocol !== 'https:' && (url.protocol !== 'http:' || allowed.length === 0))
    return 'must begin with https://'
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password'
  return mayBeReached(hostOf(url), allowed) ? null : 'must not be a private address'
}
