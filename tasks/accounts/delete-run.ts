import { isDue } from '../../sql/accounts/deletions.ts'
import type { AuditEvent } from '../../sql/audit.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { applyChanges, customerOf, runningSubscriptions } from '../../sql/payment-changes.ts'
import type { TaskContext } from '../context.ts'
import { cancelAtProvider } from '../payments/cancel-at-provider.ts'
import { subscriptionChange } from '../payments/subscriptions.ts'
import { deleteForAll } from './deletion.ts'

/** The work of `accounts.delete`. */
export async function run(
  ctx: TaskContext,
  { account_id: id }: { readonly account_id: number },
): Promise<{ deleted: boolean }> {
  const { db, job, settings, fenced } = ctx
  if (!(await db.one(isDue(id))).due) return { deleted: false }
  for (const subscription of await subscriptionsOf(ctx, id)) await endSubscription(ctx, id, subscription)
  const { requestId } = job
  const event = (email: string): AuditEvent => ({
    kind: 'account.deleted',
    actorId: null,
    accountId: id,
    address: null,
    requestId,
    data: { email },
  })
  return fenced(async (tx) => {
    // Made the admin of the settings meanwhile: nobody else can take it back once it is due.
    if (!(await tx.one(isDue(id))).due) return { deleted: false }
    // One that has begun meanwhile, or that the provider has accepted to end and does not say so.
    if ((await tx.any(runningSubscriptions(id))).length > 0)
      throw fail('payment.failed', { reason: 'a subscription is still running' })
    const options = { requestId, settings }
    return { deleted: await deleteForAll(tx, id, event, options) }
  })
}

/**
 * What an account would pay for again, as it is known here and to the provider: it may have begun just now. Nothing can
 * begin after that, since checkouts that are still open expire.
 */
async function subscriptionsOf(ctx: TaskContext, id: number): Promise<ReadonlySet<string>> {
  const { db, settings, signal } = ctx
  const { payments } = ctx.providers
  const ids = new Set<string>()
  const customer = await db.maybeOne(customerOf(id))
  // Without a key nothing can be asked; what is running here is then not ended, and the account stays.
  if (customer !== null && settings.payments.secretKey !== undefined) {
    await payments.expireCheckouts(customer.provider_customer_id, signal)
    for (const one of await payments.runningSubscriptions(customer.provider_customer_id, signal)) ids.add(one)
  }
  for (const { provider_subscription_id: one } of await db.any(runningSubscriptions(id))) ids.add(one)
  return ids
}

/** Ends a subscription; one that the provider refuses to end because it has ended, or has never heard of, is over here, too. */
async function endSubscription(ctx: TaskContext, account: number, id: string): Promise<void> {
  try {
    await cancelAtProvider(ctx, id)
  } catch (error) {
    if (!(error instanceof Failure && error.code === 'payment.rejected')) throw error
    const known = await ctx.providers.payments.subscription(id, ctx.signal)
    // Of what the provider has never heard there is no time but ours, which is that of its end here.
    const change =
      known === null
        ? subscriptionChange({ id }, 'deleted', Math.floor(Date.now() / 1000))
        : subscriptionChange(known.object, 'updated', known.at, { status: null })
    await ctx.fenced((tx) => tx.run(applyChanges([change!])))
    const running = await ctx.db.any(runningSubscriptions(account))
    if (running.some(({ provider_subscription_id: one }) => one === id)) throw error
  }
}
