import { findRecipientById } from '../../sql/accounts/accounts.ts'
import type { TaskContext } from '../context.ts'
import { composeVerificationEmail, type LinkTarget } from './emails.ts'
import { mailToken } from './token-mail.ts'

/** Runs `accounts.verification`. */
export async function run(
  ctx: TaskContext,
  { account_id, redirect_to }: { readonly account_id: number; readonly redirect_to?: string | undefined },
): Promise<Record<string, never>> {
  const to = await ctx.db.maybeOne(findRecipientById(account_id))
  if (to === null || to.is_verified) return {}
  const { verifyTokenSeconds: seconds } = ctx.settings
  const compose = (target: LinkTarget, token: string) =>
    composeVerificationEmail(to, target, token, seconds / 3600)
  await mailToken(ctx, to, { kind: 'verify', seconds, redirectTo: redirect_to, compose })
  return {}
}
