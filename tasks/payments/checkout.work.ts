import { fail } from '../../sql/errors.ts'
import {
  applyChanges,
  findPayer,
  findRunningSubscription,
  linkCustomer,
  replaceCustomer,
} from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import type { CheckoutSession } from './shapes.ts'
import { isRunning, toSubscriptionChange } from './subscriptions.ts'

interface CheckoutPayload {
  readonly user_id: number | null
  readonly price_id: string
  readonly quantity: number
  readonly mode: 'payment' | 'subscription'
  readonly success_url: string
  readonly cancel_url: string
  readonly allow_second: boolean
}

/** Runs `payments.checkout`. */
export async function run(ctx: TaskContext, payload: CheckoutPayload): Promise<CheckoutSession> {
  const account = payload.user_id === null ? null : await ctx.db.maybeOne(findPayer(payload.user_id))
  const linkedCustomer = account?.provider_customer_id ?? null
  const customer = account === null ? null : (linkedCustomer ?? (await createCustomer(ctx, account)))
  if (account !== null && customer !== null && payload.mode === 'subscription' && !payload.allow_second)
    await requireFirstSubscription(ctx, account.id, customer, payload.price_id)
  const firstTry = await openSession(ctx, payload, customer)
  // Null if the provider has no such customer: an operator deleted it in the dashboard, or it belongs to another
  // account or mode.
  const session =
    firstTry ?? (account && (await openSession(ctx, payload, await createCustomer(ctx, account, customer))))
  if (session === null) throw fail('payment.failed', { reason: 'the customer does not exist there' })
  return { session_id: session.id, checkout_url: session.url, provider_key: 'stripe' as const }
}

function openSession(ctx: TaskContext, payload: CheckoutPayload, customer: string | null) {
  return ctx.providers.payments.createCheckout(
    {
      priceId: payload.price_id,
      quantity: payload.quantity,
      mode: payload.mode,
      successUrl: payload.success_url,
      cancelUrl: payload.cancel_url,
      customer,
      userId: payload.user_id,
      jobId: ctx.job.id,
    },
    // The provider rejects a key that is reused with other parameters, so each customer has its own key.
    { key: `${ctx.job.id}:session${customer === null ? '' : `:${customer}`}`, signal: ctx.signal },
  )
}

/**
 * Requires that the customer has no running subscription of a price, not even one whose event is still to come. First
 * expires other checkouts of the price, so that at most one of them can be paid.
 *
 * @throws fail('subscription.running')
 */
async function requireFirstSubscription(
  { db, job, providers, runFenced, signal }: TaskContext,
  accountId: number,
  customer: string,
  priceId: string,
): Promise<void> {
  await providers.payments.expireCheckouts(customer, signal, { priceId, exceptJobId: job.id })
  const { objects, at } = await providers.payments.listSubscriptionsOfPrice(customer, priceId, signal)
  const changes = objects.filter(isRunning).flatMap((one) => toSubscriptionChange(one, 'read', at) ?? [])
  if (changes.length === 0) return
  await runFenced((tx) => tx.run(applyChanges(changes)))
  const running = await db.maybeOne(findRunningSubscription(accountId, priceId))
  if (running !== null) throw fail('subscription.running', running)
}

/**
 * Creates a customer at the provider for an account and links it. `former` is the customer that the new one replaces;
 * null if there is none.
 */
async function createCustomer(
  ctx: TaskContext,
  { id, email, full_name: name }: { id: number; email: string; full_name: string | null },
  former: string | null = null,
): Promise<string> {
  const customerId = await ctx.providers.payments.createCustomer(
    { email, name, userId: id },
    { key: `${ctx.job.id}:customer${former === null ? '' : `:${former}`}`, signal: ctx.signal },
  )
  await ctx.runFenced((tx) =>
    tx.run(former === null ? linkCustomer(id, customerId) : replaceCustomer(id, former, customerId)),
  )
  return customerId
}
