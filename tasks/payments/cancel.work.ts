import { fail } from '../../sql/errors.ts'
import { findSubscriptionState } from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import { cancelAtProvider } from './change-at-provider.ts'
import type { Cancellation } from './shapes.ts'

/** Runs `payments.cancel`. */
export async function run(
  ctx: TaskContext,
  payload: { readonly subscription_id: number; readonly provider_subscription_id: string },
): Promise<Cancellation> {
  await cancelAtProvider(ctx, payload.provider_subscription_id)
  const state = await ctx.db.maybeOne(findSubscriptionState(payload.subscription_id))
  if (state === null) throw fail('subscription.missing')
  return {
    status: state.status,
    cancel_at_period_end: state.cancel_at_period_end ? ('true' as const) : ('false' as const),
  }
}
