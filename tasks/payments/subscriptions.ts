import { type Change, earliest, type Fact, facts, known, stamp } from './facts.ts'
import { idOf, itemsOf, objectOf, type ProviderObject, textOf, wholeOf } from './reading.ts'

// The provider's states in the order in which a subscription usually goes through them, and ours.
const STATES: Readonly<Record<string, readonly [rank: number, ours: string]>> = {
  incomplete: [0, 'incomplete'],
  trialing: [1, 'trialing'],
  active: [2, 'active'],
  past_due: [3, 'past_due'],
  unpaid: [4, 'unpaid'],
  paused: [4, 'unpaid'],
  incomplete_expired: [5, 'canceled'],
  canceled: [5, 'canceled'],
}

/** The kinds of statements about a subscription. Within a second, it is created before it changes, and ends last. */
export type SubscriptionSource = 'created' | 'updated' | 'deleted'
const SOURCES: readonly SubscriptionSource[] = ['created', 'updated', 'deleted']

/**
 * The state of a subscription as of `at`, in seconds. `before` holds the values that a change has replaced: within a
 * second, an event that changes a field takes precedence over one that merely includes it.
 */
export function subscriptionChange(
  subscription: ProviderObject,
  source: SubscriptionSource,
  at: number,
  before: ProviderObject = {},
): Change | null {
  const id = idOf(subscription.id)
  if (id === null) return null
  const item = itemsOf(subscription.items)[0]
  const said = (field: string, rank: number, value: unknown): Fact | null =>
    known(stamp(at, SOURCES.indexOf(source), field in before ? 1 : 0, rank), value)
  const [rank, status] =
    STATES[source === 'deleted' ? 'canceled' : (textOf(subscription.status) ?? '')] ?? STATES.incomplete!
  const cancels = subscription.cancel_at_period_end === true
  // Versions from 2025 on have the period on the item.
  const begins = wholeOf(subscription.current_period_start) ?? wholeOf(item?.current_period_start)
  const ends = wholeOf(subscription.current_period_end) ?? wholeOf(item?.current_period_end)
  const created = wholeOf(subscription.created)
  return {
    kind: 'subscription',
    id,
    facts: facts({
      status: said('status', rank, status),
      cancel_at_period_end: said('cancel_at_period_end', cancels ? 1 : 0, cancels),
      period_start: said('current_period_start', begins ?? 0, begins),
      period_end: said('current_period_end', ends ?? 0, ends),
      plan_name: said('items', 0, planName(subscription, item)),
      customer: said('customer', 0, idOf(subscription.customer)),
      created: created === null ? null : [earliest(created), created],
    }),
  }
}

/** The best name in the subscription itself: the name of its price, or else the price's id. */
function planName(subscription: ProviderObject, item: ProviderObject | undefined): string | null {
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
