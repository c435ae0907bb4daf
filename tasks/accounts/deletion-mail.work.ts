import { readDeletionNotice } from '../../sql/accounts/deletions.ts'
import type { TaskContext } from '../context.ts'
import { composeDeletionEmail } from './emails.ts'
import { mailOnce } from './mail.ts'

/** Runs `accounts.deletion-mail`. */
export async function run(
  ctx: TaskContext,
  { account_id }: { readonly account_id: number },
): Promise<Record<string, never>> {
  const to = await ctx.db.maybeOne(readDeletionNotice(account_id))
  if (to !== null) await mailOnce(ctx, to.email, composeDeletionEmail(to))
  return {}
}
