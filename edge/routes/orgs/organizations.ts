import { z } from 'zod'
import { lockAccount } from '../../../sql/accounts/accounts.ts'
import { appendAudit } from '../../../sql/audit/audit.ts'
import type { Queries } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import {
  demoteOwners,
  findMember,
  insertOrganization,
  MEMBERSHIP_ORDER,
  markOrganizationDeleted,
  ORGANIZATION_ORDER,
  OWN_ORGANIZATION_ORDER,
  readMemberships,
  readOrganization,
  readOrganizations,
  readOrganizationsOf,
  setMemberRole,
  updateOrganization,
} from '../../../sql/orgs/orgs.ts'
import { requireQuota } from '../../../sql/quotas/quotas.ts'
import { purgeAccounts } from '../../../tasks/accounts/purge.task.ts'
import { enqueue } from '../../../tasks/task.ts'
import { answerArray, buildPageQueryFields, buildPageValues } from '../../pipeline/request/lists.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { appendAuditEvent, buildAuditEvent } from '../../pipeline/write/audit.ts'
import { Detail } from '../accounts/shapes.ts'
import {
  changeOrganization,
  limitSentInvites,
  MEMBER_ERRORS,
  type OrgInput,
  ROLE_ERRORS,
  repairOrganization,
  requireAccess,
} from './access.ts'
import { Organization, OrgParams, PAGE_SIZES, UserId, UserMembership } from './shapes.ts'

const Name = z.string().trim().min(1).max(200)
const Description = z.string().trim().max(2000)
// The database checks the format and reports it with a specific error.
const Slug = z.string().max(1000)

/** Routes that create, list, update, delete and transfer organizations. */
export const organizationRoutes = [
  route({
    method: 'post',
    path: '',
    summary: 'Create an organization',
    description: 'The caller becomes its owner.',
    body: z
      .strictObject({
        name: Name,
        slug: Slug,
        description: Description.nullish(),
        is_active: z.boolean().default(true),
      })
      .meta({ id: 'OrgCreate' }),
    response: Organization,
    status: 201,
    errors: ['org.slug_invalid', 'org.slug_taken', 'quota.organizations', 'account.missing'],
    sideEffect: true,
    handle: async (input) => {
      const { name, slug, description, is_active: isActive } = input.body
      const { ownerId } = input.caller
      const organization = { name, slug, description: description || null, isActive, ownerId }
      return input.transaction(async (tx) => {
        // The membership takes a shared lock on the account. Two holders of it could not lock the account for the quota.
        if (ownerId !== null) await tx.run(lockAccount(ownerId))
        const { id: organizationId, json: text } = await tx.one(insertOrganization(organization))
        await requireQuota(tx, ownerId, ['organizations'], input.edge.settings.quotas)
        await tx.run(
          appendAuditEvent(input, 'organization.created', { organizationId, data: { slug, name } }),
        )
        return answerJson(text)
      })
    },
  }),

  route({
    method: 'get',
    path: '',
    summary: 'List the organizations of the caller, newest first',
    query: z.object(buildPageQueryFields([ORGANIZATION_ORDER, OWN_ORGANIZATION_ORDER], PAGE_SIZES)),
    response: z.array(Organization),
    reads: 'list',
    handle: async ({ caller, query, reader, request }) => {
      // Without authentication every caller belongs to every organization.
      const text =
        caller.ownerId === null
          ? reader.text(readOrganizations, buildPageValues(query))
          : reader.text(readOrganizationsOf, [caller.ownerId, ...buildPageValues(query)])
      return answerArray((await text)!, request)
    },
  }),

  route({
    method: 'get',
    path: '/all',
    summary: 'List all organizations, newest first',
    auth: 'admin',
    query: z.object(buildPageQueryFields(ORGANIZATION_ORDER, PAGE_SIZES)),
    response: z.array(Organization),
    reads: 'list',
    handle: async ({ query, reader, request }) =>
      answerArray((await reader.text(readOrganizations, buildPageValues(query)))!, request),
  }),

  route({
    method: 'get',
    path: '/memberships',
    summary: 'List the memberships of all organizations, by user',
    auth: 'admin',
    query: z.object(buildPageQueryFields(MEMBERSHIP_ORDER, PAGE_SIZES)),
    response: z.array(UserMembership),
    reads: 'list',
    handle: async ({ query, reader, request }) =>
      answerArray((await reader.text(readMemberships, buildPageValues(query)))!, request),
  }),

  route({
    method: 'get',
    path: '/:org_id',
    summary: 'Get an organization of the caller',
    params: OrgParams,
    response: Organization,
    errors: MEMBER_ERRORS,
    handle: async ({ params, caller, edge }) =>
      answerJson(requireAccess(await edge.reader.text(readOrganization, [params.org_id, caller.ownerId]))),
  }),

  route({
    method: 'patch',
    path: '/:org_id',
    summary: 'Update an organization',
    description:
      'Changes its name, slug or description; an empty description clears it. Only an owner may change the slug. The previous slug immediately becomes available to any organization.',
    params: OrgParams,
    query: z.object({ name: Name.optional(), slug: Slug.optional(), description: Description.optional() }),
    response: Organization,
    errors: ['org.no_fields', 'org.slug_invalid', 'org.slug_taken', ...ROLE_ERRORS],
    handle: (input) =>
      changeOrganization(input, input.query.slug === undefined ? 'admin' : 'owner', async (tx) => {
        const { name, slug, description } = input.query
        if (name === undefined && slug === undefined && description === undefined) throw fail('org.no_fields')
        const fields = { name, slug, description: description === '' ? null : description }
        const { org_id: organizationId } = input.params
        const updated = await tx.one(updateOrganization(organizationId, fields))
        await tx.run(appendAuditEvent(input, 'organization.updated', { organizationId, data: fields }))
        return answerJson(updated.json)
      }),
  }),

  route({
    method: 'delete',
    path: '/:org_id',
    summary: 'Delete an organization permanently',
    description:
      'It is gone immediately, with its memberships and invites; a job then deletes their rows. Admins of the service may delete any organization.',
    params: OrgParams,
    errors: ROLE_ERRORS,
    handle: (input) =>
      repairOrganization(input, 'owner', async (tx) => {
        const { org_id: organizationId } = input.params
        const { slug } = await tx.one(markOrganizationDeleted(organizationId))
        await tx.run(appendAuditEvent(input, 'organization.deleted', { organizationId, data: { slug } }))
        const { edge, requestId } = input
        const options = { ownerId: null, requestId, settings: edge.settings }
        await enqueue(tx, purgeAccounts, {}, options)
        return undefined
      }),
  }),

  route({
    method: 'post',
    path: '/:org_id/transfer-ownership',
    summary: 'Transfer the ownership to another member',
    description:
      'The caller becomes an admin. Admins of the service may transfer any organization; its former owners then become admins.',
    params: OrgParams,
    body: z.strictObject({ user_id: UserId }).meta({ id: 'OwnershipTransfer' }),
    response: Detail,
    errors: ['org.transfer_self', 'org.transfer_target', 'org.owner_inactive', ...ROLE_ERRORS],
    sideEffect: true,
    handle: (input) => repairOrganization(input, 'owner', (tx) => transferOwnership(tx, input)),
  }),
]

