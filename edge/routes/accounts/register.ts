import { z } from 'zod'
import { countAdmins, insertAccount, lockFirstAdmin } from '../../../sql/accounts/accounts.ts'
import { appendAudit } from '../../../sql/audit/audit.ts'
import type { Queries } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { lockInvites } from '../../../sql/orgs/invites.ts'
import { RedirectTo } from '../../../tasks/accounts/links.ts'
import { isSetupToken } from '../../../tasks/accounts/tokens.ts'
import { sendVerification } from '../../../tasks/accounts/verification.task.ts'
import { AccountAddress } from '../../../tasks/platform/email-address.ts'
import { enqueue } from '../../../tasks/task.ts'
import { requireAllowedPassword } from '../../passwords/rules.ts'
import type { Edge } from '../../pipeline/context.ts'
import { type Answer, answerJson, type Input, route, type Writes } from '../../pipeline/route.ts'
import { buildAuditEvent } from '../../pipeline/write/audit.ts'
import { acceptPendingInvites, findInviteByToken } from '../orgs/access.ts'
import { resolveRedirect } from './redirects.ts'
import { MailedToken, PASSWORD_ERRORS, Password, User } from './shapes.ts'
import { beginSession, buildSessionCookies } from './sign-in.ts'

const NewUser = z
  .strictObject({
    email: AccountAddress,
    password: Password,
    full_name: z.string().trim().max(200).nullish(),
    is_active: z.boolean().default(true),
    setup_token: z.string().max(100).nullish(),
    invite_token: MailedToken.nullish(),
    redirect_to: RedirectTo,
  })
  .meta({ id: 'UserCreate' })

export const registerRoute = route({
  method: 'post',
  path: '/register',
  summary: 'Create an account and sign in',
  description:
    'Accepts the pending invites of the address, and emails a token that verifies it. With `INVITES_NEED_VERIFICATION=true`, the invites wait for that verification. With the `invite_token` of its invite, an address registers even if registration is closed. With the `setup_token` of the setup link that each start prints, the account becomes the first admin, even if registration is closed. In development on a loopback address, the first registered account becomes an admin without it.',
  auth: 'public',
  body: NewUser,
  response: User,
  errors: [
    ...PASSWORD_ERRORS,
    'account.email_taken',
    'account.setup_token',
    'auth.registration_closed',
    'invite.token',
    'invite.email',
    'invite.accepted',
    'invite.revoked',
    'invite.expired',
  ],
  sideEffect: true,
  hasCredentials: true,
  signsIn: true,
  limit: 'register',
  handle: register,
})

type UserJson = z.input<typeof User>

async function register(
  input: Input<undefined, undefined, z.output<typeof NewUser>, unknown> & Writes<UserJson>,
): Promise<Answer<UserJson>> {
  const { body, edge, exchange, requestId } = input
  if (body.invite_token) await requireInvite(edge, edge.db, body.email, body.invite_token)
  else if (!edge.settings.registrationEnabled && !body.setup_token) throw fail('auth.registration_closed')
  const redirect = resolveRedirect(edge, body)
  await requireAllowedPassword(edge, body.password, body.email)
  const passwordHash = await edge.passwords.hash(body.password)
  return input.transaction(async (tx) => {
    const isFirst = await isFirstAdmin(edge, tx, body)
    // The address is locked before its row, in the order that email changes use.
    await tx.run(lockInvites(body.email))
    // The invite may have been revoked since the check above.
    if (body.invite_token) await requireInvite(edge, tx, body.email, body.invite_token)
    const account = await tx.one(
      insertAccount({
        email: body.email,
        passwordHash,
        fullName: body.full_name || null,
        role: isFirst ? 'admin' : 'user',
        isActive: body.is_active,
      }),
    )
    const { id } = account
    const session = await beginSession(edge, tx, id, exchange)
    const from = { caller: null, requestId, exchange }
    const events = [buildAuditEvent(from, 'account.registered', { actorId: id, accountId: id })]
    if (!edge.settings.invitesNeedVerification)
      events.push(...(await acceptPendingInvites(tx, from, id, body.email)))
    await tx.run(appendAudit(events))
    const options = { ownerId: null, requestId, settings: edge.settings }
    await enqueue(tx, sendVerification, { account_id: id, ...redirect }, options)
    if (isFirst)
      tx.afterCommit(() => edge.log.warn({ account: id }, 'The registered account became the first admin'))
    const accessToken = await edge.authenticator.sign(account, session.sessionId, session.secondsLeft)
    return answerJson(account.json, { headers: buildSessionCookies(edge, accessToken, session) })
  })
}

/**
 * Requires a pending invite of the address.
 * @throws invite.token, invite.email, or the error of the invite's status.
 */
async function requireInvite(edge: Edge, queries: Queries, email: string, token: string): Promise<void> {
  const invite = await findInviteByToken(queries, edge.keys, token)
  if (invite.email !== email) throw fail('invite.email')
  if (invite.status !== 'pending') throw fail(`invite.${invite.status}`)
}

/**
 * True if a registration creates the first admin.
 * @throws account.setup_token if it has a setup token but does not create the first admin.
 */
async function isFirstAdmin(edge: Edge, tx: Queries, body: z.output<typeof NewUser>): Promise<boolean> {
  const { setup_token: token, is_active: isActive } = body
  if (!token) return isActive && edge.settings.firstAccountIsAdmin && (await lacksAdmin(tx))
  const isRight = isSetupToken(edge.keys, token)
  if (isRight && isActive && (await lacksAdmin(tx))) return true
  throw fail('account.setup_token')
}

/** True if there is no admin. If so, registrations are serialized, so that only one creates the first admin. */
async function lacksAdmin(tx: Queries): Promise<boolean> {
  if ((await tx.one(countAdmins())).admins > 0) return false
  await tx.run(lockFirstAdmin())
  return (await tx.one(countAdmins())).admins === 0
}
