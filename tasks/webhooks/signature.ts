import { createHmac } from 'node:crypto'

/** Secrets and signatures of webhooks (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec). */

const PREFIX = 'whsec_'

/** A secret of an endpoint: derived from the deployment's key, so that it can be shown again and is not stored. */
export function webhookSecretOf(secretKey: string, endpoint: number, version: number): string {
  const parts = ['millrace.webhook', String(endpoint), String(version)]
  return PREFIX + createHmac('sha256', secretKey).update(parts.join('\0')).digest('base64')
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
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  }
}
