import type { z } from 'zod'
import type { AuditEvent } from '../../../sql/audit.ts'
import type { Queries } from '../../../sql/db.ts'
import { type ErrorCode, fail } from '../../../sql/errors.ts'
import { lockOrganization, ORG_ROLES, type OrgRole } from '../../../sql/orgs.ts'
import { inviteTokenOf } from '../../../tasks/accounts/tokens.ts'
import { eventOf, type From } from '../../pipeline/audit.ts'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import type { Answer, Input, Writes } from '../../pipeline/route.ts'
import type { Invite } from './shapes.ts'

/** Who may do what to an organization. */

const RANK: Readonly<Record<OrgRole, number>> = { member: 0, admin: 1, owner: 2 }

/** What every route on one organization can answer. */
export const REFUSALS = ['org.missing', 'org.not_member'] as const satisfies readonly ErrorCode[]
export const RANKED = [...REFUSALS, 'org.forbidden'] as const satisfies readonly ErrorCode[]

/** A route's input, of a path below one organization. */
export type OfOrg<P extends { org_id: number } = { org_id: number }, Q = unknown, B = unknown> = Input<
  P,
  Q,
  B,
  Caller
>

/**
 * Changes an organization in one transaction that locks it first: all changes of one organization come one after the
 * other, and the caller's role, which `work` is given, is the one that it has by then. Without authentication everybody
 * is an owner.
 */
export function change<R>(
  input: OfOrg & Writes<R>,
  least: OrgRole,
  work: (tx: Queries, role: OrgRole) => Promise<R | Answer<R>>,
): Promise<Answer<R>> {
  return input.transaction(async (tx) => work(tx, await enter(tx, input, least)))
}

/** Locks the organization. @throws org.missing, org.not_member, org.forbidden, in this order. */
export async function enter(
  tx: Queries,
  { params, caller }: Pick<OfOrg, 'params' | 'caller'>,
  least: OrgRole,
): Promise<OrgRole> {
  const standing = await tx.maybeOne(lockOrganization(params.org_id, caller.ownerId))
  if (standing === null) throw fail('org.missing')
  if (caller.ownerId === null) return 'owner'
  const { role } = standing
  if (role === null) throw fail('org.not_member')
  if (RANK[role] < RANK[least]) throw forbidden(least)
  return role
}

/** What a read of one organization found, which answers a role or `none` to those whose role is too low. */
export function seen(text: string | null): string {
  if (text === null) throw fail('org.missing')
  if (text === 'none') throw fail('org.not_member')
  if (Object.hasOwn(RANK, text)) throw forbidden('admin')
  return text
}

const forbidden = (least: OrgRole) =>
  fail('org.forbidden', { roles: least === 'admin' ? 'admin or owner' : least })

/** @throws org.role for what is none. */
export function roleOf(given: string): OrgRole {
  const role = ORG_ROLES.find((one) => one === given)
  if (role === undefined) throw fail('org.role')
  return role
}

/** Refuses to give, or to take from somebody, a role above the own one. */
export function requireRank(own: OrgRole, ...roles: readonly OrgRole[]): void {
  if (roles.some((role) => RANK[role] > RANK[own])) throw fail('org.rank')
}

/** What the trail says of an invite that was accepted; of a member, who stays as it was, no more than that. */
export function acceptance(
  from: From,
  invite: { readonly id: number; readonly organization_id: number; readonly role: OrgRole },
  account: { readonly id: number; readonly actorId: number | null; readonly wasMember: boolean },
): AuditEvent[] {
  const about = { actorId: account.actorId, accountId: account.id, organizationId: invite.organization_id }
  const accepted = eventOf(from, 'invite.accepted', { ...about, data: { invite: invite.id } })
  if (account.wasMember) return [accepted]
  return [
    accepted,
    eventOf(from, 'member.added', { ...about, data: { role: invite.role, invite: invite.id } }),
  ]
}

type Tokenless = Omit<z.input<typeof Invite>, 'token'>
type Whole = z.input<typeof Invite>

/** An invite that PostgreSQL built, with its token, which is stored nowhere. */
export function withToken(edge: Edge, text: string): string {
  return JSON.stringify(tokenAdded(edge, JSON.parse(text) as Tokenless))
}

/** The same of a list. */
export function withTokens(edge: Edge, text: string): Whole[] {
  return (JSON.parse(text) as Tokenless[]).map((invite) => tokenAdded(edge, invite))
}

function tokenAdded({ secretKey }: Edge, invite: Tokenless): Whole {
  return { ...invite, token: inviteTokenOf(secretKey, invite.id, invite.email) }
}
