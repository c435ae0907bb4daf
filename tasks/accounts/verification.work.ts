import { findRecipientById, insertMailedToken } from '../../sql/accounts/accounts.ts'
import type { TaskContext } from '../context.ts'
import { composeVerificationEmail } from './emails.ts'
import { mailUnsolicited } from './mail.ts'
import { digestOf, mailedTokenOf } from './tokens.ts'

/** Runs `accounts.verification`. */
export async function run(
  ctx: TaskContext,
  { account_id, redirect_to }: { readonly account_id: number; readonly redirect_to?: string | undefined },
): Promise<Record<string, never>> {
  const { db, job, settings, secretKey } = ctx
  const to = await db.maybeOne(findRecipientById(account_id))
  if (to === null || to.is_verified) return {}
  // Derives the token from the job's id, so that a retry sends the same message.
  const token = mailedTokenOf(secretKey, 'verify', job.id)
  const stored = insertMailedToken(
    job.id,
    to.id,
    'verify',
    digestOf(token),
    settings.verifyTokenSeconds,
    to.email,
  )
  if ((await db.maybeOne(stored)) === null) return {}
  const target = { base: settings.publicBaseUrl, redirectTo: redirect_to }
  const hours = settings.verifyTokenSeconds / 3600
  const mail = composeVerificationEmail(to, target, token, hours)
  await mailUnsolicited(ctx, to.email, mail, settings.verifyTokenSeconds)
  return {}
}
