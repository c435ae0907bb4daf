import type { z } from 'zod'
import { type AuditEvent, type AuditKind, appendAudit } from '../../../sql/audit/audit.ts'
import type { Queries, Transaction } from '../../../sql/db.ts'
import { type ErrorCode, fail } from '../../../sql/errors.ts'
import { listMemberCredentials } from '../../../sql/keys/api-keys.ts'
import {
  acceptInvites,
  findInvite,
  type Invite as InviteRow,
  limitInvites,
} from '../../../sql/orgs/invites.ts'
import { deleteMember, lockOrganization, ORG_ROLES, type OrgRole } from '../../../sql/orgs/orgs.ts'
import { describeLimitedInvite } from '../../../tasks/accounts/inheritance.ts'
import { inviteTokenOf, isInviteToken, parseInviteId } from '../../../tasks/accounts/tokens.ts'
import type { SecretKeys } from '../../../tasks/platform/keys.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import type { Answer, Input, Writes } from '../../pipeline/route.ts'
import { buildAuditEvent, type EventRequest } from '../../pipeline/write/audit.ts'
import type { Invite } from './shapes.ts'

/** Checks permissions on an organization. */

const ROLE_RANK: Readonly<Record<OrgRole, number>> = { member: 0, admin: 1, owner: 2 }

/** Errors of every route on a single organization. */
export const MEMBER_ERRORS = ['org.missing', 'org.not_member'] as const satisfies readonly ErrorCode[]
export const ROLE_ERRORS = [...MEMBER_ERRORS, 'org.forbidden'] as const satisfies readonly ErrorCode[]

/** Input of a route on a single organization. */
export type OrgInput<P extends { org_id: number } = { org_id: number }, Q = unknown, B = unknown> = Input<
  P,
  Q,
  B,
  Caller
>

/**
 * Changes an organization in one transaction that locks it first, so that concurrent changes run one after another.
 * `work` gets the caller's role under the lock. Without authentication every caller is an owner.
 */
export function changeOrganization<R>(
  input: OrgInput & Writes<R>,
  minRole: OrgRole,
  work: (tx: Transaction, role: OrgRole) => Promise<R | Answer<R>>,
): Promise<Answer<R>> {
  return input.transaction(async (tx) => work(tx, await lockForRole(tx, input, minRole)))
}

/**
 * Changes an organization like `changeOrganization`, in ways by which admins of the service may repair any organization.
 * They act as owners, unless they use an API key of an organization.
 */
export function repairOrganization<R>(
  input: OrgInput & Writes<R>,
  minRole: OrgRole,
  work: (tx: Transaction, role: OrgRole) => Promise<R | Answer<R>>,
): Promise<Answer<R>> {
  const { role, key } = input.caller
  const isServiceAdmin = role === 'admin' && (key?.organizationId ?? null) === null
  return input.transaction(async (tx) => work(tx, await lockForRole(tx, input, minRole, isServiceAdmin)))
}

/**
 * Checks that an API key limited to an organization is used only for that one. `organizationId` is null if the request
 * concerns no organization.
 * @throws auth.key_organization
 */
export function requireOrganization(caller: Caller, organizationId: number | null): void {
  if (organizationId !== null) requireSameOrganization(caller, organizationId)
  else if (caller.key !== null && caller.key.organizationId !== null) throw fail('auth.key_organization')
}

/** Rejects an API key of another organization. @throws auth.key_organization */
export function requireSameOrganization({ key }: Caller, organizationId: number): void {
  if (key !== null && key.organizationId !== null && key.organizationId !== organizationId)
    throw fail('auth.key_organization')
}

/**
 * Locks the organization and returns the caller's role. If `isServiceAdmin` is true, the caller counts as an owner.
 * @throws org.missing, org.not_member, org.forbidden, in this order.
 */
export async function lockForRole(
  tx: Queries,
  { params, caller }: Pick<OrgInput, 'params' | 'caller'>,
  minRole: OrgRole,
  isServiceAdmin = false,
): Promise<OrgRole> {
  requireSameOrganization(caller, params.org_id)
  const standing = await tx.maybeOne(lockOrganization(params.org_id, caller.ownerId))
  if (standing === null) throw fail('org.missing')
  if (caller.ownerId === null || isServiceAdmin) return 'owner'
  const { role } = standing
  if (role === null) throw fail('org.not_member')
  if (ROLE_RANK[role] < ROLE_RANK[minRole]) throw failForRole(minRole)
  return role
}

/**
 * Returns `text` if it is the JSON of an organization, and throws otherwise. `text` is null if the organization does
 * not exist. It is `none` if the caller is not a member, or the caller's role if that is too low.
 * @throws org.missing, org.not_member, org.forbidden
 */
export function requireAccess(text: string | null): string {
  if (text === null) throw fail('org.missing')
  if (text === 'none') throw fail('org.not_member')
  if (Object.hasOwn(ROLE_RANK, text)) throw failForRole('admin')
  return text
}

