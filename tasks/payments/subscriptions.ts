import {
  type Change,
  createEarliestStamp,
  createFact,
  createStamp,
  type Fact,
  omitUnknownFacts,
} from './facts.ts'
import { idOf, integerOf, itemsOf, objectOf, type ProviderObject, textOf } from './reading.ts'

// The state to report for each of the provider's subscription states, with its rank in the usual order.
const SUBSCRIPTION_STATES: Readonly<Record<string, readonly [rank: number, ours: string]>> = {
  incomplete: [0, 'incomplete'],
  trialing: [1, 'trialing'],
  active: [2, 'active'],
  past_due: [3, 'past_due'],
  unpaid: [4, 'unpaid'],
  paused: [4, 'unpaid'],
  incomplete_expired: [5, 'canceled'],
  canceled: [5, 'canceled'],
}

/**
 * Kinds of events about a subscription. Among events within the same second, `deleted` wins over `updated`, and
 * `updated` over `created`.
 */
export type SubscriptionSource = 'created' | 'updated' | 'deleted'
const SUBSCRIPTION_SOURCES: readonly SubscriptionSource[] = ['created', 'updated', 'deleted']

/**
 * Returns the change with a subscription's state at `at`, in seconds; null without an id. `before` holds the values
 * that an update replaced. Within a second, an event that changes a field wins over one that only includes the field.
 */
export function toSubscriptionChange(
  subscription: ProviderObject,
  source: SubscriptionSource,
  at: number,
  before: ProviderObject = {},
): Change | null {
  const id = idOf(subscription.id)
  if (id === null) return null
  const item = itemsOf(subscription.items)[0]
  const fact = (field: string, rank: number, value: unknown): Fact | null =>
    createFact(createStamp(at, SUBSCRIPTION_SOURCES.indexOf(source), field in before ? 1 : 0, rank), value)
  const [rank, status] =
    SUBSCRIPTION_STATES[source === 'deleted' ? 'canceled' : (textOf(subscription.status) ?? '')] ??
    SUBSCRIPTION_STATES.incomplete!
  const cancelsAtEnd = subscription.cancel_at_period_end === true
  // API versions since 2025 put the period on the item.
  const periodStart = integerOf(subscription.current_period_start) ?? integerOf(item?.current_period_start)
  const periodEnd = integerOf(subscription.current_period_end) ?? integerOf(item?.current_period_end)
  const created = integerOf(subscription.created)
  return {
    kind: 'subscription',
    id,
    facts: omitUnknownFacts({
      status: fact('status', rank, status),
      cancel_at_period_end: fact('cancel_at_period_end', cancelsAtEnd ? 1 : 0, cancelsAtEnd),
      period_start: fact('current_period_start', periodStart ?? 0, periodStart),
      period_end: fact('current_period_end', periodEnd ?? 0, periodEnd),
      plan_name: fact('items', 0, findPlanName(subscription, item)),
      customer: fact('customer', 0, idOf(subscription.customer)),
      created: created === null ? null : [createEarliestStamp(created), created],
    }),
  }
}

/** Returns the plan name: the name of the price or product, else a lookup key, else an id; null if there is none. */
function findPlanName(subscription: ProviderObject, item: ProviderObject | undefined): string | null {
  const plans = [objectOf(item?.price), objectOf(item?.plan), objectOf(subscription.plan)]
  for (const key of ['nickname', 'name']) {
    for (const plan of plans) if (textOf(plan[key]) !== null) return textOf(plan[key])
  }
  for (const plan of plans) {
    const name = textOf(objectOf(plan.product).name) ?? textOf(plan.lookup_key)
    if (name !== null) return name
  }
  return plans.map(idOf).find((id) => id !== null) ?? null
}
