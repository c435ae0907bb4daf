import { z } from 'zod'
import { JsonText, noRows, type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { buildVisibleQuery, ORG_ROLES, type OrganizationViewer, type OrgRole } from './orgs.ts'

/** Invites to organizations. */

export const INVITE_ORDER = { 'i.id': 'bigint' } as const

/** Pending invites of an organization, oldest first, without their tokens. */
export const readInvites: ReadStatement<[...OrganizationViewer, ...page: PageValues]> = {
  name: 'invites',
  text: buildVisibleQuery(
    ['owner', 'admin'],
    buildArrayText({
      table: 'organization_invite',
      row: 'i',
      parameters: 2,
      where: `i.organization_id = $1::int and i.status = 'pending' and i.expires_at > now()`,
      order: INVITE_ORDER,
      direction: 'asc',
      item: 'invite_json(i)',
    }),
  ),
}

/**
 * Serializes invites to an address with changes that assign the address to an account. Call it before locking an
 * organization.
 */
export const lockAddress = (email: string): Query<unknown> =>
  sql.type(noRows)`select invite_address_lock(${email})`

/** Marks an address's pending invite to an organization as expired if it is overdue. */
export const expireInvites = (organizationId: number, email: string): Query<unknown> =>
  sql.type(noRows)`
    update organization_invite set status = 'expired'
    where organization_id = ${organizationId} and email = ${email} and status = 'pending' and expires_at <= now()`

/** Locks what the acceptance of an address's invites changes. Call it before locking the account of the address. */
export const lockInvites = (email: string): Query<unknown> => sql.type(noRows)`select invites_lock(${email})`

const Invitee = z.object({ id: z.number(), is_verified: z.boolean(), is_member: z.boolean() })
export type Invitee = z.output<typeof Invitee>

/** Returns the account with an address, and if it is already a member; no row if there is no such account. */
export const readInvitee = (organizationId: number, email: string): Query<z.output<typeof Invitee>> =>
  sql.type(Invitee)`
    select id, is_verified, exists (select from organization_member m
      where m.organization_id = ${organizationId} and m.user_id = account.id) as is_member
    from account where email = ${email}`

/** Checks for a pending invite of an address to an organization; `any` is true if there is one. */
export const checkPendingInvite = (organizationId: number, email: string): Query<{ any: boolean }> =>
  sql.type(z.object({ any: z.boolean() }))`
    select exists (select from organization_invite
      where organization_id = ${organizationId} and email = ${email} and status = 'pending') as any`

/** True if an invite is pending for an address, which may then register. */
export const hasPendingInvite = (email: string): Query<{ any: boolean }> =>
  sql.type(z.object({ any: z.boolean() }))`
    select exists (select from organization_invite
      where email = ${email} and status = 'pending' and expires_at > now()) as any`

export interface NewInvite {
  readonly organizationId: number
  readonly email: string
  readonly role: OrgRole
  readonly invitedBy: number | null
  readonly lifetimeSeconds: number
  /** True if the address has an account. The account then becomes a member immediately. */
  readonly isAccepted: boolean
}

const CreatedInvite = z.object({ id: z.number(), email: z.string(), json: z.string() })

/**
 * Adds an invite.
 *
 * @throws invite.pending
 */
export const insertInvite = (i: NewInvite): Query<z.output<typeof CreatedInvite>> =>
  sql.type(CreatedInvite)`
    insert into organization_invite (organization_id, email, role, status, invited_by, expires_at, accepted_at)
    values (${i.organizationId}, ${i.email}, ${i.role}, ${i.isAccepted ? 'accepted' : 'pending'}, ${i.invitedBy},
      now() + make_interval(secs => ${i.lifetimeSeconds}), case when ${i.isAccepted} then now() end)
    returning id, email, invite_json(organization_invite)::text as json`

const Invite = z.object({
  id: z.number(),
  organization_id: z.number(),
  email: z.string(),
  role: z.enum(ORG_ROLES),
  status: z.enum(['pending', 'accepted', 'revoked', 'expired']),
})
export type Invite = z.output<typeof Invite>

/** Returns an invite of an existing organization. An overdue pending invite is returned as expired. */
export const findInvite = (id: number): Query<Invite> =>
  sql.type(Invite)`
    select i.id, i.organization_id, i.email, i.role,
      case when i.status = 'pending' and i.expires_at <= now() then 'expired' else i.status end as status
    from organization_invite i join organization o on o.id = i.organization_id and o.deleted_at is null where i.id = ${id}`

/** Restarts the lifetime of a pending invite; no row if the invite is not pending. */
export const renewInvite = (id: number, lifetimeSeconds: number): Query<{ json: string }> =>
  sql.type(JsonText)`
    update organization_invite set expires_at = now() + make_interval(secs => ${lifetimeSeconds})
    where id = ${id} and status = 'pending' returning invite_json(organization_invite)::text as json`

/** Sets the final status of a pending invite; no row if the invite is not pending. */
export const closeInvite = (
  id: number,
  status: 'accepted' | 'revoked' | 'expired',
): Query<{ json: string }> =>
  sql.type(JsonText)`
    update organization_invite set status = ${status}, accepted_at = case when ${status} = 'accepted' then now() end
    where id = ${id} and status = 'pending' returning invite_json(organization_invite)::text as json`

const AcceptedInvite = z.object({
  invite_id: z.number(),
  organization_id: z.number(),
  role: z.enum(ORG_ROLES),
  was_member: z.boolean(),
})

/** Accepts all pending invites of an address that an account has just got or verified; returns them. */
export const acceptInvites = (accountId: number, email: string): Query<z.output<typeof AcceptedInvite>> =>
  sql.type(
    AcceptedInvite,
  )`select invite_id, organization_id, role, was_member from invites_accept(${accountId}, ${email})`

/** A change to a pending invite because its sender has lost rank. */
export const LimitedInvite = z.object({
  invite_id: z.number(),
  organization_id: z.number(),
  email: z.string(),
  before: z.enum(ORG_ROLES),
  /** The new role; null if the invite was revoked. */
  after: z.enum(ORG_ROLES).nullable(),
})
export type LimitedInvite = z.output<typeof LimitedInvite>

/**
 * Limits the pending invites that an account has sent to its present rank in a locked organization, and returns those
 * that changed.
 */
export const limitInvites = (
  accountId: number,
  organizationId: number,
): Query<{ invites: LimitedInvite[] }> =>
  sql.type(z.object({ invites: z.array(LimitedInvite) }))`
    select invites_limit(${accountId}, array[${organizationId}::int]) as invites`

const InviteMail = z.object({
  email: z.string(),
  role: z.string(),
  status: z.string(),
  organization: z.string(),
  invited_by: z.string().nullable(),
})

/** Returns the data for an invite's email. */
export const findInviteMail = (id: number): Query<z.output<typeof InviteMail>> =>
  sql.type(InviteMail)`
    select i.email, i.role, case when i.status = 'pending' and i.expires_at <= now() then 'expired' else i.status end as status,
      o.name as organization, coalesce(a.full_name, a.email) as invited_by
    from organization_invite i join organization o on o.id = i.organization_id and o.deleted_at is null
    left join account a on a.id = i.invited_by
    where i.id = ${id}`
