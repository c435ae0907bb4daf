import { z } from 'zod'
import { endSessions, invalidateMailedTokens } from '../../../sql/accounts/accounts.ts'
import {
  ADDRESS_SIDES,
  beginEmailChange,
  cancelEmailChange,
  confirmEmailChange,
  readEmailChange,
  refuseEmailChange,
} from '../../../sql/accounts/email-changes.ts'
import { appendAudit } from '../../../sql/audit/audit.ts'
import type { Transaction } from '../../../sql/db.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { sendEmailChangeMail } from '../../../tasks/accounts/email-change.task.ts'
import { RedirectTo } from '../../../tasks/accounts/links.ts'
import { digestOf, emailChangeTokensOf } from '../../../tasks/accounts/tokens.ts'
import { enqueueAddressUpdate } from '../../../tasks/payments/address.task.ts'
import { AccountAddress } from '../../../tasks/platform/email-address.ts'
import { enqueueMany } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { Timestamp } from '../../pipeline/request/schemas.ts'
import { type Answer, answerJson, type Input, route, type Writes } from '../../pipeline/route.ts'
import { appendAuditEvent, buildAuditEvent } from '../../pipeline/write/audit.ts'
import { acceptPendingInvites } from '../orgs/access.ts'
import { checkProof, isFailure, PROOF_DESCRIPTION, PROOF_ERRORS, proofFields } from './proof.ts'
import { resolveRedirect } from './redirects.ts'
import { Detail, MailedToken } from './shapes.ts'

const EmailChange = z
  .strictObject({
    email: z.string(),
    old_confirmed: z.boolean(),
    new_confirmed: z.boolean(),
    created_at: Timestamp,
    expires_at: Timestamp,
  })
  .meta({ id: 'EmailChange' })

const EmailChangeRequest = z
  .strictObject({ email: AccountAddress, redirect_to: RedirectTo, ...proofFields })
  .meta({ id: 'EmailChangeRequest' })

const Confirmation = z.strictObject({ token: MailedToken }).meta({ id: 'EmailChangeConfirmation' })

