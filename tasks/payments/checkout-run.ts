import { linkCustomer, payer } from '../../sql/payment-changes.ts'
import type { TaskContext } from '../context.ts'
import type { CheckoutPayload } from './checkout.ts'
import type { CheckoutSession } from './shapes.ts'

/** The work of `payments.checkout`. */
export async function run(ctx: TaskContext, payload: CheckoutPayload): Promise<CheckoutSession> {
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
}

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
