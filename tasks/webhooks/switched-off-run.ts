import { switchedOff } from '../../sql/webhooks.ts'
import { webhookEmail } from '../accounts/emails.ts'
import { mailOnce } from '../accounts/mail.ts'
import type { TaskContext } from '../context.ts'

/** Runs `accounts.webhook_switched_off`. */
export async function run(
  ctx: TaskContext,
  { endpoint_id }: { readonly endpoint_id: number },
): Promise<Record<string, never>> {
  const found = await ctx.db.maybeOne(switchedOff(endpoint_id))
  if (found !== null) await mailOnce(ctx, found.email, webhookEmail(found, endpoint_id))
  return {}
}
