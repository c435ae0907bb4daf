import { createHmac, timingSafeEqual } from 'node:crypto'
import { mac } from '../accounts/tokens.ts'

/** Secrets and signatures of webhooks (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec). */

const PREFIX = 'whsec_'

/** A secret of an endpoint: derived from the deployment's key, so that it can be shown again and is not stored. */
export function webhookSecretOf(secretKey: string, endpoint: number, version: number): string {
  return PREFIX + mac(secretKey, 'millrace.webhook', String(endpoint), String(version)).toString('base64')
}

/** The token that a receiver echoes to prove that an endpoint is meant for it. */
export function challengeTokenOf(secretKey: string, endpoint: number, url: string): string {
  return mac(secretKey, 'millrace.webhook-challenge', String(endpoint), url).toString('base64url')
}

/** What is signed: the id and the time (seconds since the epoch) as they are sent, and the body. */
export interface Signed {
  readonly id: string
  readonly timestamp: number
  readonly body: string
}

/** The headers of a message, with a signature by each of the secrets. */
export function webhookHeaders(
  { id, timestamp, body }: Signed,
  secrets: readonly string[],
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const signatures = secrets.map(
    (secret) => `v1,${digestOf(secret, id, String(timestamp), body).toString('base64')}`,
  )
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  }
}

/** What came with a message, as its headers have it. */
export interface Signatures {
  readonly id: string
  readonly timestamp: string
  /** One by each secret of the sender, which has two while it replaces one. */
  readonly signature: string
}

// How far the time of a signature may be from ours: an intercepted message cannot be replayed after that.
const TOLERANCE_SECONDS = 300

/**
 * Whether the owner of a secret has recently signed these very bytes; one right signature suffices.
 * @param now ms since 1970.
 */
export function isSigned(
  { id, timestamp, signature }: Signatures,
  body: Uint8Array,
  secret: string,
  now: number,
): boolean {
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > TOLERANCE_SECONDS)
    return false
  const right = digestOf(secret, id, timestamp, body)
  return signature.split(' ').some((one) => {
    const [version, text = ''] = one.split(',')
    const given = Buffer.from(text, 'base64')
    return version === 'v1' && given.length === right.length && timingSafeEqual(given, right)
  })
}

function digestOf(secret: string, id: string, timestamp: string, body: string | Uint8Array): Buffer {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
}
