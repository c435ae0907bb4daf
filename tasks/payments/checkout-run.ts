import { fail } from '../../sql/errors.ts'
import { linkCustomer, payer, replaceCustomer } from '../../sql/payment-changes.ts'
import type { TaskContext } from '../context.ts'
import type { CheckoutPayload } from './checkout.ts'
import type { CheckoutSession } from './shapes.ts'

/** The work of `payments.checkout`. */
export async function run(ctx: TaskContext, payload: CheckoutPayload): Promise<CheckoutSession> {
  const account = payload.user_id === null ? null : await ctx.db.maybeOne(payer(payload.user_id))
  const known = account?.provider_customer_id ?? null
  const customer = account === null ? null : (known ?? (await newCustomer(ctx, account)))
  const opened = await open(ctx, payload, customer)
  // Deleted on the provider's own pages, or of another account of the provider, as its test mode is.
  const session = opened ?? (account && (await open(ctx, payload, await newCustomer(ctx, account, customer))))
  if (session === null) throw fail('payment.failed', { reason: 'it has no such customer' })
  return { session_id: session.id, checkout_url: session.url, provider_key: 'stripe' as const }
}

function open(ctx: TaskContext, payload: CheckoutPayload, customer: string | null) {
  return ctx.providers.payments.createCheckout(
    {
      priceId: payload.price_id,
      quantity: payload.quantity,
      mode: payload.mode,
      successUrl: payload.success_url,
      cancelUrl: payload.cancel_url,
      customer,
      userId: payload.user_id,
    },
    // A key is for one request.
    { key: `${ctx.job.id}:session${customer === null ? '' : `:${customer}`}`, signal: ctx.signal },
  )
}

/** Makes an account a customer, or another one in place of a former. */
async function newCustomer(
  ctx: TaskContext,
  { id, email, full_name: name }: { id: number; email: string; full_name: string | null },
  former: string | null = null,
): Promise<string> {
  const made = await ctx.providers.payments.createCustomer(
    { email, name, userId: id },
    { key: `${ctx.job.id}:customer${former === null ? '' : `:${former}`}`, signal: ctx.signal },
  )
  await ctx.fenced((tx) =>
    tx.run(former === null ? linkCustomer(id, made) : replaceCustomer(id, former, made)),
  )
  return made
}
