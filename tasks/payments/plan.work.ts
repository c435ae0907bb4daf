import type { TaskContext } from '../context.ts'
import { changeAtProvider, readSubscription } from './change-at-provider.ts'
import type { NewPlan } from './provider.ts'
import type { Subscription } from './shapes.ts'

interface PlanPayload {
  readonly subscription_id: number
  readonly provider_subscription_id: string
  readonly price_id: string
  readonly proration: NewPlan['proration']
}

/** Runs `payments.plan`. */
export async function run(
  ctx: TaskContext,
  { subscription_id, provider_subscription_id: id, price_id: priceId, proration }: PlanPayload,
): Promise<Subscription> {
  await changeAtProvider(ctx, id, 'plan', { items: null }, (call) =>
    ctx.providers.payments.changePlan(id, { priceId, proration }, call),
  )
  return readSubscription(ctx, subscription_id)
}
