import { insertMailedToken, type MailedTokenKind } from '../../sql/accounts/accounts.ts'
import type { TaskContext } from '../context.ts'
import type { Email, LinkTarget, Recipient } from './emails.ts'
import { mailUnsolicited } from './mail.ts'
import { digestOf, findToken, mailedTokensOf } from './tokens.ts'

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
  const { db, job, settings, keys } = ctx
  // Derives the token from the job's id, so that a retry sends the same message.
  const tokens = mailedTokensOf(keys, kind, job.id)
  const stored = await db.maybeOne(
    insertMailedToken(job.id, to.id, kind, digestOf(tokens[0]!), seconds, to.email),
  )
  if (stored === null) return
  const token = findToken(tokens, stored.digest)
  if (token === null) throw new Error('The token of an earlier attempt was made under an unknown SECRET_KEY')
  await mailUnsolicited(ctx, to.email, compose({ base: settings.publicBaseUrl, redirectTo }, token), seconds)
}
