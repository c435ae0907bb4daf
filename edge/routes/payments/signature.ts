import { fail } from '../../../sql/errors.ts'

// How old a signed event may be: an intercepted event cannot be replayed after that.
const TOLERANCE_SECONDS = 300

let loaded: Promise<typeof import('stripe').Stripe.webhooks> | null = null

// The provider sends one for each of its secrets, and has two while one is rolled.
const MAX_SIGNATURES = 10

/**
 * The event in a body, if the provider has recently signed these very bytes
 * (https://docs.stripe.com/webhooks/signature). While a secret is rolled, the provider signs with both the old and the
 * new one, and only one of them may be known here: one signature of one secret suffices. The first event loads the SDK.
 *
 * @param now ms since 1970.
 * @throws fail('payment.payload')
 */
export async function verifiedEvent(
  body: Uint8Array,
  header: string,
  secrets: readonly string[],
  now: number,
): Promise<unknown> {
  loaded ??= import('stripe').then(({ Stripe }) => Stripe.webhooks)
  const webhooks = await loaded
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  const bounded = withFewSignatures(header)
  let refusal: unknown
  for (const secret of secrets) {
    try {
      return webhooks.constructEvent(bytes, bounded, secret, TOLERANCE_SECONDS, undefined, now)
    } catch (error) {
      refusal = error
    }
  }
  throw fail('payment.payload', {}, { cause: refusal })
}

function withFewSignatures(header: string): string {
  let left = MAX_SIGNATURES
  return header
    .split(',')
    .filter((part) => !part.startsWith('v1=') || (part.length > 3 && left-- > 0))
    .join(',')
}
