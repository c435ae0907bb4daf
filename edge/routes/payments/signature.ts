import { fail } from '../../../sql/errors.ts'

// How old a signed event may be: an event that somebody has overheard can't be sent again after that.
const TOLERANCE_SECONDS = 300

let loaded: Promise<typeof import('stripe').Stripe.webhooks> | null = null

/**
 * The event in a body, if the provider has signed these very bytes with the secret not long ago
 * (https://docs.stripe.com/webhooks/signature). While a secret is being replaced there are two signatures, of which one
 * has to be right. The SDK is loaded by the first event.
 *
 * @throws fail('payment.payload')
 */
export async function verifiedEvent(body: Uint8Array, header: string, secret: string): Promise<unknown> {
  loaded ??= import('stripe').then(({ Stripe }) => Stripe.webhooks)
  const webhooks = await loaded
  try {
    return webhooks.constructEvent(
      Buffer.from(body.buffer, body.byteOffset, body.length),
      header,
      secret,
      TOLERANCE_SECONDS,
    )
  } catch (error) {
    throw fail('payment.payload', {}, { cause: error })
  }
}
