import { z } from 'zod'
import { linkCustomer, payer } from '../../sql/payment-changes.ts'
import type { TaskContext } from '../context.ts'
import { defineTask } from '../task.ts'
import { CheckoutSession } from './shapes.ts'

const Payload = z.strictObject({
  /** Null where there is no authentication. */
  user_id: z.int().nullable(),
  price_id: z.string(),
  quantity: z.int(),
  mode: z.enum(['payment', 'subscription']),
  success_url: z.string(),
  cancel_url: z.string(),
})

/** Opens a page of the provider's on which somebody pays. An account becomes its customer with the first one. */
export const checkout = defineTask({
  name: 'payments.checkout',
  queue: 'payments',
  pool: 'io',
  // Of two first checkouts at once the second finds the customer that the first has made.
  actor: ({ user_id }) => (user_id === null ? null : `payment_payer:${user_id}`),
  payload: Payload,
  result: CheckoutSession,
  timeoutSeconds: 90,
  run: async (ctx, payload) => {
    const customer = await customerOf(ctx, payload.user_id)
    const session = await ctx.providers.payments.createCheckout(
      {
        priceId: payload.price_id,
        quantity: payload.quantity,
        mode: payload.mode,
        successUrl: payload.success_url,
        cancelUrl: payload.cancel_url,
        customer,
        userId: payload.user_id,
      },
      { key: `${ctx.job.id}:session`, signal: ctx.signal },
    )
    return { session_id: session.id, checkout_url: session.url, provider_key: 'stripe' as const }
  },
})

async function customerOf(ctx: TaskContext, userId: number | null): Promise<string | null> {
  const account = userId === null ? null : await ctx.db.maybeOne(payer(userId))
  if (account === null || account.provider_customer_id !== null) return account?.provider_customer_id ?? null
  const { id, email, full_name: name } = account
  const made = await ctx.providers.payments.createCustomer(
    { email, name, userId: id },
    { key: `${ctx.job.id}:customer`, signal: ctx.signal },
  )
  await ctx.fenced((tx) => tx.run(linkCustomer(id, made)))
  return made
}