/** Routes that change the email address of an account. */
export const emailRoutes = [
  route({
    method: 'post',
    path: '/me/email',
    summary: 'Request an email change',
    description: `Emails one token to the current address and one to the new address. The address changes once both \
tokens are used, within \`VERIFY_TOKEN_HOURS\`. Replaces a pending change. With \`redirect_to\`, the link that refuses also has \`action=refuse\`. ${PROOF_DESCRIPTION} The response does not reveal \
whether the new address already has an account; if it has, the email to it says that the change cannot be confirmed. An \
address gets at most ten such emails an hour.`,
    body: EmailChangeRequest,
    response: EmailChange,
    status: 201,
    errors: ['account.email_same', ...PROOF_ERRORS],
    sideEffect: true,
    hasCredentials: true,
    needsSession: true,
    limit: 'passwordReset',
    handle: beginChange,
  }),

  route({
    method: 'get',
    path: '/me/email',
    summary: 'Get the pending email change',
    response: EmailChange,
    errors: ['account.email_change_missing'],
    needsSession: true,
    handle: async ({ caller, edge }) => {
      const text = await edge.reader.text(readEmailChange, [caller.ownerId ?? 0])
      if (text === null) throw fail('account.email_change_missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'delete',
    path: '/me/email',
    summary: 'Cancel the pending email change',
    description: 'Its tokens become invalid.',
    errors: ['account.email_change_missing'],
    needsSession: true,
    handle: (input) =>
      input.transaction(async (tx) => {
        const change = await tx.maybeOne(cancelEmailChange(input.caller.ownerId ?? 0))
        if (change === null) throw fail('account.email_change_missing')
        const eventFields = { accountId: input.caller.id, data: { email: change.email } }
        await tx.run(appendAuditEvent(input, 'account.email_change_cancelled', eventFields))
        return undefined
      }),
  }),

  route({
    method: 'post',
    path: '/email-change/confirm',
    summary: 'Confirm an email change',
    description: `Takes the two emailed tokens in either order. With the second one, the new address takes effect and \
counts as verified, and its pending invites are accepted. Every session ends except the one that requested the change, and \
tokens emailed to the previous address become invalid.`,
    auth: 'public',
    body: Confirmation,
    response: Detail,
    errors: ['account.token', 'account.email_taken'],
    sideEffect: true,
    handle: (input) => input.transaction((tx) => confirmChange(tx, input)),
  }),

  route({
    method: 'post',
    path: '/email-change/refuse',
    summary: 'Refuse an email change',
    description:
      'Takes either emailed token. The account keeps its address, and the other token becomes invalid.',
    auth: 'public',
    body: Confirmation,
    response: Detail,
    errors: ['account.token'],
    sideEffect: true,
    handle: (input) =>
      input.transaction(async (tx) => {
        const change = await tx.maybeOne(refuseEmailChange(digestOf(input.body.token)))
        if (change === null) throw fail('account.token')
        const { account_id: accountId, email, side } = change
        const eventFields = { actorId: null, accountId, data: { email, by: side } }
        await tx.run(appendAuditEvent(input, 'account.email_change_refused', eventFields))
        return { detail: 'The email change has been refused' }
      }),
  }),
]

type BeginInput = Input<undefined, undefined, z.output<typeof EmailChangeRequest>, Caller> &
  Writes<z.input<typeof EmailChange>>

async function beginChange(input: BeginInput): Promise<Answer<z.input<typeof EmailChange>>> {
  const { body, caller, edge, requestId } = input
  const { keys, settings } = edge
  const redirect = resolveRedirect(edge, body)
  const proof = await checkProof(input, body)
  return input.transaction(async (tx) => {
    const identity = await proof.confirm(tx)
    if (isFailure(identity)) return identity
    if (identity.email === body.email) return fail('account.email_same')
    const id = uuidv7()
    const digest = (side: (typeof ADDRESS_SIDES)[number]) => digestOf(emailChangeTokensOf(keys, side, id)[0]!)
    const change = await tx.one(
      beginEmailChange({
        id,
        accountId: caller.id,
        email: body.email,
        sessionId: caller.sessionId,
        digests: { old: digest('old'), new: digest('new') },
        lifetimeSeconds: settings.verifyTokenSeconds,
      }),
    )
    const eventFields = { accountId: caller.id, data: { email: body.email } }
    await tx.run(appendAuditEvent(input, 'account.email_change_requested', eventFields))
    const options = { ownerId: null, requestId, settings }
    const payloads = ADDRESS_SIDES.map((side) => ({
      account_id: caller.id,
      change_id: id,
      side,
      ...redirect,
    }))
    await enqueueMany(tx, sendEmailChangeMail, payloads, options)
    return answerJson(change.json)
  })
}

type ConfirmInput = Input<undefined, undefined, z.output<typeof Confirmation>, Caller | null>

async function confirmChange(
  tx: Transaction,
  input: ConfirmInput,
): Promise<z.input<typeof Detail> | Failure> {
  const { edge } = input
  const change = await tx.maybeOne(confirmEmailChange(digestOf(input.body.token)))
  if (change === null) throw fail('account.token')
  const { account_id: id, old_email: from, new_email: to, side } = change
  const eventFields = { actorId: id, accountId: id }
  const event = buildAuditEvent(input, 'account.email_change_confirmed', {
    ...eventFields,
    data: { email: to, by: side },
  })
  if (change.outcome !== 'changed') {
    await tx.run(appendAudit([event]))
    // Return the failure, because throwing it would roll back the end of the change. The caller may see that the
    // address is taken, because both addresses have confirmed.
    if (change.outcome === 'taken') return fail('account.email_taken')
    return { detail: 'Confirmed; the address changes once the other address confirms it, too' }
  }
  const events = [
    event,
    buildAuditEvent(input, 'account.email_changed', { ...eventFields, data: { from, to } }),
  ]
  await tx.run(appendAudit([...events, ...(await acceptPendingInvites(tx, input, id, to))]))
  await tx.run(endSessions(id, change.session_id))
  await tx.run(invalidateMailedTokens(id))
  await edge.authenticator.invalidate(tx, id)
  await enqueueAddressUpdate(tx, id, { requestId: input.requestId, settings: edge.settings })
  return { detail: 'The email address has been changed' }
}
