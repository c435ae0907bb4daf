// Ranks of members, and what each may do.

import { readList } from '../parts/api.js'

const RANKS = { member: 0, admin: 1, owner: 2 }
const ROLES = ['member', 'admin', 'owner']
export const ROLE_HELP = 'Members see the organization. Admins manage members, invites, keys and webhooks. Owners can also delete it.'

/** Returns true if `role` ranks at least as high as `least`; null ranks below all. */
export const ranksAs = (role, least) => role !== null && RANKS[role] >= RANKS[least]

/** Returns the ranks that `role` may give. */
export const grantableBy = (role) => ROLES.filter((other) => ranksAs(role, other))

/** Finds a member for whom `matches(member)` is true; null if there is none. */
export async function findMember(orgId, matches) {
  let path = `/api/v1/orgs/${orgId}/members/details?limit=1000`
  while (path !== null) {
    const { items, next } = await readList(path)
    const found = items.find(matches)
    if (found !== undefined) return found
    path = next
  }
  return null
}

/** Returns the name of a member, or the address if the member has no name. */
export const nameOf = ({ full_name, email }) => full_name || email
