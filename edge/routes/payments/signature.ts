import { fail } from '../../../sql/errors.ts'
import { createLazy } from '../../../tasks/platform/lazy.ts'

// Maximum age of a signed event, so that an intercepted one cannot be replayed later.
const MAX_EVENT_AGE_SECONDS = 300

/** Loads the SDK's verifier. */
export const loadStripeWebhooks = createLazy(async () => (await import('stripe')).Stripe.webhooks)

// The provider sends one signature for each active secret: one normally, two during a rotation.
const MAX_SIGNATURES = 10

/**
 * Parses an event after verifying that the provider has recently signed exactly these bytes
 * (https://docs.stripe.com/webhooks/signature). One valid signature suffices. During a rotation, the provider signs
 * with both secrets, but the settings may have only one.
 * @param now Unix time in ms.
 * @throws fail('payment.payload')
 */
export async function verifyEvent(
  body: Uint8Array,
  header: string,
  secrets: readonly string[],
  now: number,
): Promise<unknown> {
  const webhooks = await loadStripeWebhooks()
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  const bounded = limitSignatures(header)
  let refusal: unknown
  for (const secret of secrets) {
    try {
      webhooks.signature!.verifyHeader(bytes, bounded, secret, MAX_EVENT_AGE_SECONDS, undefined, now)
      // Not `constructEvent`, which rejects thin events.
      return JSON.parse(bytes.toString())
    } catch (error) {
      refusal = error
    }
  }
  throw fail('payment.payload', {}, { cause: refusal })
}

function limitSignatures(header: string): string {
  let left = MAX_SIGNATURES
  return header
    .split(',')
    .filter((part) => !part.startsWith('v1=') || (part.length > 3 && left-- > 0))
    .join(',')
}
