import { z } from 'zod'
import { JsonText, noRows, type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Organizations and their members. */

export const ORG_ROLES = ['owner', 'admin', 'member'] as const
export type OrgRole = (typeof ORG_ROLES)[number]

export const ORGANIZATION_ORDER = { 'o.id': 'bigint' } as const

/** All organizations, newest first. */
export const readOrganizations: ReadStatement<PageValues> = {
  name: 'organizations',
  text: buildArrayText({
    table: 'organization',
    row: 'o',
    parameters: 0,
    where: 'o.deleted_at is null',
    order: ORGANIZATION_ORDER,
    direction: 'desc',
    item: 'organization_json(o)',
  }),
}

// Cheap, because an index covers only the deleted organizations that the purge has not removed yet.
const IN_DELETED_ORGANIZATION = `exists (select from organization d where d.id = m.organization_id and d.deleted_at is not null)`

const MEMBERSHIP_TABLE = {
  table: 'organization_member',
  row: 'm',
  id: ['user_id', 'organization_id'],
} as const

export const OWN_ORGANIZATION_ORDER = { 'm.organization_id': 'bigint' } as const

/** The organizations of an account, newest first. */
export const readOrganizationsOf: ReadStatement<[account: number, ...page: PageValues]> = {
  name: 'organizations_of',
  text: buildArrayText({
    ...MEMBERSHIP_TABLE,
    parameters: 1,
    where: `m.user_id = $1::int and not ${IN_DELETED_ORGANIZATION}`,
    order: OWN_ORGANIZATION_ORDER,
    direction: 'desc',
    join: 'join organization o on o.id = m.organization_id',
    item: 'organization_json(o)',
  }),
}

export const MEMBERSHIP_ORDER = { 'm.user_id': 'bigint', 'm.organization_id': 'bigint' } as const

/** All memberships, ordered by account. */
export const readMemberships: ReadStatement<PageValues> = {
  name: 'memberships',
  text: buildArrayText({
    ...MEMBERSHIP_TABLE,
    parameters: 0,
    where: `not ${IN_DELETED_ORGANIZATION}`,
    order: MEMBERSHIP_ORDER,
    direction: 'asc',
    join: 'join organization o on o.id = m.organization_id',
    item: `json_build_object('user_id', m.user_id, 'org_name', o.name, 'org_slug', o.slug, 'role', m.role)`,
  }),
}

/**
 * Returns a query for JSON about organization $1 if caller $2 has one of `roles` or is null. For other callers, the
 * query yields their role instead of JSON, or `none`. No row if the organization does not exist.
 */
export const buildVisibleQuery = (roles: readonly OrgRole[], json: string): string => `
    select case when $2::int is null or own.role in (${roles.map((role) => `'${role}'`).join(', ')}) then (${json})::text
      else coalesce(own.role, 'none') end
    from organization o left join organization_member own on own.organization_id = o.id and own.user_id = $2::int
    where o.id = $1::int and o.deleted_at is null`
export type OrganizationViewer = [organization: number, caller: number | null]

/** One organization. */
export const readOrganization: ReadStatement<OrganizationViewer> = {
  name: 'organization',
  text: buildVisibleQuery(ORG_ROLES, 'organization_json(o)'),
}

export const MEMBER_ORDER = { 'm.id': 'bigint' } as const

// The list excludes members whose deleted accounts wait for the purge.
const buildMemberList = (item: string, join = ''): string =>
  buildArrayText({
    table: 'organization_member',
    row: 'm',
    parameters: 2,
    where: `m.organization_id = $1::int and not exists (
      select from account d where d.id = m.user_id and d.deleted_at is not null)`,
    order: MEMBER_ORDER,
    direction: 'asc',
    join,
    item,
  })

/** Members of an organization in the order in which they joined. */
export const readMembers: ReadStatement<[...OrganizationViewer, ...page: PageValues]> = {
  name: 'members',
  text: buildVisibleQuery(ORG_ROLES, buildMemberList('member_json(m)')),
}

/** Members of an organization in the order in which they joined, with account data. */
export const readMemberDetails: ReadStatement<[...OrganizationViewer, ...page: PageValues]> = {
  name: 'member_details',
  text: buildVisibleQuery(
    ORG_ROLES,
    buildMemberList(
      `json_build_object('user_id', m.user_id, 'email', a.email, 'full_name', a.full_name, 'role', m.role,
        'joined_at', iso(m.joined_at))`,
      'join account a on a.id = m.user_id',
    ),
  ),
}

const CallerRole = z.object({ role: z.enum(ORG_ROLES).nullable() })

/**
 * Locks an organization for a change and returns the caller's role; null if the caller is not a member. No row if the
 * organization does not exist.
 */
export const lockOrganization = (id: number, caller: number | null): Query<z.output<typeof CallerRole>> =>
  sql.prepared('lock_organization', CallerRole)`select role from organization_lock(${id}, ${caller}::int)`

export interface NewOrganization {
  readonly name: string
  readonly slug: string
  readonly description: string | null
  readonly isActive: boolean
  /** Account that becomes the owner; null creates the organization without members. */
  readonly ownerId: number | null
}

const CreatedOrganization = z.object({ id: z.number(), json: z.string() })

/**
 * Adds an organization.
 *
 * @throws org.slug_invalid, org.slug_taken
 */
export const insertOrganization = (o: NewOrganization): Query<z.output<typeof CreatedOrganization>> =>
  sql.type(CreatedOrganization)`
    with created as (
      insert into organization (name, slug, description, is_active, created_by)
      values (${o.name}, ${o.slug}, ${o.description}, ${o.isActive}, ${o.ownerId}::int)
      returning id, organization_json(organization)::text as json
    ), owner as (
      insert into organization_member (organization_id, user_id, role)
      select id, ${o.ownerId}::int, 'owner' from created where ${o.ownerId}::int is not null
    )
    select id, json from created`

interface OrganizationFields {
  readonly name?: string | undefined
  readonly slug?: string | undefined
  readonly description?: string | null | undefined
}

/**
 * Changes an organization. Absent fields keep their value; a null description is removed.
 *
 * @throws org.slug_invalid, org.slug_taken
 */
export const updateOrganization = (id: number, fields: OrganizationFields): Query<{ json: string }> =>
  sql.type(JsonText)`
    update organization set name = coalesce(${fields.name ?? null}, name), updated_at = now(),
      slug = coalesce(${fields.slug ?? null}, slug),
      description = case when ${fields.description === undefined} then description else ${fields.description ?? null} end
    where id = ${id} returning organization_json(organization)::text as json`

/** Marks a locked organization as deleted. The task `accounts.purge` later deletes its rows. */
export const markOrganizationDeleted = (id: number): Query<{ slug: string }> =>
  sql.type(z.object({ slug: z.string() }))`
    with found as (select id, slug from organization where id = ${id} and deleted_at is null), hidden as (
      update organization o set deleted_at = now(), slug = null from found where o.id = found.id
    )
    select slug from found`

// Members.

const Member = z.object({ user_id: z.number(), role: z.enum(ORG_ROLES), json: z.string() })
export type Member = z.output<typeof Member>

const MEMBER_COLUMNS = sql.fragment`user_id, role, member_json(organization_member)::text as json`

export const findMember = (organizationId: number, userId: number): Query<Member> =>
  sql.type(Member)`
    select ${MEMBER_COLUMNS} from organization_member where organization_id = ${organizationId} and user_id = ${userId}`

/**
 * Adds a member.
 *
 * @throws member.exists, account.missing
 */
export const insertMember = (organizationId: number, userId: number, role: OrgRole): Query<Member> =>
  sql.type(Member)`
    insert into organization_member (organization_id, user_id, role) values (${organizationId}, ${userId}, ${role})
    returning ${MEMBER_COLUMNS}`

const toIntegerArray = (all: readonly number[]) => sql.array([...all], 'int4')

/**
 * Adds the accounts that are not members yet and returns them.
 *
 * @throws account.missing
 */
export const insertMembers = (
  organizationId: number,
  userIds: readonly number[],
  role: OrgRole,
): Query<Member> =>
  sql.type(Member)`
    insert into organization_member (organization_id, user_id, role)
    select ${organizationId}, given, ${role} from (select distinct unnest(${toIntegerArray(userIds)}) as given) all_given order by given
    on conflict on constraint organization_member_organization_id_user_id_key do nothing
    returning ${MEMBER_COLUMNS}`

/** Returns those of the given ids that have no account. */
export const listUnknownAccounts = (userIds: readonly number[]): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    select distinct given as id from unnest(${toIntegerArray(userIds)}) given
    where not exists (select from account where account.id = given and deleted_at is null) order by given`

/**
 * Changes a member's role; no row if the account is not a member.
 *
 * @throws org.last_owner
 */
export const setMemberRole = (organizationId: number, userId: number, role: OrgRole): Query<Member> =>
  sql.type(Member)`
    update organization_member set role = ${role} where organization_id = ${organizationId} and user_id = ${userId}
    returning ${MEMBER_COLUMNS}`

/** Makes all owners but `kept` admins, or only the account `only` if it is given. Returns their ids. */
export const demoteOwners = (
  organizationId: number,
  kept: number,
  only: number | null,
): Query<{ user_id: number }> =>
  sql.type(z.object({ user_id: z.number() }))`
    update organization_member set role = 'admin'
    where organization_id = ${organizationId} and role = 'owner' and user_id <> ${kept}
      and (${only}::int is null or user_id = ${only}::int)
    returning user_id`

/**
 * Removes a member.
 *
 * @throws org.last_owner
 */
export const deleteMember = (organizationId: number, userId: number): Query<unknown> =>
  sql.type(noRows)`
    delete from organization_member where organization_id = ${organizationId} and user_id = ${userId}`
