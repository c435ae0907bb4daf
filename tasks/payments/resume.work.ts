import type { TaskContext } from '../context.ts'
import { changeAtProvider, readSubscription } from './change-at-provider.ts'
import type { Subscription } from './shapes.ts'

/** Runs `payments.resume`. */
export async function run(
  ctx: TaskContext,
  payload: { readonly subscription_id: number; readonly provider_subscription_id: string },
): Promise<Subscription> {
  const id = payload.provider_subscription_id
  const fields = { cancel_at_period_end: true, cancel_at: null }
  await changeAtProvider(ctx, id, 'resume', fields, (call) =>
    ctx.providers.payments.resumeSubscription(id, call),
  )
  return readSubscription(ctx, payload.subscription_id)
}
