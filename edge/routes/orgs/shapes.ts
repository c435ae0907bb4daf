import { z } from 'zod'
import { ORG_ROLES } from '../../../sql/orgs/orgs.ts'
import { LongRowId, RowId, Timestamp } from '../../pipeline/request/schemas.ts'

/** Requests and responses of the organization routes. */

export const OrgParams = z.object({ org_id: RowId })
export const MemberParams = z.object({ org_id: RowId, user_id: RowId })
export const InviteParams = z.object({ org_id: RowId, invite_id: LongRowId })

/** The maximum and default size of a page. */
export const PAGE_SIZES = { max: 1000, fallback: 1000 }

/** Id of an account in a request body. */
export const UserId = z.int().min(1).max(2_147_483_647)

/** Any text may be given as a role, because `parseRole` rejects unknown roles with a specific status. */
export const RoleName = z
  .string()
  .max(100)
  .meta({ enum: [...ORG_ROLES] })

export const Organization = z
  .strictObject({
    id: z.int(),
    name: z.string(),
    slug: z.string(),
    description: z.string().nullable(),
    is_active: z.boolean(),
    created_at: Timestamp,
    updated_at: Timestamp.nullable(),
  })
  .meta({ id: 'OrgResponse' })

export const Member = z
  .strictObject({
    id: z.int(),
    organization_id: z.int(),
    user_id: z.int(),
    role: z.enum(ORG_ROLES),
    joined_at: Timestamp,
  })
  .meta({ id: 'MemberResponse' })

export const MemberDetail = z
  .strictObject({
    user_id: z.int(),
    email: z.string(),
    full_name: z.string().nullable(),
    role: z.enum(ORG_ROLES),
    joined_at: Timestamp,
  })
  .meta({ id: 'MemberDetailResponse' })

export const UserMembership = z
  .strictObject({
    user_id: z.int(),
    org_name: z.string(),
    org_slug: z.string(),
    role: z.enum(ORG_ROLES),
  })
  .meta({ id: 'UserMembershipResponse' })

export const Invite = z
  .strictObject({
    id: z.int(),
    organization_id: z.int(),
    email: z.string(),
    role: z.enum(ORG_ROLES),
    status: z.enum(['pending', 'accepted', 'revoked', 'expired']),
    token: z.string(),
    created_at: Timestamp,
    expires_at: Timestamp,
  })
  .meta({ id: 'InviteResponse' })
