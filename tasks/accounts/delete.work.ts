import { checkDeletionDue, listActiveAdmins } from '../../sql/accounts/deletions.ts'
import { type AuditEvent, type AuditKind, appendAudit } from '../../sql/audit/audit.ts'
import type { Queries } from '../../sql/db.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { applyChanges, findCustomerByAccount, listRunningSubscriptions } from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import { cancelAtProvider } from '../payments/change-at-provider.ts'
import { forgetCustomer } from '../payments/forget.task.ts'
import { toSubscriptionChange } from '../payments/subscriptions.ts'
import { enqueue } from '../task.ts'
import { deleteAndPurge } from './deletion.ts'
import { sendForcedDeletionMail } from './forced-deletion-mail.task.ts'

/** Runs `accounts.delete`. */
export async function run(
  ctx: TaskContext,
  { account_id: id }: { readonly account_id: number },
): Promise<{ deleted: boolean }> {
  const { db, runFenced } = ctx
  const { due, overdue } = await db.one(checkDeletionDue(id))
  if (!due) return { deleted: false }
  const refusal = await endSubscriptions(ctx, id)
  if (refusal !== null && !(overdue && isFinal(ctx, refusal))) throw refusal
  return runFenced(async (tx) => {
    // An activation, or the settings that make the account an admin, may have cancelled the deletion meanwhile.
    if (!(await tx.one(checkDeletionDue(id))).due) return { deleted: false }
    const running = (await tx.any(listRunningSubscriptions(id))).map((one) => one.provider_subscription_id)
    // The deletion must wait: a subscription has started meanwhile, or the provider accepted the cancellation without
    // reporting an end.
    if (running.length > 0 && !overdue) throw createStillRunning()
    const event = createEvent(ctx, 'account.deleted', id)
    const options = { requestId: ctx.job.requestId, settings: ctx.settings }
    const customer = await tx.maybeOne(findCustomerByAccount(id))
    const deleted = await deleteAndPurge(tx, id, (email) => ({ ...event, data: { email } }), options)
    if (deleted && (refusal !== null || running.length > 0))
      await reportForcedDeletion(tx, ctx, id, running, refusal ?? createStillRunning())
    if (deleted && customer !== null && ctx.settings.payments.secretKey !== undefined)
      await enqueue(tx, forgetCustomer, { account_id: id, ...customer }, { ...options, ownerId: null })
    return { deleted }
  })
}

const createStillRunning = (): Failure =>
  fail('payment.failed', { reason: 'a subscription is still running' })

/** True if a retry of the job would not help. A transient failure must at least occur twice in the job. */
function isFinal({ job }: TaskContext, refusal: Failure): boolean {
  return !refusal.retryable || job.attempt > 1
}

function createEvent({ job }: TaskContext, kind: AuditKind, accountId: number): AuditEvent {
  return { kind, actorId: null, accountId, address: null, requestId: job.requestId }
}

/** Audits a deletion that the payment provider has refused to prepare, and emails the admins of the service. */
async function reportForcedDeletion(
  tx: Queries,
  ctx: TaskContext,
  id: number,
  subscriptions: readonly string[],
  { code, detail }: Failure,
): Promise<void> {
  const data = { subscriptions, code, detail }
  await tx.run(appendAudit([{ ...createEvent(ctx, 'account.deletion_forced', id), data }]))
  const options = { ownerId: null, requestId: ctx.job.requestId, settings: ctx.settings }
  for (const { id: admin_id } of await tx.any(listActiveAdmins())) {
    const payload = { admin_id, account_id: id, subscriptions: [...subscriptions] }
    await enqueue(tx, sendForcedDeletionMail, payload, options)
  }
}

/**
 * Ends everything at the provider that would charge the account again. Goes on after a refusal, and returns the first failure; null if there
 * is none.
 */
async function endSubscriptions(ctx: TaskContext, id: number): Promise<Failure | null> {
  let refusal: Failure | null = null
  const attempt = async <T>(work: () => Promise<T>): Promise<T | null> => {
    // The provider is away, so that another request would only take time.
    if (refusal?.retryable === true) return null
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Failure && error.code.startsWith('payment.'))) throw error
      refusal ??= error
      return null
    }
  }
  const customer = await ctx.db.maybeOne(findCustomerByAccount(id))
  for (const one of (await attempt(() => findRunningSubscriptions(ctx, id, customer))) ?? [])
    await attempt(() => endSubscription(ctx, id, one))
  if (customer !== null && ctx.settings.payments.secretKey !== undefined)
    await attempt(() =>
      ctx.providers.payments.cancelFutureSchedules(customer.provider_customer_id, ctx.signal),
    )
  return refusal
}

/**
 * Returns the subscriptions that would charge an account again, from the database and from the provider, where one may
 * have just started. First expires open checkouts, so that no subscription can start afterwards.
 */
async function findRunningSubscriptions(
  ctx: TaskContext,
  id: number,
  customer: { readonly provider_customer_id: string } | null,
): Promise<ReadonlySet<string>> {
  const { db, settings, signal } = ctx
  const { payments } = ctx.providers
  const ids = new Set<string>()
  // Without a provider key, this service cannot cancel subscriptions. The account then stays for a week while
  // any subscription is running.
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
