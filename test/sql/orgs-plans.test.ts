import { after, describe, test } from 'node:test'
import { deactivateAccount, deleteAccount } from '../../sql/accounts/deletions.ts'
import { connect } from '../../sql/connections/driver.ts'
import type { Query } from '../../sql/db.ts'
import { listMemberCredentials } from '../../sql/keys/api-keys.ts'
import {
  acceptInvites,
  checkPendingInvite,
  closeInvite,
  expireInvites,
  findInvite,
  findInviteMail,
  insertInvite,
  limitInvites,
  readInvitee,
  readInvites,
} from '../../sql/orgs/invites.ts'
import {
  deleteMember,
  demoteOwners,
  findMember,
  insertMember,
  insertMembers,
  listUnknownAccounts,
  lockOrganization,
  markOrganizationDeleted,
  readMemberDetails,
  readMembers,
  readMemberships,
  readOrganization,
  readOrganizations,
  readOrganizationsOf,
  setMemberRole,
  updateOrganization,
} from '../../sql/orgs/orgs.ts'
import { createTestDatabase } from '../database.ts'
import { assertWriteByIndex, planRead, testReads } from './plans-help.ts'

/** Queries of organizations use an index, in tables of at least 2000 rows. */

const { url, query } = await createTestDatabase()
await query(
  `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 2000) n`,
)
await query(
  `insert into organization (name, slug) select repeat('N', 200), 's' || n from generate_series(1, 2000) n`,
)
// Each organization has ten members, the first of whom is the owner. Each account is in several organizations.
await query(
  `insert into organization_member (organization_id, user_id, role)
   select o, 1 + (o + 37 * m) % 2000, case m when 0 then 'owner' when 1 then 'admin' else 'member' end
   from generate_series(0, 9) m, generate_series(1, 700) o`,
)
await query(
  `insert into organization_invite (organization_id, email, role, status, invited_by, expires_at, accepted_at)
   select o, 'i' || (o + i) || '@example.com', 'member', case when i < 2 then 'pending' else 'accepted' end, 1 + o % 2000,
     now() + (i - 0.5) * interval '1 day', case when i >= 2 then now() end
   from generate_series(0, 3) i, generate_series(1, 700) o`,
)
await query('analyze')

const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())

const reads = [
  planRead('an organization', readOrganization, 5, 6),
  planRead('an organization without authentication', readOrganization, 5, null),
  planRead('members', readMembers, 5, 6, null, 0, 1000),
  planRead('members with details', readMemberDetails, 5, 6, null, 0, 100),
  planRead('invites', readInvites, 5, 6, null, 0, 1000),
  planRead('organizations of an account', readOrganizationsOf, 6, null, 0, 1000),
  planRead('a page of organizations', readOrganizations, null, 0, 20),
  planRead('a later page of organizations', readOrganizations, '[1500]', 100, 20),
  planRead('a page of memberships', readMemberships, null, 0, 100),
  planRead('a later page of memberships', readMemberships, '[350,1]', 100, 100),
]

describe('reads by index', () => {
  testReads(client, reads)
})

describe('writes by index', () => {
  let n = 300
  const invite = {
    organizationId: 5,
    role: 'member',
    invitedBy: 6,
    lifetimeSeconds: 60,
    isAccepted: false,
  } as const
  const writes: readonly [what: string, () => Query<unknown>][] = [
    ['lock', () => lockOrganization(5, 6)],
    ['change', () => updateOrganization(++n, { name: 'M' })],
    ['a member', () => findMember(5, 6)],
    ['add a member', () => insertMember(++n, 5, 'member')],
    ['add members', () => insertMembers(++n, [1, 2, 3], 'member')],
    ['find unknown accounts', () => listUnknownAccounts([1, 2, 9999])],
    ['make an owner', () => setMemberRole(5, 43, 'owner')],
    ['demote an owner', () => setMemberRole(5, 6, 'admin')],
    ['remove a member', () => deleteMember(++n, 1 + (n + 37 * 5))],
    ['find an invitee', () => readInvitee(5, `a${++n}@example.com`)],
    ['find a pending invite', () => checkPendingInvite(5, 'i5@example.com')],
    ['expire an invite', () => expireInvites(++n, `i${n}@example.com`)],
    ['invite', () => insertInvite({ ...invite, email: `new${++n}@example.com` })],
    ['an invite', () => findInvite(5)],
    ['an invite for its mail', () => findInviteMail(5)],
    ['end an invite', () => closeInvite(++n + 1750, 'revoked')],
    ['accept the invites of an address', () => acceptInvites(1, `i${++n}@example.com`)],
    ['delete an organization', () => markOrganizationDeleted(++n)],
    ['limit the invites of a sender', () => limitInvites(++n, 5)],
    ['demote the other owners', () => demoteOwners(5, 43, null)],
    ['find what ends with a membership', () => listMemberCredentials(++n, 5)],
    ['deactivate an account', () => deactivateAccount(++n)],
    ['delete an account', () => deleteAccount(++n)],
  ]
  for (const [what, make] of writes) test(what, () => assertWriteByIndex(client, make, 'organization'))
})