const failForRole = (minRole: OrgRole) =>
  fail('org.forbidden', { roles: minRole === 'admin' ? 'admin or owner' : minRole })

/** Parses a role. @throws org.role if it does not exist. */
export function parseRole(given: string): OrgRole {
  const role = ORG_ROLES.find((one) => one === given)
  if (role === undefined) throw fail('org.role')
  return role
}

/** Requires that callers neither grant nor change a role above their own. @throws org.rank */
export function requireRank(ownRole: OrgRole, ...roles: readonly OrgRole[]): void {
  if (roles.some((role) => ROLE_RANK[role] > ROLE_RANK[ownRole])) throw fail('org.rank')
}

/**
 * Returns the audit events of an accepted invite. An account that already was a member is not added, so only the
 * acceptance is recorded.
 */
export function buildAcceptanceEvents(
  from: EventRequest,
  invite: { readonly id: number; readonly organization_id: number; readonly role: OrgRole },
  account: { readonly id: number; readonly actorId: number | null; readonly wasMember: boolean },
): AuditEvent[] {
  const eventFields = {
    actorId: account.actorId,
    accountId: account.id,
    organizationId: invite.organization_id,
  }
  const accepted = buildAuditEvent(from, 'invite.accepted', { ...eventFields, data: { invite: invite.id } })
  if (account.wasMember) return [accepted]
  return [
    accepted,
    buildAuditEvent(from, 'member.added', { ...eventFields, data: { role: invite.role, invite: invite.id } }),
  ]
}

/** Limits the pending invites that an account has sent to its present rank, and returns the audit events of this. */
export async function limitSentInvites(
  tx: Queries,
  input: OrgInput & EventRequest,
  accountId: number,
): Promise<AuditEvent[]> {
  const { invites } = await tx.one(limitInvites(accountId, input.params.org_id))
  return invites.map(describeLimitedInvite).map(({ kind, ...about }) => buildAuditEvent(input, kind, about))
}

/**
 * Removes a member. Returns the audit events of everything that ends with the membership.
 * @throws org.last_owner
 */
export async function endMembership(
  tx: Queries,
  input: OrgInput & EventRequest,
  accountId: number,
): Promise<AuditEvent[]> {
  const organizationId = input.params.org_id
  const { keys, webhooks } = await tx.one(listMemberCredentials(organizationId, accountId))
  await tx.run(deleteMember(organizationId, accountId))
  const build = (kind: AuditKind, data: object) =>
    buildAuditEvent(input, kind, { accountId, organizationId, data: { ...data, reason: 'member' } })
  return [
    ...keys.map((key) => build('key.deleted', key)),
    ...webhooks.map((webhook) => build('webhook.deleted', webhook)),
    ...(await limitSentInvites(tx, input, accountId)),
  ]
}

/** Accepts all pending invites of an address that an account has just got or verified. Returns the audit events. */
export async function acceptPendingInvites(
  tx: Queries,
  from: EventRequest,
  id: number,
  email: string,
): Promise<AuditEvent[]> {
  const accepted = await tx.any(acceptInvites(id, email))
  return accepted.flatMap(({ invite_id, was_member: wasMember, ...invite }) =>
    buildAcceptanceEvents(from, { id: invite_id, ...invite }, { id, actorId: id, wasMember }),
  )
}

/** Audits the verification of an address, and accepts the invites that have waited for it. */
export async function auditVerification(
  tx: Queries,
  from: EventRequest,
  { account_id: id, email }: { readonly account_id: number; readonly email: string },
): Promise<void> {
  const verified = buildAuditEvent(from, 'account.verified', { actorId: id, accountId: id })
  await tx.run(appendAudit([verified, ...(await acceptPendingInvites(tx, from, id, email))]))
}

/** Returns the invite of a token, which may have ended. @throws invite.token */
export async function findInviteByToken(
  queries: Queries,
  keys: SecretKeys,
  token: string,
): Promise<InviteRow> {
  const id = parseInviteId(token)
  const found = id === null ? null : await queries.maybeOne(findInvite(id))
  if (found === null || !isInviteToken(keys, token, found.id, found.email)) throw fail('invite.token')
  return found
}

type InviteWithoutToken = Omit<z.input<typeof Invite>, 'token'>
type InviteJson = z.input<typeof Invite>

/** Adds the token, which is never stored, to the JSON of an invite from PostgreSQL. */
export function addTokenToInvite(edge: Edge, text: string): string {
  return JSON.stringify(addToken(edge, JSON.parse(text) as InviteWithoutToken))
}

/** Adds the tokens to a JSON list of invites. */
export function addTokensToInvites(edge: Edge, text: string): string {
  return JSON.stringify((JSON.parse(text) as InviteWithoutToken[]).map((invite) => addToken(edge, invite)))
}

function addToken({ keys }: Edge, invite: InviteWithoutToken): InviteJson {
  return { ...invite, token: inviteTokenOf(keys, invite.id, invite.email) }
}
