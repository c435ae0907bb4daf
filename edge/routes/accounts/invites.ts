import { z } from 'zod'
import { findRecipientById } from '../../../sql/accounts/accounts.ts'
import { appendAudit } from '../../../sql/audit/audit.ts'
import type { Queries } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { closeInvite, findInvite } from '../../../sql/orgs/invites.ts'
import { insertMember, lockOrganization } from '../../../sql/orgs/orgs.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { type Answer, answerJson, type Input, route, type Writes } from '../../pipeline/route.ts'
import {
  addTokenToInvite,
  buildAcceptanceEvents,
  findInviteByToken,
  requireSameOrganization,
} from '../orgs/access.ts'
import { Invite } from '../orgs/shapes.ts'
import { MailedToken } from './shapes.ts'

const InviteAccept = z.strictObject({ token: MailedToken }).meta({ id: 'InviteAccept' })

export const acceptInviteRoute = route({
  method: 'post',
  path: '/accept-invite',
  allowsOrganizationKeys: true,
  summary: 'Accept an invite to an organization',
  description:
    'The invite must be for the address of the caller. A caller who is already a member keeps their role. With `INVITES_NEED_VERIFICATION=true`, the address of the caller must be verified.',
  body: InviteAccept,
  response: Invite,
  errors: [
    'invite.token',
    'invite.email',
    'invite.unverified',
    'invite.accepted',
    'invite.revoked',
    'invite.expired',
  ],
  sideEffect: true,
  hasCredentials: true,
  addUnstored: addTokenToInvite,
  handle: acceptInvite,
})

type InviteJson = z.input<typeof Invite>

async function acceptInvite(
  input: Input<undefined, undefined, z.output<typeof InviteAccept>, Caller> & Writes<InviteJson>,
): Promise<Answer<InviteJson>> {
  const { body, caller, edge } = input
  const found = await findInviteByToken(edge.db, edge.keys, body.token)
  requireSameOrganization(caller, found.organization_id)
  // Without authentication, the caller has no account to become a member.
  if (caller.ownerId === null || found.email !== emailOf(caller)) throw fail('invite.email')
  const accountId = caller.ownerId
  return input.transaction(async (tx) => {
    const standing = await tx.maybeOne(lockOrganization(found.organization_id, accountId))
    const invite = await tx.maybeOne(findInvite(found.id))
    if (standing === null || invite === null) throw fail('invite.token')
    if (invite.status === 'expired') {
      await tx.maybeOne(closeInvite(invite.id, 'expired'))
      return fail('invite.expired')
    }
    if (invite.status !== 'pending') throw fail(`invite.${invite.status}`)
    await requireVerification(edge, tx, accountId)
    const wasMember = standing.role !== null
    if (!wasMember) await tx.run(insertMember(invite.organization_id, accountId, invite.role))
    const accepted = await tx.one(closeInvite(invite.id, 'accepted'))
    const account = { id: accountId, actorId: accountId, wasMember }
    await tx.run(appendAudit(buildAcceptanceEvents(input, invite, account)))
    return answerJson(accepted.json)
  })
}

/** Requires a verified address if the settings do. @throws invite.unverified */
async function requireVerification(edge: Edge, tx: Queries, accountId: number): Promise<void> {
  if (!edge.settings.invitesNeedVerification) return
  const account = await tx.maybeOne(findRecipientById(accountId))
  if (account?.is_verified !== true) throw fail('invite.unverified')
}

const emailOf = (caller: Caller): string => (JSON.parse(caller.profile) as { email: string }).email
