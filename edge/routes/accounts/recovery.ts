import { z } from 'zod'
import {
  endSessions,
  findMailedToken,
  markAddressVerified,
  redeemMailedToken,
  setPassword,
} from '../../../sql/accounts/accounts.ts'
import {
  findRefreshTokenHolder,
  lockFactors,
  revokeCredentials,
  revokeIssuedCredentials,
  revokeKeys,
} from '../../../sql/accounts/credentials.ts'
import { fail } from '../../../sql/errors.ts'
import { unlockLogin } from '../../../sql/limits/limits.ts'
import { lockInvites } from '../../../sql/orgs/invites.ts'
import { RedirectTo } from '../../../tasks/accounts/links.ts'
import { sendPasswordResetMail } from '../../../tasks/accounts/password-reset.task.ts'
import { digestOf } from '../../../tasks/accounts/tokens.ts'
import { sendVerification } from '../../../tasks/accounts/verification.task.ts'
import { AccountAddress } from '../../../tasks/platform/email-address.ts'
import { enqueue } from '../../../tasks/task.ts'
import { requireAllowedPassword } from '../../passwords/rules.ts'
import { isUnauthenticated } from '../../pipeline/access/challenges.ts'
import { type Input, route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { auditVerification } from '../orgs/access.ts'
import { readRefreshCookie } from './cookies.ts'
import { checkProof, factorFields, isFailure, PROOF_ERRORS } from './proof.ts'
import { resolveRedirect } from './redirects.ts'
import { CurrentPassword, Detail, MailedToken, PASSWORD_ERRORS, Password } from './shapes.ts'

/** Routes that recover passwords and verify email addresses. */
export const recoveryRoutes = [
  route({
    method: 'post',
    path: '/password-reset/request',
    summary: 'Request a password reset',
    description:
      'Emails a token that sets a new password. An address gets at most ten such emails an hour. The response reveals neither \
that limit nor whether the address has an account.',
    auth: 'public',
    body: z
      .strictObject({ email: AccountAddress, redirect_to: RedirectTo })
      .meta({ id: 'PasswordResetRequest' }),
    response: Detail,
    sideEffect: true,
    limit: 'passwordReset',
    handle: (input) => {
      const { body, edge, requestId } = input
      const payload = { email: body.email, ...resolveRedirect(edge, body) }
      // The job looks up the account, so that this request takes the same time for every address.
      const options = { ownerId: null, requestId, settings: edge.settings }
      return input.transaction(async (tx) => {
        await tx.run(appendAuditEvent(input, 'account.password_reset_requested', {}))
        await enqueue(tx, sendPasswordResetMail, payload, options)
        return { detail: 'If the address has an account, an email with a reset token is on its way' }
      })
    },
  }),

  route({
    method: 'post',
    path: '/password-reset/confirm',
    summary: 'Set a new password with an emailed token',
    description: `Ends every session of the account and lifts its lock. Deletes API keys, and webhook endpoints that were \
added with them, unless \`keep_keys\` is true. An unverified address becomes verified. Because someone else may have \
registered it, the API keys, passkeys, one-time codes, webhook endpoints and pending email change of that account are then \
deleted in any case.`,
    auth: 'public',
    body: z
      .strictObject({ token: MailedToken, new_password: Password, keep_keys: z.boolean().default(false) })
      .meta({ id: 'PasswordResetConfirm' }),
    response: Detail,
    errors: ['account.token', ...PASSWORD_ERRORS],
    sideEffect: true,
    hasCredentials: true,
    handle: async (input) => {
      const { body, edge } = input
      const digest = digestOf(body.token)
      // Check the token before computing the hash, so that a guess costs little.
      const owner = await edge.db.maybeOne(findMailedToken('reset', digest))
      if (owner !== null) await requireAllowedPassword(edge, body.new_password, owner.email)
      const passwordHash = owner === null ? null : await edge.passwords.hash(body.new_password)
      return input.transaction(async (tx) => {
        if (owner === null || passwordHash === null) throw fail('account.token')
        await tx.run(lockInvites(owner.email))
        // Same lock order as a login.
        await tx.run(unlockLogin(digestOf(owner.email)))
        await tx.run(lockFactors(owner.email))
        const token = await tx.maybeOne(redeemMailedToken('reset', digest))
        if (token === null) throw fail('account.token')
        const { account_id: id } = token
        await tx.run(setPassword(id, passwordHash))
        const isNewlyVerified = (await tx.run(markAddressVerified(id))) > 0
        await tx.run(
          isNewlyVerified ? revokeCredentials(id) : body.keep_keys ? endSessions(id, null) : revokeKeys(id),
        )
        const eventFields = { actorId: id, accountId: id }
        await tx.run(appendAuditEvent(input, 'account.password_reset', eventFields))
        if (isNewlyVerified) await auditVerification(tx, input, token)
        await edge.authenticator.invalidate(tx, id)
        return { detail: 'The password has been set; sign in with it' }
      })
    },
  }),

  route({
    method: 'post',
    path: '/change-password',
    summary: 'Change the password of the caller',
    description:
      'Requires the current password, with a one-time code if those are enabled; wrong ones count as failed logins. Ends every other session of the caller.',
    body: z
      .strictObject({ current_password: CurrentPassword, new_password: Password, ...factorFields })
      .meta({ id: 'PasswordChange' }),
    response: Detail,
    errors: [...PROOF_ERRORS, ...PASSWORD_ERRORS],
    sideEffect: true,
    hasCredentials: true,
    needsSession: true,
    handle: async (input) => {
      const { body, caller, edge } = input
      const { current_password: password, new_password, ...factor } = body
      const { email } = JSON.parse(caller.profile) as { email: string }
      await requireAllowedPassword(edge, new_password, email)
      const proof = await checkProof(input, { password, ...factor })
      const passwordHash = proof.passwordMatches ? await edge.passwords.hash(new_password) : null
      const eventFields = { accountId: caller.id }
      return input.transaction(async (tx) => {
        const identity = await proof.confirm(tx)
        if (isFailure(identity)) return identity
        await tx.run(setPassword(caller.id, passwordHash!))
        await tx.run(endSessions(caller.id, caller.sessionId))
        await tx.run(appendAuditEvent(input, 'account.password_changed', eventFields))
        await edge.authenticator.invalidate(tx, caller.id)
        return { detail: 'The password has been changed; all other sessions have ended' }
      })
    },
  }),

  route({
    method: 'post',
    path: '/verify-email',
    summary: 'Verify an email address with an emailed token',
    description: `Because someone else may have registered the address, the first verification deletes the API keys, \
passkeys, one-time codes, webhook endpoints and pending email change of the account. It keeps them if the request has a \
session of the account, or \`keep_credentials\` is true. Sessions continue: set a new password to end them.`,
    auth: 'public',
    body: z
      .strictObject({ token: MailedToken, keep_credentials: z.boolean().default(false) })
      .meta({ id: 'EmailVerification' }),
    response: Detail,
    errors: ['account.token'],
    sideEffect: true,
    handle: async (input) => {
      const { body, edge } = input
      const digest = digestOf(body.token)
      const owner = await edge.db.maybeOne(findMailedToken('verify', digest))
      const keepsCredentials =
        body.keep_credentials || (owner !== null && (await isSignedIn(input, owner.account_id)))
      return input.transaction(async (tx) => {
        if (owner === null) throw fail('account.token')
        await tx.run(lockInvites(owner.email))
        // Factors are locked first, in the order that sign-ins use.
        if (!keepsCredentials) await tx.run(lockFactors(owner.email))
        const used = await tx.maybeOne(redeemMailedToken('verify', digest))
        if (used === null) throw fail('account.token')
        const { account_id: id } = used
        const isNew = (await tx.run(markAddressVerified(id))) > 0
        if (isNew && !keepsCredentials) await tx.run(revokeIssuedCredentials(id))
        await auditVerification(tx, input, used)
        await edge.authenticator.invalidate(tx, id)
        return { detail: 'The address is verified' }
      })
    },
  }),

  route({
    method: 'post',
    path: '/resend-verification',
    summary: 'Email a new verification token to the caller',
    description: 'An address gets at most ten such emails an hour.',
    body: z.strictObject({ redirect_to: RedirectTo }).meta({ id: 'VerificationResend' }).default({}),
    response: Detail,
    sideEffect: true,
    limit: 'passwordReset',
    handle: ({ body, caller, edge, requestId, transaction }) => {
      const redirect = resolveRedirect(edge, body)
      return transaction(async (tx) => {
        if (caller.ownerId === null || (JSON.parse(caller.profile) as { is_verified: boolean }).is_verified)
          return { detail: 'The address is already verified' }
        const options = { ownerId: null, requestId, settings: edge.settings }
        await enqueue(tx, sendVerification, { account_id: caller.id, ...redirect }, options)
        return { detail: 'An email with a verification token is on its way' }
      })
    },
  }),
]

/** True if the access token or refresh cookie of a request belongs to a session of the account. */
async function isSignedIn(
  { edge, request }: Pick<Input<unknown, unknown, unknown, unknown>, 'edge' | 'request'>,
  accountId: number,
): Promise<boolean> {
  try {
    if ((await edge.authenticator.authenticate(request))?.ownerId === accountId) return true
  } catch (error) {
    // An invalid credential counts as none.
    if (!isUnauthenticated(error)) throw error
  }
  const token = readRefreshCookie(edge, request)
  return (
    token !== null &&
    (await edge.db.maybeOne(findRefreshTokenHolder(digestOf(token))))?.account_id === accountId
  )
}
