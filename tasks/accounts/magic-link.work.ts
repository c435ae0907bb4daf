import { findRecipientByEmail } from '../../sql/accounts/accounts.ts'
import type { TaskContext } from '../context.ts'
import { composeMagicLinkEmail, type LinkTarget } from './emails.ts'
import { mailToken } from './token-mail.ts'

/** Runs `accounts.magic-link`. */
export async function run(
  ctx: TaskContext,
  { email, redirect_to }: { readonly email: string; readonly redirect_to?: string | undefined },
): Promise<Record<string, never>> {
  const { magicLinkSeconds: seconds } = ctx.settings
  const to = await ctx.db.maybeOne(findRecipientByEmail(email))
  if (seconds === null || to === null || !to.is_active) return {}
  const compose = (target: LinkTarget, token: string) =>
    composeMagicLinkEmail(to, target, token, seconds / 60)
  await mailToken(ctx, to, { kind: 'sign_in', seconds, redirectTo: redirect_to, compose })
  return {}
}
