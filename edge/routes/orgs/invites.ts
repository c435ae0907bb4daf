import { z } from 'zod'
import { appendAudit } from '../../../sql/audit/audit.ts'
import type { Queries, Transaction } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import {
  checkPendingInvite,
  closeInvite,
  expireInvites,
  findInvite,
  INVITE_ORDER,
  type Invitee,
  insertInvite,
  lockAddress,
  type Invite as Row,
  readInvitee,
  readInvites,
  renewInvite,
} from '../../../sql/orgs/invites.ts'
import { insertMember, type OrgRole } from '../../../sql/orgs/orgs.ts'
import { sendInviteMail } from '../../../tasks/accounts/invite.task.ts'
import { RedirectTo } from '../../../tasks/accounts/links.ts'
import { AccountAddress } from '../../../tasks/platform/email-address.ts'
import { enqueue } from '../../../tasks/task.ts'
import { answerArray, buildPageQueryFields, buildPageValues } from '../../pipeline/request/lists.ts'
import { type Answer, answerJson, route } from '../../pipeline/route.ts'
import { appendAuditEvent, buildAuditEvent } from '../../pipeline/write/audit.ts'
import { resolveRedirect } from '../accounts/redirects.ts'
import {
  addTokensToInvites,
  addTokenToInvite,
  buildAcceptanceEvents,
  changeOrganization,
  lockForRole,
  type OrgInput,
  parseRole,
  ROLE_ERRORS,
  requireAccess,
  requireRank,
} from './access.ts'
import { Invite, InviteParams, OrgParams, PAGE_SIZES, RoleName } from './shapes.ts'

const NewInvite = z
  .strictObject({ email: AccountAddress, role: RoleName.default('member'), redirect_to: RedirectTo })
  .meta({ id: 'InviteCreate' })

const PENDING_ERRORS = [
  ...(['org.rank', 'invite.missing', 'invite.accepted', 'invite.revoked', 'invite.expired'] as const),
  ...ROLE_ERRORS,
] as const

/** Routes for invites to an organization. */
export const inviteRoutes = [
  route({
    method: 'post',
    path: '/:org_id/invites',
    summary: 'Invite an address by email',
    description: `If the address has an account, it becomes a member immediately, and the invite counts as accepted. \
Otherwise registration with the address accepts it. With \`INVITES_NEED_VERIFICATION=true\`, \
an address is a member only once its account has verified it. \`RATE_LIMIT_INVITE\` limits the invites of an account, \
except for admins. An address gets at most ten such emails an hour.`,
    params: OrgParams,
    body: NewInvite,
    response: Invite,
    status: 201,
    errors: [
      'org.role',
      'org.rank',
      'org.owner_inactive',
      'member.exists',
      'invite.pending',
      'account.missing',
      ...ROLE_ERRORS,
    ],
    sideEffect: true,
    hasCredentials: true,
    limit: 'invite',
    addUnstored: addTokenToInvite,
    handle: (input) => input.transaction((tx) => inviteAddress(tx, input)),
  }),

  route({
    method: 'get',
    path: '/:org_id/invites',
    summary: 'List pending invites, oldest first',
    params: OrgParams,
    query: z.object(buildPageQueryFields(INVITE_ORDER, PAGE_SIZES)),
    response: z.array(Invite),
    errors: ROLE_ERRORS,
    hasCredentials: true,
    reads: 'list',
    handle: async ({ params, query, caller, edge, reader, request }) => {
      const values = [params.org_id, caller.ownerId, ...buildPageValues(query)] as const
      const text = requireAccess(await reader.text(readInvites, values))
      return answerArray(text, request, (invites) => addTokensToInvites(edge, invites))
    },
  }),

  route({
    method: 'delete',
    path: '/:org_id/invites/:invite_id',
    summary: 'Revoke a pending invite',
    params: InviteParams,
    errors: PENDING_ERRORS,
    handle: (input) =>
      changeOrganization(input, 'admin', async (tx, ownRole) => {
        const {
          id,
          email,
          organization_id: organizationId,
        } = await requirePendingInvite(tx, input.params, ownRole)
        await tx.one(closeInvite(id, 'revoked'))
        await tx.run(
          appendAuditEvent(input, 'invite.revoked', { organizationId, data: { invite: id, email } }),
        )
        return undefined
      }),
  }),

  route({
    method: 'post',
    path: '/:org_id/invites/:invite_id/resend',
    summary: 'Resend a pending invite with a new expiry',
    description: `Its token stays the same, so the link of the earlier email also works until the new expiry. An expired \
invite cannot be resent: invite the address again. Counts as an invite for \`RATE_LIMIT_INVITE\`.`,
    params: InviteParams,
    body: z.strictObject({ redirect_to: RedirectTo }).meta({ id: 'InviteResend' }).default({}),
    response: Invite,
    errors: PENDING_ERRORS,
    sideEffect: true,
    hasCredentials: true,
    limit: 'invite',
    addUnstored: addTokenToInvite,
    handle: (input) =>
      changeOrganization(input, 'admin', async (tx, ownRole) => {
        const { body, edge, params } = input
        const redirect = resolveRedirect(edge, body)
        const { id, email, organization_id: organizationId } = await requirePendingInvite(tx, params, ownRole)
        const renewed = await tx.one(renewInvite(id, edge.settings.inviteTokenSeconds))
        await tx.run(
          appendAuditEvent(input, 'invite.resent', { organizationId, data: { invite: id, email } }),
        )
        await enqueueInviteMail(tx, input, id, redirect)
        return answerJson(renewed.json)
      }),
  }),
]

