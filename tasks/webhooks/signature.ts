import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** Secrets and signatures of webhooks (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec). */

const SECRET_PREFIX = 'whsec_'

/** Returns a new secret of an endpoint (256 bits). */
export const createWebhookSecret = (): string => SECRET_PREFIX + randomBytes(32).toString('base64')

/** Use under which the secrets of an account's endpoints are sealed; null for those of the service. */
export const webhookSealUseOf = (accountId: number | null): string => `webhook:${accountId ?? 0}`

/** A message to sign. `timestamp` is in seconds since the epoch. */
export interface SignedMessage {
  readonly id: string
  readonly timestamp: number
  readonly body: string
}

/** Creates the headers of a message, with one signature per secret. */
export function signWebhook(
  { id, timestamp, body }: SignedMessage,
  secrets: readonly string[],
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const signatures = secrets.map(
    (secret) => `v1,${computeDigest(secret, id, String(timestamp), body).toString('base64')}`,
  )
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  }
}

/** Signature headers of a received message. */
export interface SignatureHeaders {
  readonly id: string
  readonly timestamp: string
  /** Signatures separated by spaces, one per secret. The sender uses two secrets during a rotation. */
  readonly signature: string
}

// Maximum difference between the signature's time and the current time. It limits replays of intercepted messages.
const TOLERANCE_SECONDS = 300

/**
 * True if one of the signatures is valid for this body and secret, and its timestamp is recent. @param now ms since the
 * epoch
 */
export function hasValidSignature(
  { id, timestamp, signature }: SignatureHeaders,
  body: Uint8Array,
  secret: string,
  now: number,
): boolean {
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > TOLERANCE_SECONDS)
    return false
  const expected = computeDigest(secret, id, timestamp, body)
  return signature.split(' ').some((entry) => {
    const [version, encoded = ''] = entry.split(',')
    const given = Buffer.from(encoded, 'base64')
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected)
  })
}

function computeDigest(secret: string, id: string, timestamp: string, body: string | Uint8Array): Buffer {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
}
