import { z } from 'zod'

/** Settings of payments. */

/** True for a valid target of the provider's redirect: an absolute http(s) URL, or a path on this server. */
export const isRedirectTarget = (text: string): boolean => {
  if (/[\s\p{Cc}\\]/u.test(text) || text.length > 2048) return false
  // Browsers resolve `//host` to another site.
  if (text.startsWith('/')) return !text.startsWith('//')
  return /^https?:\/\/[^/]/i.test(text) && URL.canParse(text)
}

const secretField = z.string().min(1).optional()
const redirectField = z
  .string()
  .refine(isRedirectTarget, 'must be http(s)://… or a path such as /thanks')
  .optional()

export const paymentShape = {
  PROVIDER_SECRET_KEY: secretField,
  // During a rotation, holds the old and the new secret, separated by a comma.
  PROVIDER_WEBHOOK_SECRET: secretField,
  // Aliases that Stripe's documentation uses.
  STRIPE_SECRET_KEY: secretField,
  STRIPE_WEBHOOK_SECRET: secretField,
  // Must be an origin, because the SDK adds the path.
  PROVIDER_API_BASE_URL: z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/\/+$/, ''))
    .refine(
      (url) => URL.canParse(url) && new URL(url).origin === url,
      'must be an origin such as https://api.stripe.com',
    )
    .default('https://api.stripe.com'),
  PAYMENT_SUCCESS_URL: redirectField,
  PAYMENT_CANCEL_URL: redirectField,
  PAYMENT_REFUNDS: z.enum(['owner', 'admin']).default('owner'),
}

export type PaymentMode = 'live' | 'test'

/** Returns the mode of a provider's key; null if there is no key or it does not name its mode. */
export function modeOf(secretKey: string | undefined): PaymentMode | null {
  const named = /_(live|test)_/.exec(secretKey ?? '')?.[1]
  return named === 'live' || named === 'test' ? named : null
}

export interface PaymentSettings {
  /** Undefined if payments are not configured. */
  readonly secretKey: string | undefined
  /** Secrets that may sign events: two during a rotation. If empty, all events are rejected. */
  readonly webhookSecrets: readonly string[]
  readonly apiBaseUrl: string
  /** Default redirects after a checkout; undefined selects pages of this server. */
  readonly successUrl: string | undefined
  readonly cancelUrl: string | undefined
  /** Accounts that may refund: the owner of the payment, or only admins of the service. */
  readonly refunds: 'owner' | 'admin'
}

export function buildPaymentSettings(env: z.output<z.ZodObject<typeof paymentShape>>): PaymentSettings {
  return {
    secretKey: env.PROVIDER_SECRET_KEY ?? env.STRIPE_SECRET_KEY,
    webhookSecrets: (env.PROVIDER_WEBHOOK_SECRET ?? env.STRIPE_WEBHOOK_SECRET ?? '')
      .split(',')
      .map((text) => text.trim())
      .filter((text) => text !== ''),
    apiBaseUrl: env.PROVIDER_API_BASE_URL,
    successUrl: env.PAYMENT_SUCCESS_URL,
    cancelUrl: env.PAYMENT_CANCEL_URL,
    refunds: env.PAYMENT_REFUNDS,
  }
}
