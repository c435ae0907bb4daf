import { z } from 'zod'
import { TRANSACTION_STATUSES } from '../../sql/payments/payments.ts'

/** Public shapes of payments, which are also the results of tasks that callers wait for. */

export const Transaction = z
  .strictObject({
    id: z.int(),
    provider_transaction_id: z.string(),
    type: z.enum(['charge', 'refund', 'subscription']),
    status: z.enum(TRANSACTION_STATUSES),
    /** Amount in the smallest unit of the currency. */
    amount: z.int(),
    currency: z.string(),
    description: z.string(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Transaction' })
export type Transaction = z.output<typeof Transaction>

export const CheckoutSession = z
  .strictObject({ session_id: z.string(), checkout_url: z.string(), provider_key: z.literal('stripe') })
  .meta({ id: 'CheckoutSession' })
export type CheckoutSession = z.output<typeof CheckoutSession>

export const SUBSCRIPTION_STATUSES = [
  'active',
  'past_due',
  'canceled',
  'incomplete',
  'trialing',
  'unpaid',
] as const

export const Subscription = z
  .strictObject({
    id: z.int(),
    provider_subscription_id: z.string(),
    plan_name: z.string(),
    status: z.enum(SUBSCRIPTION_STATUSES),
    current_period_start: z.iso.datetime().nullable(),
    current_period_end: z.iso.datetime().nullable(),
    cancel_at_period_end: z.boolean(),
    /** The set end; null if there is none. */
    cancel_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Subscription' })
export type Subscription = z.output<typeof Subscription>

export const PortalSession = z
  .strictObject({ portal_url: z.string(), provider_key: z.literal('stripe') })
  .meta({
    id: 'PortalSession',
    examples: [{ portal_url: 'https://billing.stripe.com/p/session/x', provider_key: 'stripe' }],
  })
export type PortalSession = z.output<typeof PortalSession>

export const Cancellation = z
  .strictObject({ status: z.string(), cancel_at_period_end: z.enum(['true', 'false']) })
  .meta({ id: 'Cancellation' })
export type Cancellation = z.output<typeof Cancellation>

export const Price = z.strictObject({
  price_id: z.string(),
  product_id: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  /** Price in the smallest unit of the currency; null if the provider computes it or the payer chooses it. */
  amount: z.int().nullable(),
  currency: z.string(),
  mode: z.enum(['payment', 'subscription']),
  interval: z.string().nullable(),
  interval_count: z.int().nullable(),
})

export const Catalog = z.strictObject({ prices: z.array(Price) }).meta({ id: 'PaymentCatalog' })
export type Catalog = z.output<typeof Catalog>
