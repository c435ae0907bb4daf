import { checkDeletionDue } from '../../sql/accounts/deletions.ts'
import type { AuditEvent } from '../../sql/audit/audit.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { applyChanges, findCustomerByAccount, listRunningSubscriptions } from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import { cancelAtProvider } from '../payments/cancel-at-provider.ts'
import { toSubscriptionChange } from '../payments/subscriptions.ts'
import { deleteAndPurge } from './deletion.ts'

/** Runs `accounts.delete`. */
export async function run(
  ctx: TaskContext,
  { account_id: id }: { readonly account_id: number },
): Promise<{ deleted: boolean }> {
  const { db, job, settings, runFenced } = ctx
  if (!(await db.one(checkDeletionDue(id))).due) return { deleted: false }
  for (const subscription of await findRunningSubscriptions(ctx, id))
    await endSubscription(ctx, id, subscription)
  const { requestId } = job
  const event = (email: string): AuditEvent => ({
    kind: 'account.deleted',
    actorId: null,
    accountId: id,
    address: null,
    requestId,
    data: { email },
  })
  return runFenced(async (tx) => {
    // The account may meanwhile have become the admin of the settings, the only change that stops a due deletion.
    if (!(await tx.one(checkDeletionDue(id))).due) return { deleted: false }
    // The deletion must wait: a subscription has started meanwhile, or the provider accepted the cancellation without
    // reporting an end.
    if ((await tx.any(listRunningSubscriptions(id))).length > 0)
      throw fail('payment.failed', { reason: 'a subscription is still running' })
    const options = { requestId, settings }
    return { deleted: await deleteAndPurge(tx, id, event, options) }
  })
}

/**
 * Returns the subscriptions that would charge an account again, from the database and from the provider, where one may
 * have just started. First expires open checkouts, so that no subscription can start afterwards.
 */
async function findRunningSubscriptions(ctx: TaskContext, id: number): Promise<ReadonlySet<string>> {
  const { db, settings, signal } = ctx
  const { payments } = ctx.providers
  const ids = new Set<string>()
  const customer = await db.maybeOne(findCustomerByAccount(id))
  // Without a provider key, this service cannot cancel subscriptions. The account then stays while any subscription is
  // running.
  if (customer !== null && settings.payments.secretKey !== undefined) {
    await payments.expireCheckouts(customer.provider_customer_id, signal)
    for (const one of await payments.listRenewingSubscriptions(customer.provider_customer_id, signal))
      ids.add(one)
  }
  for (const { provider_subscription_id: one } of await db.any(listRunningSubscriptions(id))) ids.add(one)
  return ids
}

/**
 * Cancels a subscription. If the provider refuses because the subscription has ended or is unknown there, records its
 * end in the database.
 */
async function endSubscription(ctx: TaskContext, account: number, id: string): Promise<void> {
  try {
    await cancelAtProvider(ctx, id)
  } catch (error) {
    if (!(error instanceof Failure && error.code === 'payment.rejected')) throw error
    const known = await ctx.providers.payments.findSubscription(id, ctx.signal)
    // The provider has no end time for a subscription that it does not know, so use the current time.
    const change =
      known === null
        ? toSubscriptionChange({ id }, 'deleted', Math.floor(Date.now() / 1000))
        : toSubscriptionChange(known.object, 'read', known.at)
    await ctx.runFenced((tx) => tx.run(applyChanges([change!])))
    const running = await ctx.db.any(listRunningSubscriptions(account))
    if (running.some(({ provider_subscription_id: one }) => one === id)) throw error
  }
}
