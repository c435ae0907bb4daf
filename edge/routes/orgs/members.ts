import { z } from 'zod'
import { appendAudit } from '../../../sql/audit/audit.ts'
import type { Queries } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import {
  findMember,
  insertMember,
  insertMembers,
  listUnknownAccounts,
  MEMBER_ORDER,
  type OrgRole,
  type Member as Row,
  readMemberDetails,
  readMembers,
  setMemberRole,
} from '../../../sql/orgs/orgs.ts'
import { answerArray, buildPageQueryFields, buildPageValues } from '../../pipeline/request/lists.ts'
import { RowId } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { buildAuditEvent } from '../../pipeline/write/audit.ts'
import {
  changeOrganization,
  endMembership,
  limitSentInvites,
  MEMBER_ERRORS,
  type OrgInput,
  parseRole,
  ROLE_ERRORS,
  repairOrganization,
  requireAccess,
  requireRank,
} from './access.ts'
import { Member, MemberDetail, MemberParams, OrgParams, PAGE_SIZES, RoleName, UserId } from './shapes.ts'

// Part of several descriptions.
const REPAIR_NOTE = 'Admins of the service may do this in any organization.'

const Page = z.object(buildPageQueryFields(MEMBER_ORDER, PAGE_SIZES))

/**
 * Routes for members of an organization. Callers cannot grant a role above their own, or change a member who ranks
 * above them. Admins of the service repair organizations with these routes, as owners.
 */
