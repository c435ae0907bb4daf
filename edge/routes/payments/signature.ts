import { fail } from '../../../sql/errors.ts'

// How old a signed event may be: an event that somebody has overheard can't be sent again after that.
const TOLERANCE_SECONDS = 300

let loaded: Promise<typeof import('stripe').Stripe.webhooks> | null = null

/**
 * The event in a body, if the provider has signed these very bytes not long ago
 * (https://docs.stripe.com/webhooks/signature). While a secret is being replaced the provider signs with the old one and
 * the new one: every signature has to be of a secret in `secrets`, so a header has no more of them than there are secrets.
 * The SDK is loaded by the first event.
 *
 * @throws fail('payment.payload')
 */
export async function verifiedEvent(
  body: Uint8Array,
  header: string,
  secrets: readonly string[],
): Promise<unknown> {
  loaded ??= import('stripe').then(({ Stripe }) => Stripe.webhooks)
  const webhooks = await loaded
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  const parts = header.split(',')
  const signatures = parts.filter((part) => part.trim().startsWith('v1='))
  const others = parts.filter((part) => !signatures.includes(part))
  // What no secret has signed ends with the refusal of the last one.
  const verified = (signature: string): unknown => {
    let refusal: unknown
    for (const secret of secrets) {
      try {
        return webhooks.constructEvent(bytes, [...others, signature].join(','), secret, TOLERANCE_SECONDS)
      } catch (error) {
        refusal = error
      }
    }
    throw refusal
  }
  try {
    if (signatures.length > secrets.length) throw new Error('There are more signatures than secrets')
    // Without any the SDK says what is wrong.
    return (signatures.length === 0 ? [''] : signatures).map(verified)[0]
  } catch (error) {
    throw fail('payment.payload', {}, { cause: error })
  }
}
