import { z } from 'zod'
import { findMailedToken, redeemMailedToken } from '../../../sql/accounts/accounts.ts'
import { fail } from '../../../sql/errors.ts'
import { RedirectTo } from '../../../tasks/accounts/links.ts'
import { sendMagicLink } from '../../../tasks/accounts/magic-link.task.ts'
import { digestOf } from '../../../tasks/accounts/tokens.ts'
import { AccountAddress } from '../../../tasks/platform/email-address.ts'
import { enqueue } from '../../../tasks/task.ts'
import { type Answer, route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { checkFactor, findProvenOwner, signInOwner } from './passwordless.ts'
import { factorFields } from './proof.ts'
import { resolveRedirect } from './redirects.ts'
import { Detail, MailedToken, Token } from './shapes.ts'
import type { SignInInput, TokenJson } from './sign-in.ts'

const MagicLink = z.strictObject({ token: MailedToken, ...factorFields }).meta({ id: 'MagicLink' })

/** Routes that sign in with an emailed link. */
export const magicLinkRoutes = [
  route({
    method: 'post',
    path: '/magic-link/request',
    summary: 'Request a link that signs in',
    description:
      'Emails a token that is valid once, for `MAGIC_LINK_MINUTES`. An address gets at most ten such emails an hour. The response reveals neither \
that limit nor whether the address has an account.',
    auth: 'public',
    body: z.strictObject({ email: AccountAddress, redirect_to: RedirectTo }).meta({ id: 'MagicLinkRequest' }),
    response: Detail,
    errors: ['auth.magic_links_off'],
    sideEffect: true,
    limit: 'passwordReset',
    handle: (input) => {
      const { body, edge, requestId } = input
      if (edge.settings.magicLinkSeconds === null) throw fail('auth.magic_links_off')
      const payload = { email: body.email, ...resolveRedirect(edge, body) }
      // The job looks up the account, so that this request takes the same time for every address.
      const options = { ownerId: null, requestId, settings: edge.settings }
      return input.transaction(async (tx) => {
        await tx.run(appendAuditEvent(input, 'account.magic_link_requested', {}))
        await enqueue(tx, sendMagicLink, payload, options)
        return { detail: 'If the address has an account, an email with a link is on its way' }
      })
    },
  }),

  route({
    method: 'post',
    path: '/magic-link',
    summary: 'Sign in with an emailed token',
    description: `Responds like a sign-in with a password. If the account has one-time codes, the token alone is answered with \
401 and the code \`auth.totp_required\`; the token then stays valid. An unverified address becomes verified. Because someone else \
may have registered it, the password and all other credentials of that account end.`,
    auth: 'public',
    body: MagicLink,
    response: Token,
    errors: [
      'account.token',
      'auth.magic_links_off',
      'auth.totp_required',
      'auth.totp_wrong',
      'auth.locked',
      'auth.inactive',
      'auth.sign_in_changed',
    ],
    hasCredentials: true,
    signsIn: true,
    limit: 'login',
    whyRepeatable: 'a token starts one session, and tokens are never stored',
    handle: signInByLink,
  }),
]

async function signInByLink(input: SignInInput<z.output<typeof MagicLink>>): Promise<Answer<TokenJson>> {
  const { body, edge } = input
  if (edge.settings.magicLinkSeconds === null) throw fail('auth.magic_links_off')
  const digest = digestOf(body.token)
  const token = await edge.db.maybeOne(findMailedToken('sign_in', digest))
  const owner = token && (await findProvenOwner(edge, token.account_id))
  return input.transaction(async (tx) => {
    if (owner === null) throw fail('account.token')
    const failure = await checkFactor(input, tx, owner)
    if (failure !== null) return failure
    // Throwing leaves the one-time code unused.
    if ((await tx.maybeOne(redeemMailedToken('sign_in', digest))) === null) throw fail('account.token')
    return signInOwner(input, tx, owner, { method: 'magic_link' })
  })
}