type InviteInput = OrgInput<{ org_id: number }, unknown, z.output<typeof NewInvite>>

/** Invites an address, or adds its account as a member if it has one. Enqueues an email in either case. */
async function inviteAddress(tx: Transaction, input: InviteInput): Promise<Answer<z.input<typeof Invite>>> {
  const { params, body, caller, edge } = input
  const { org_id: organizationId } = params
  const redirect = resolveRedirect(edge, body)
  await tx.run(lockAddress(body.email))
  const ownRole = await lockForRole(tx, input, 'admin')
  const role = parseRole(body.role)
  requireRank(ownRole, role)
  const invitee = await findInvitee(tx, organizationId, body.email)
  const isAccepted = invitee !== null && (invitee.is_verified || !edge.settings.invitesNeedVerification)
  const created = await tx.one(
    insertInvite({
      organizationId,
      email: body.email,
      role,
      invitedBy: caller.ownerId,
      lifetimeSeconds: edge.settings.inviteTokenSeconds,
      isAccepted,
    }),
  )
  const data = { invite: created.id, email: body.email, role }
  const events = [buildAuditEvent(input, 'invite.created', { organizationId, data })]
  if (isAccepted) {
    await tx.run(insertMember(organizationId, invitee.id, role))
    const account = { id: invitee.id, actorId: caller.ownerId, wasMember: false }
    events.push(
      ...buildAcceptanceEvents(input, { id: created.id, organization_id: organizationId, role }, account),
    )
  }
  await tx.run(appendAudit(events))
  await enqueueInviteMail(tx, input, created.id, redirect)
  return answerJson(created.json)
}

async function enqueueInviteMail(
  tx: Transaction,
  { edge, requestId }: Pick<OrgInput, 'edge' | 'requestId'>,
  id: number,
  redirect: ReturnType<typeof resolveRedirect>,
): Promise<void> {
  const options = { ownerId: null, requestId, settings: edge.settings }
  await enqueue(tx, sendInviteMail, { invite_id: id, ...redirect }, options)
}

/** Returns a pending invite of a locked organization. @throws org.rank, invite.missing, or the error of its status. */
async function requirePendingInvite(
  tx: Queries,
  { org_id: organizationId, invite_id: id }: { readonly org_id: number; readonly invite_id: number },
  ownRole: OrgRole,
): Promise<Row> {
  const found = await tx.maybeOne(findInvite(id))
  if (found === null || found.organization_id !== organizationId) throw fail('invite.missing')
  requireRank(ownRole, found.role)
  if (found.status !== 'pending') throw fail(`invite.${found.status}`)
  return found
}

/** Returns the account of an address to invite; null if it has none. @throws member.exists, invite.pending */
async function findInvitee(tx: Queries, organizationId: number, email: string): Promise<Invitee | null> {
  const invitee = await tx.maybeOne(readInvitee(organizationId, email))
  if (invitee?.is_member === true) throw fail('member.exists')
  await tx.run(expireInvites(organizationId, email))
  if ((await tx.one(checkPendingInvite(organizationId, email))).any) throw fail('invite.pending')
  return invitee
}
