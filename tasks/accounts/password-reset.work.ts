import { findRecipientByEmail } from '../../sql/accounts/accounts.ts'
import type { TaskContext } from '../context.ts'
import { composePasswordResetEmail, type LinkTarget } from './emails.ts'
import { mailToken } from './token-mail.ts'

/** Runs `accounts.password-reset`. */
export async function run(
  ctx: TaskContext,
  { email, redirect_to }: { readonly email: string; readonly redirect_to?: string | undefined },
): Promise<Record<string, never>> {
  const to = await ctx.db.maybeOne(findRecipientByEmail(email))
  if (to === null || !to.is_active) return {}
  const { resetTokenSeconds: seconds } = ctx.settings
  const compose = (target: LinkTarget, token: string) =>
    composePasswordResetEmail(to, target, token, seconds / 60)
  await mailToken(ctx, to, { kind: 'reset', seconds, redirectTo: redirect_to, compose })
  return {}
}
