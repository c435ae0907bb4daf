import { insertMailedToken, type MailedTokenKind } from '../../sql/accounts/accounts.ts'
import type { TaskContext } from '../context.ts'
import type { Email, LinkTarget, Recipient } from './emails.ts'
import { mailUnsolicited } from './mail.ts'
import { digestOf, mailedTokenOf } from './tokens.ts'

interface TokenMail {
  readonly kind: MailedTokenKind
  readonly seconds: number
  /** Page for the link; undefined leads to this service's own page. */
  readonly redirectTo: string | undefined
  readonly compose: (target: LinkTarget, token: string) => Email
}

/** Emails a token to an account, and retries until the token expires. Does nothing if the token is already used. */
export async function mailToken(
  ctx: TaskContext,
  to: Recipient & { readonly id: number },
  { kind, seconds, redirectTo, compose }: TokenMail,
): Promise<void> {
  const { db, job, settings, secretKey } = ctx
  // Derives the token from the job's id, so that a retry sends the same message.
  const token = mailedTokenOf(secretKey, kind, job.id)
  const stored = insertMailedToken(job.id, to.id, kind, digestOf(token), seconds, to.email)
  if ((await db.maybeOne(stored)) === null) return
  await mailUnsolicited(ctx, to.email, compose({ base: settings.publicBaseUrl, redirectTo }, token), seconds)
}
