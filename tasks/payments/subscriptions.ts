import {
  type Change,
  createEarliestStamp,
  createFact,
  createStamp,
  type Fact,
  omitUnknownFacts,
} from './facts.ts'
import { distinctIds, idOf, integerOf, itemsOf, objectOf, type ProviderObject, textOf } from './reading.ts'

// The state to report for each of the provider's subscription states, with its rank in the usual order. A trial that
// ends without a payment method pauses the subscription.
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

const ENDED_RANK = 5

/**
 * Kinds of reports about a subscription: events, and `read` for what the provider answers. Within a second, later
 * kinds win over earlier ones.
 */
export type SubscriptionSource = 'created' | 'updated' | 'deleted' | 'read'
const SUBSCRIPTION_SOURCES: readonly SubscriptionSource[] = ['created', 'updated', 'deleted', 'read']

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
  const partsOf = (field: string, rank: number): number[] => [
    at,
    SUBSCRIPTION_SOURCES.indexOf(source),
    field in before ? 1 : 0,
    rank,
  ]
  const fact = (field: string, rank: number, value: unknown): Fact | null =>
    createFact(createStamp(...partsOf(field, rank)), value)
  const [rank, status] =
    SUBSCRIPTION_STATES[source === 'deleted' ? 'canceled' : (textOf(subscription.status) ?? '')] ??
    SUBSCRIPTION_STATES.incomplete!
  const cancelsAtEnd = subscription.cancel_at_period_end === true
  const cancelAt = integerOf(subscription.cancel_at)
  const periodStart = integerOf(subscription.current_period_start) ?? integerOf(item?.current_period_start)
  const periodEnd = periodEndOf(subscription)
  const created = integerOf(subscription.created)
  return {
    kind: 'subscription',
    id,
    facts: omitUnknownFacts({
      // An ended subscription never resumes.
      status: [createStamp(rank === ENDED_RANK ? 1 : 0, ...partsOf('status', rank)), status],
      reported: [createStamp(at), at],
      cancel_at_period_end: fact('cancel_at_period_end', cancelsAtEnd ? 1 : 0, cancelsAtEnd),
      // Null if no end is set; unknown if the event's version lacks the field.
      cancel_at:
        'cancel_at' in subscription
          ? [createStamp(...partsOf('cancel_at', cancelAt === null ? 0 : 1)), cancelAt]
          : null,
      period_start: fact('current_period_start', periodStart ?? 0, periodStart),
      period_end: fact('current_period_end', periodEnd ?? 0, periodEnd),
      plan_name: fact('items', 0, findPlanName(subscription, item)),
      prices: fact('items', 0, findPrices(subscription)),
      customer: fact('customer', 0, idOf(subscription.customer)),
      created: created === null ? null : [createEarliestStamp(created), created],
    }),
  }
}

/** Returns the end of the paid period. API versions since 2025 put the period on the item. */
function periodEndOf(subscription: ProviderObject): number | null {
  return (
    integerOf(subscription.current_period_end) ??
    integerOf(itemsOf(subscription.items)[0]?.current_period_end)
  )
}

/**
 * True if a subscription will be charged again: it has not ended, and ends neither with its paid period nor before.
 * Flexible billing and schedules set `cancel_at` instead of `cancel_at_period_end`. The columns of
 * `payment_subscription` have the same rule.
 */
export function willRenew(subscription: ProviderObject): boolean {
  const status = SUBSCRIPTION_STATES[textOf(subscription.status) ?? '']?.[1]
  if (status === 'canceled' || subscription.cancel_at_period_end === true) return false
  const cancelAt = integerOf(subscription.cancel_at)
  return cancelAt === null || cancelAt > (periodEndOf(subscription) ?? cancelAt)
}

/** Returns the ids of the subscription's prices; null if its items are unknown. */
function findPrices({ items, plan }: ProviderObject): string[] | null {
  const ids = distinctIds(...[...itemsOf(items).map((one) => one.price ?? one.plan), plan].map(idOf))
  return ids.length === 0 ? null : ids
}

/** True if a subscription may charge its customer. One whose first payment is open may be bought again. */
export function isRunning(subscription: ProviderObject): boolean {
  const status = SUBSCRIPTION_STATES[textOf(subscription.status) ?? '']?.[1]
  return status !== undefined && status !== 'canceled' && status !== 'incomplete'
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