type TransferInput = OrgInput<{ org_id: number }, unknown, { user_id: number }>

async function transferOwnership(tx: Queries, input: TransferInput): Promise<z.input<typeof Detail>> {
  const { params, body, caller } = input
  const { org_id: organizationId } = params
  if (body.user_id === caller.ownerId) throw fail('org.transfer_self')
  const heir = await tx.maybeOne(findMember(organizationId, body.user_id))
  if (heir === null) throw fail('org.transfer_target')
  // The new owner is promoted first, so that the organization always has an owner.
  await tx.one(setMemberRole(organizationId, body.user_id, 'owner'))
  const former = await demoteFormerOwners(tx, input)
  const data = { from: heir.role, to: 'owner', former_owners: former }
  const eventFields = { accountId: body.user_id, organizationId, data }
  const events = [buildAuditEvent(input, 'organization.ownership_transferred', eventFields)]
  for (const accountId of former) events.push(...(await limitSentInvites(tx, input, accountId)))
  await tx.run(appendAudit(events))
  return { detail: 'The ownership has been transferred' }
}

/**
 * Makes a caller who is an owner an admin; if an admin of the service transfers the ownership, all owners but the new
 * one. Returns their ids.
 */
async function demoteFormerOwners(tx: Queries, { params, body, caller }: TransferInput): Promise<number[]> {
  if (caller.ownerId === null) return []
  const own = await tx.maybeOne(findMember(params.org_id, caller.ownerId))
  const demoted = demoteOwners(params.org_id, body.user_id, own?.role === 'owner' ? caller.ownerId : null)
  return (await tx.any(demoted)).map(({ user_id }) => user_id)
}
