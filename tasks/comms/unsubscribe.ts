import { z } from 'zod'
import { SEND_STREAMS } from '../../sql/comms/sends.ts'
import type { SecretKeys } from '../platform/keys.ts'

/**
 * Unsubscribe links of emails, which work with one click (RFC 8058). The token holds all that the link needs, because
 * links outlive the ledger's rows. Its MAC is under the stored key, because links also outlive SECRET_KEY. It names one recipient, so an email with a link has one.
 */

/** Path of the page and of the request that unsubscribes. */
export const UNSUBSCRIBE_PATH = '/unsubscribe'

/** The headers that only the service sets in an email with a link. */
export const UNSUBSCRIBE_HEADERS = ['list-unsubscribe', 'list-unsubscribe-post'] as const

const Subscription = z.strictObject({
  sendId: z.uuid(),
  stream: z.enum(SEND_STREAMS),
  address: z.string(),
})
/** A recipient's subscription to a stream, with the email whose link ends it. */
export type Subscription = z.output<typeof Subscription>

const PURPOSE = 'millrace.unsubscribe'

export function unsubscribeTokenOf(keys: SecretKeys, { sendId, stream, address }: Subscription): string {
  const text = Buffer.from(JSON.stringify({ sendId, stream, address })).toString('base64url')
  return `${text}.${keys.stored.token(PURPOSE, text)}`
}

/** Returns the subscription that a token names; null if this deployment has not issued the token. */
export function readUnsubscribeToken(keys: SecretKeys, token: string): Subscription | null {
  const [, text, mac] = /^([\w-]{1,1000})\.([\w-]{43})$/.exec(token) ?? []
  if (text === undefined || !keys.stored.verify(mac!, PURPOSE, text)) return null
  return Subscription.parse(JSON.parse(Buffer.from(text, 'base64url').toString()))
}

/** Returns the headers by which mail clients offer to unsubscribe. */
export function buildUnsubscribeHeaders(
  publicBaseUrl: string,
  keys: SecretKeys,
  subscription: Subscription,
): Readonly<Record<string, string>> {
  const token = unsubscribeTokenOf(keys, subscription)
  return {
    'List-Unsubscribe': `<${publicBaseUrl}${UNSUBSCRIBE_PATH}?token=${token}>`,
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  }
}
