import { findRecipientByEmail, insertMailedToken } from '../../sql/accounts/accounts.ts'
import type { TaskContext } from '../context.ts'
import { composePasswordResetEmail } from './emails.ts'
import { mailUnsolicited } from './mail.ts'
import { digestOf, mailedTokenOf } from './tokens.ts'

/** Runs `accounts.password-reset`. */
export async function run(
  ctx: TaskContext,
  { email, redirect_to }: { readonly email: string; readonly redirect_to?: string | undefined },
): Promise<Record<string, never>> {
  const { db, job, settings, secretKey } = ctx
  const to = await db.maybeOne(findRecipientByEmail(email))
  if (to === null || !to.is_active) return {}
  const token = mailedTokenOf(secretKey, 'reset', job.id)
  const stored = insertMailedToken(
    job.id,
    to.id,
    'reset',
    digestOf(token),
    settings.resetTokenSeconds,
    to.email,
  )
  if ((await db.maybeOne(stored)) === null) return {}
  const target = { base: settings.publicBaseUrl, redirectTo: redirect_to }
  const minutes = settings.resetTokenSeconds / 60
  const mail = composePasswordResetEmail(to, target, token, minutes)
  await mailUnsolicited(ctx, to.email, mail, settings.resetTokenSeconds)
  return {}
}