export const memberRoutes = [
  route({
    method: 'get',
    path: '/:org_id/members',
    summary: 'List members in joining order',
    params: OrgParams,
    query: Page,
    response: z.array(Member),
    errors: MEMBER_ERRORS,
    reads: 'list',
    handle: async ({ params, query, caller, reader, request }) => {
      const values = [params.org_id, caller.ownerId, ...buildPageValues(query)] as const
      return answerArray(requireAccess(await reader.text(readMembers, values)), request)
    },
  }),

  route({
    method: 'get',
    path: '/:org_id/members/details',
    summary: 'List members with addresses and names',
    description: 'In the order in which they joined.',
    params: OrgParams,
    query: Page,
    response: z.array(MemberDetail),
    errors: MEMBER_ERRORS,
    reads: 'list',
    handle: async ({ params, query, caller, reader, request }) => {
      const values = [params.org_id, caller.ownerId, ...buildPageValues(query)] as const
      return answerArray(requireAccess(await reader.text(readMemberDetails, values)), request)
    },
  }),

  route({
    method: 'post',
    path: '/:org_id/members',
    summary: 'Add a member',
    description: REPAIR_NOTE,
    params: OrgParams,
    query: z.object({ user_id: RowId, role: RoleName.default('member') }),
    response: Member,
    status: 201,
    errors: [
      'org.role',
      'org.rank',
      'org.owner_inactive',
      'member.exists',
      'account.missing',
      ...ROLE_ERRORS,
    ],
    sideEffect: true,
    handle: (input) =>
      repairOrganization(input, 'admin', async (tx, ownRole) => {
        const { params, query } = input
        const role = parseRole(query.role)
        requireRank(ownRole, role)
        const member = await tx.one(insertMember(params.org_id, query.user_id, role))
        await auditMemberAddition(tx, input, [member])
        return answerJson(member.json)
      }),
  }),

  route({
    method: 'post',
    path: '/:org_id/members/bulk',
    summary: 'Add up to 1000 members',
    description: `Skips existing members and returns only the new ones. If an id is unknown, adds none. ${REPAIR_NOTE}`,
    params: OrgParams,
    body: z
      .strictObject({ user_ids: z.array(UserId).max(1000), role: RoleName.default('member') })
      .meta({ id: 'MembersBulk' }),
    response: z.array(Member),
    status: 201,
    errors: [
      'org.role',
      'org.rank',
      'org.owner_inactive',
      'member.unknown_users',
      'account.missing',
      ...ROLE_ERRORS,
    ],
    sideEffect: true,
    handle: (input) =>
      repairOrganization(input, 'admin', async (tx, ownRole) => {
        const { params, body } = input
        const role = parseRole(body.role)
        requireRank(ownRole, role)
        const unknown = await tx.any(listUnknownAccounts(body.user_ids))
        if (unknown.length > 0)
          throw fail('member.unknown_users', { ids: unknown.map(({ id }) => id).join(', ') })
        const added = await tx.any(insertMembers(params.org_id, body.user_ids, role))
        await auditMemberAddition(tx, input, added)
        return answerJson(`[${added.map((member) => member.json).join(',')}]`)
      }),
  }),

  route({
    method: 'patch',
    path: '/:org_id/members/:user_id',
    summary: 'Change the role of a member',
    description: `${REPAIR_NOTE} A lower role also limits the pending invites that the member has sent.`,
    params: MemberParams,
    query: z.object({ role: RoleName }),
    response: Member,
    errors: [
      'org.role',
      'org.rank',
      'org.last_owner',
      'org.owner_inactive',
      'member.missing',
      ...ROLE_ERRORS,
    ],
    handle: (input) =>
      repairOrganization(input, 'admin', async (tx, ownRole) => {
        const to = parseRole(input.query.role)
        const { org_id: organizationId, user_id: accountId } = input.params
        const member = await tx.maybeOne(findMember(organizationId, accountId))
        if (member === null) throw fail('member.missing')
        requireRank(ownRole, member.role, to)
        if (member.role === to) return answerJson(member.json)
        const changed = await tx.one(setMemberRole(organizationId, accountId, to))
        const eventFields = { accountId, organizationId, data: { from: member.role, to } }
        const changedRole = buildAuditEvent(input, 'member.role_changed', eventFields)
        await tx.run(appendAudit([changedRole, ...(await limitSentInvites(tx, input, accountId))]))
        return answerJson(changed.json)
      }),
  }),

  route({
    method: 'delete',
    path: '/:org_id/members/me',
    summary: 'Leave an organization',
    description: 'Revokes the pending invites that the caller has sent.',
    params: OrgParams,
    errors: ['org.last_owner', 'member.missing', ...MEMBER_ERRORS],
    handle: (input) =>
      changeOrganization(input, 'member', async (tx, role) => {
        const { caller, params } = input
        // Without authentication, the caller is not a member.
        if (caller.ownerId === null) throw fail('member.missing')
        const ended = await endMembership(tx, input, caller.ownerId)
        const eventFields = { accountId: caller.ownerId, organizationId: params.org_id, data: { role } }
        const left = buildAuditEvent(input, 'member.left', eventFields)
        await tx.run(appendAudit([left, ...ended]))
        return undefined
      }),
  }),

  route({
    method: 'delete',
    path: '/:org_id/members/:user_id',
    summary: 'Remove a member who is not an owner',
    description: `Revokes the pending invites that the member has sent. ${REPAIR_NOTE}`,
    params: MemberParams,
    errors: ['org.owner_stays', 'member.missing', ...ROLE_ERRORS],
    handle: (input) =>
      repairOrganization(input, 'admin', async (tx) => {
        const { org_id: organizationId, user_id: accountId } = input.params
        const member = await tx.maybeOne(findMember(organizationId, accountId))
        if (member === null) throw fail('member.missing')
        if (member.role === 'owner') throw fail('org.owner_stays')
        const ended = await endMembership(tx, input, accountId)
        const eventFields = { accountId, organizationId, data: { role: member.role } }
        const removed = buildAuditEvent(input, 'member.removed', eventFields)
        await tx.run(appendAudit([removed, ...ended]))
        return undefined
      }),
  }),
]

async function auditMemberAddition(tx: Queries, input: OrgInput, added: readonly Row[]): Promise<void> {
  const eventFields = ({ user_id, role }: { user_id: number; role: OrgRole }) => ({
    accountId: user_id,
    organizationId: input.params.org_id,
    data: { role },
  })
  if (added.length > 0)
    await tx.run(
      appendAudit(added.map((member) => buildAuditEvent(input, 'member.added', eventFields(member)))),
    )
}
