import { type Failure, fail } from '../../../sql/errors.ts'
import type { NewPlan } from '../../../tasks/payments/provider.ts'
import { idOf } from '../../../tasks/payments/reading.ts'
import { isReplay, nullIfMissing } from './answers.ts'
import type { Stripe } from './client.ts'

/**
 * Changes of running subscriptions. Each first reads the subscription, so that a repeated attempt changes nothing and a
 * refusal names its reason.
 */

type Subscription = Stripe.Response<Stripe.Subscription>

const refuse = (reason: string): Failure => fail('subscription.unchangeable', { reason })

/** Replaces the only price of a subscription. */
export async function changePlan(
  client: Stripe,
  id: string,
  { priceId, proration }: NewPlan,
  key: string,
): Promise<Subscription> {
  const current = await findChangeable(client, id)
  if (idOf(current.schedule) !== null) throw refuse('a schedule manages it')
  const [item, ...others] = current.items.data
  if (item === undefined || others.length > 0) throw refuse('it does not have exactly one price')
  if (item.price.id === priceId) return current
  await requirePrice(client, priceId, current.currency)
  const changed = await client.subscriptions.update(
    id,
    { items: [{ id: item.id, price: priceId }], proration_behavior: proration },
    { idempotencyKey: key },
  )
  return isReplay(changed) ? client.subscriptions.retrieve(id) : changed
}

/** Removes the set end of a subscription. Releases it first from a schedule that manages it. */
export async function resume(client: Stripe, id: string, key: string): Promise<Subscription> {
  let current = await findChangeable(client, id)
  const schedule = idOf(current.schedule)
  if (schedule !== null) {
    await client.subscriptionSchedules.release(schedule, {}, { idempotencyKey: `${key}:release` })
    current = await client.subscriptions.retrieve(id)
  }
  if (!current.cancel_at_period_end && typeof current.cancel_at !== 'number') return current
  // Stripe rejects a request with both fields. Only the one that sets the end can remove it.
  const params = current.cancel_at_period_end ? { cancel_at_period_end: false } : { cancel_at: '' as const }
  const changed = await client.subscriptions.update(id, params, { idempotencyKey: key })
  return isReplay(changed) ? client.subscriptions.retrieve(id) : changed
}

/** Returns a subscription that has neither ended nor still waits for its first payment. */
async function findChangeable({ subscriptions }: Stripe, id: string): Promise<Subscription> {
  const current = await nullIfMissing(subscriptions.retrieve(id))
  if (current === null) throw refuse('the payment provider does not have it')
  if (current.status === 'canceled' || current.status === 'incomplete_expired')
    throw fail('subscription.canceled')
  if (current.status === 'incomplete') throw refuse('its first payment is open')
  return current
}

/** Requires that a subscription of this currency can have the price. */
async function requirePrice({ prices }: Stripe, id: string, currency: string | undefined): Promise<void> {
  const price = await nullIfMissing(prices.retrieve(id))
  if (price === null) throw refuse('there is no such price')
  if (!price.active) throw refuse('the price is not active')
  if (price.type !== 'recurring') throw refuse('the price is not recurring')
  const currencies = [price.currency, ...Object.keys(price.currency_options ?? {})]
  if (currency !== undefined && !currencies.includes(currency))
    throw refuse(`the price is in ${price.currency}, and the subscription in ${currency}`)
}
