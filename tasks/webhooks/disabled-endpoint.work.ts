import { findDisabledEndpoint } from '../../sql/webhooks/webhooks.ts'
import { composeDisabledWebhookEmail } from '../accounts/emails.ts'
import { mailOnce } from '../accounts/mail.ts'
import type { TaskContext } from '../context.ts'

/** Runs `accounts.webhook_disabled`. */
export async function run(
  ctx: TaskContext,
  { endpoint_id, account_id }: { readonly endpoint_id: number; readonly account_id: number },
): Promise<Record<string, never>> {
  const found = await ctx.db.maybeOne(findDisabledEndpoint(endpoint_id, account_id))
  if (found !== null) await mailOnce(ctx, found.email, composeDisabledWebhookEmail(found, endpoint_id))
  return {}
}
