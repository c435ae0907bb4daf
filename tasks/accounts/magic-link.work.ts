import { findRecipientByEmail, insertMailedToken } from '../../sql/accounts/accounts.ts'
import type { TaskContext } from '../context.ts'
import { composeMagicLinkEmail } from './emails.ts'
import { mailUnsolicited } from './mail.ts'
import { digestOf, mailedTokenOf } from './tokens.ts'

/** Runs `accounts.magic-link`. */
export async function run(
  ctx: TaskContext,
  { email, redirect_to }: { readonly email: string; readonly redirect_to?: string | undefined },
): Promise<Record<string, never>> {
  const { db, job, settings, secretKey } = ctx
  const { magicLinkSeconds: seconds } = settings
  const to = await db.maybeOne(findRecipientByEmail(email))
  if (seconds === null || to === null || !to.is_active) return {}
  const token = mailedTokenOf(secretKey, 'sign_in', job.id)
  const stored = insertMailedToken(job.id, to.id, 'sign_in', digestOf(token), seconds, to.email)
  if ((await db.maybeOne(stored)) === null) return {}
  const target = { base: settings.publicBaseUrl, redirectTo: redirect_to }
  await mailUnsolicited(ctx, to.email, composeMagicLinkEmail(to, target, token, seconds / 60))
  return {}
}
