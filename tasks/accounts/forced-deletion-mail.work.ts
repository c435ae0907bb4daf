import { findRecipientById } from '../../sql/accounts/accounts.ts'
import type { TaskContext } from '../context.ts'
import { composeForcedDeletionEmail } from './emails.ts'
import { mailOnce } from './mail.ts'

interface Payload {
  readonly admin_id: number
  readonly account_id: number
  readonly subscriptions: readonly string[]
}

/** Runs `accounts.forced-deletion-mail`. */
export async function run(
  ctx: TaskContext,
  { admin_id, account_id, subscriptions }: Payload,
): Promise<Record<string, never>> {
  const to = await ctx.db.maybeOne(findRecipientById(admin_id))
  if (to !== null) await mailOnce(ctx, to.email, composeForcedDeletionEmail(to, account_id, subscriptions))
  return {}
}
