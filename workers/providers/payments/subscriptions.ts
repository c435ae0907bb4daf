import type { PaymentProvider } from '../../../tasks/payments/provider.ts'
import { willRenew } from '../../../tasks/payments/subscriptions.ts'
import {
  addProviderTime,
  emptyIfMissing,
  emptyIfNoCustomer,
  isReplay,
  listPages,
  nullIfMissing,
  nullIfNoCustomer,
  toListSnapshot,
} from './answers.ts'
import { type CancellationRequests, cancelInAnyState } from './cancellation.ts'
import type { CallStripe, Stripe } from './client.ts'
import { changePlan, resume } from './plan-changes.ts'

/** Calls about subscriptions and their schedules. */

type SubscriptionCalls = Pick<
  PaymentProvider,
  | 'cancelSubscription'
  | 'changePlan'
  | 'resumeSubscription'
  | 'cancelFutureSchedules'
  | 'listRenewingSubscriptions'
  | 'listSubscriptionsOfPrice'
  | 'findSubscription'
>

export function createSubscriptionCalls(call: CallStripe): SubscriptionCalls {
  return {
    cancelSubscription: (id, { key, signal }) =>
      call('subscriptions.update', signal, async (client) => {
        const changed = await cancelInAnyState(createCancellationRequests(client, id), key)
        return addProviderTime(isReplay(changed) ? await client.subscriptions.retrieve(id) : changed)
      }),
    changePlan: (id, plan, { key, signal }) =>
      call('subscriptions.update', signal, async (client) =>
        addProviderTime(await changePlan(client, id, plan, key)),
      ),
    resumeSubscription: (id, { key, signal }) =>
      call('subscriptions.update', signal, async (client) => addProviderTime(await resume(client, id, key))),
    cancelFutureSchedules: (customer, signal) => cancelFutureSchedules(call, customer, signal),
    listRenewingSubscriptions: (customer, signal) => listRunningSubscriptions(call, customer, signal),
    listSubscriptionsOfPrice: (customer, price, signal) =>
      call('subscriptions.list', signal, async ({ subscriptions }) =>
        toListSnapshot(await subscriptions.list({ customer, price, limit: 100 }).catch(nullIfNoCustomer)),
      ),
    findSubscription: (id, signal) =>
      call('subscriptions.retrieve', signal, async ({ subscriptions }) => {
        const found = await nullIfMissing(subscriptions.retrieve(id))
        return found === null ? null : addProviderTime(found)
      }),
  }
}

function createCancellationRequests(
  { subscriptions, subscriptionSchedules }: Stripe,
  id: string,
): CancellationRequests<Stripe.Response<Stripe.Subscription>> {
  return {
    cancelAtPeriodEnd: (idempotencyKey) =>
      subscriptions.update(id, { cancel_at_period_end: true }, { idempotencyKey }),
    find: () => subscriptions.retrieve(id),
    releaseSchedule: (schedule, idempotencyKey) =>
      subscriptionSchedules.release(schedule, {}, { idempotencyKey }),
    cancelNow: (idempotencyKey) => subscriptions.cancel(id, {}, { idempotencyKey }),
  }
}

async function cancelFutureSchedules(call: CallStripe, customer: string, signal: AbortSignal): Promise<void> {
  const listed = listPages((after) =>
    call('subscriptionSchedules.list', signal, ({ subscriptionSchedules }) =>
      subscriptionSchedules.list({ customer, scheduled: true, limit: 100, ...after }).catch(emptyIfMissing),
    ),
  )
  for await (const page of listed)
    for (const { id } of page)
      await call('subscriptionSchedules.cancel', signal, ({ subscriptionSchedules }) =>
        subscriptionSchedules.cancel(String(id)),
      )
}

async function listRunningSubscriptions(
  call: CallStripe,
  customer: string,
  signal: AbortSignal,
): Promise<string[]> {
  const running: string[] = []
  // Stripe omits canceled subscriptions by default.
  const listed = listPages((after) =>
    call('subscriptions.list', signal, ({ subscriptions }) =>
      subscriptions.list({ customer, limit: 100, ...after }).catch(emptyIfNoCustomer),
    ),
  )
  for await (const page of listed) running.push(...page.filter(willRenew).map(({ id }) => String(id)))
  return running
}
