import { findRecipientById } from '../../sql/accounts/accounts.ts'
import type { TaskContext } from '../context.ts'
import { composeNoticeEmail } from './emails.ts'
import { mailUnsolicited } from './mail.ts'

interface Payload {
  readonly account_id: number
  readonly what: Parameters<typeof composeNoticeEmail>[1]
  readonly name?: string | undefined
}

/**
 * Sends the email of `accounts.notice`. These emails are rate-limited, because the account may have been registered
 * with another person's address.
 */
export async function run(
  ctx: TaskContext,
  { account_id, what, name }: Payload,
): Promise<Record<string, never>> {
  const to = await ctx.db.maybeOne(findRecipientById(account_id))
  if (to !== null) await mailUnsolicited(ctx, to.email, composeNoticeEmail(to, what, name))
  return {}
}
