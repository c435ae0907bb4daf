import assert from 'node:assert/strict'

/**
 * Replays the audit trail of organizations in order and asserts that each event is legal. Changes of an organization
 * write their events under its lock, so the order of events is the order of changes.
 */

export interface TrailEvent {
  readonly kind: string
  readonly actor_id: number
  readonly account_id: number
  readonly organization_id: number
  readonly request_id: string
  readonly data: {
    readonly role?: string
    readonly from?: string
    readonly to?: string
    readonly invite?: number
    readonly email?: string
    readonly slug?: string
    readonly reason?: string
    readonly former_owners?: readonly number[]
  }
}

interface Invite {
  readonly organization: number
  readonly email: string
  role: string
  status: string
}

const RANK_BY_ROLE: Readonly<Record<string, number>> = { member: 0, admin: 1, owner: 2 }

export function createObserver(emails: ReadonlyMap<number, string>) {
  const orgs = new Map<number, Map<number, string>>()
  const invites = new Map<number, Invite>()
  /**
   * Organizations without an owner or members, each with the id of the request that deleted the account. The same
   * request must resolve this.
   */
  const left = new Map<number, string>()

  const members = (e: TrailEvent): Map<number, string> => {
    const found = orgs.get(e.organization_id)
    assert.ok(found, 'the organization is there')
    return found
  }
  const rankOf = (e: TrailEvent, user = e.actor_id): number => {
    const role = members(e).get(user)
    assert.ok(role, `${user} is a member`)
    return RANK_BY_ROLE[role]!
  }
  /** Asserts that the actor is at least an admin and ranks at least as high as these roles. */
  const mayRule = (e: TrailEvent, ...roles: readonly string[]): void => {
    for (const role of ['admin', ...roles])
      assert.ok(rankOf(e) >= RANK_BY_ROLE[role]!, `${e.actor_id} ranks as ${role}`)
  }
  const inviteOf = (e: TrailEvent): Invite => {
    const invite = invites.get(e.data.invite!)
    assert.ok(invite !== undefined && invite.organization === e.organization_id, 'the invite is there')
    return invite
  }

  const accountDeleted = (id: number): void => {
    for (const [org, all] of orgs) {
      if (!all.delete(id)) continue
      if (all.size === 0) left.set(org, 'organization.deleted')
      else if (![...all.values()].includes('owner')) left.set(org, 'organization.inherited')
    }
  }

  const inherited = (e: TrailEvent): void => {
    const highest = Math.max(...[...members(e).values()].map((role) => RANK_BY_ROLE[role]!))
    assert.equal(rankOf(e, e.account_id), highest, 'the heir is of the highest rank')
    members(e).set(e.account_id, 'owner')
  }

  const rules: Readonly<Record<string, (e: TrailEvent) => void>> = {
    'account.registered': () => {},
    'account.deleted': (e) => accountDeleted(e.account_id),
    'organization.created': (e) => orgs.set(e.organization_id, new Map([[e.actor_id, 'owner']])),
    'organization.updated': (e) => mayRule(e, ...(e.data.slug === undefined ? [] : ['owner'])),
    'organization.inherited': inherited,
    'organization.deleted': (e) => {
      if (members(e).size > 0) mayRule(e, 'owner')
      orgs.delete(e.organization_id)
    },
    'organization.ownership_transferred': (e) => {
      mayRule(e, 'owner')
      assert.ok(members(e).has(e.account_id) && e.account_id !== e.actor_id)
      assert.deepEqual(e.data.former_owners, [e.actor_id])
      members(e).set(e.actor_id, 'admin').set(e.account_id, 'owner')
    },
    'member.added': (e) => {
      assert.ok(!members(e).has(e.account_id), 'each account is a member once')
      if (e.data.invite === undefined) mayRule(e, e.data.role!)
      else assert.deepEqual([inviteOf(e).status, inviteOf(e).role], ['accepted', e.data.role])
      members(e).set(e.account_id, e.data.role!)
    },
    'member.role_changed': (e) => {
      mayRule(e, e.data.from!, e.data.to!)
      assert.equal(members(e).get(e.account_id), e.data.from)
      members(e).set(e.account_id, e.data.to!)
    },
    'member.removed': (e) => {
      mayRule(e)
      assert.equal(members(e).get(e.account_id), e.data.role)
      assert.notEqual(e.data.role, 'owner', 'owners are not removed')
      members(e).delete(e.account_id)
    },
    'member.left': (e) => {
      assert.equal(e.actor_id, e.account_id)
      assert.ok(members(e).delete(e.account_id), 'who leaves was a member')
    },
    'invite.created': (e) => {
      const { invite, email, role } = e.data as { invite: number; email: string; role: string }
      mayRule(e, role)
      const same = (other: Invite) => other.organization === e.organization_id && other.email === email
      assert.ok(
        ![...invites.values()].some((other) => same(other) && other.status === 'pending'),
        'one is pending',
      )
      assert.ok(![...members(e).keys()].some((id) => emails.get(id) === email), 'no member is invited')
      invites.set(invite, { organization: e.organization_id, email, role, status: 'pending' })
    },
    'invite.accepted': (e) => {
      assert.deepEqual([inviteOf(e).status, inviteOf(e).email], ['pending', emails.get(e.account_id)])
      inviteOf(e).status = 'accepted'
    },
    'invite.resent': (e) => {
      mayRule(e, inviteOf(e).role)
      assert.equal(inviteOf(e).status, 'pending')
    },
    'invite.role_changed': (e) => {
      assert.deepEqual([inviteOf(e).status, inviteOf(e).role, e.data.to], ['pending', 'owner', 'admin'])
      inviteOf(e).role = e.data.to!
    },
    'invite.revoked': (e) => {
      // The actor takes the rank of the sender, or leaves.
      if (e.data.reason !== 'sender') mayRule(e, inviteOf(e).role)
      assert.equal(inviteOf(e).status, 'pending')
      inviteOf(e).status = 'revoked'
    },
  }

  const follow = (e: TrailEvent): void => {
    const next = left.get(e.organization_id)
    if (next !== undefined) assert.equal(e.kind, next, 'a deletion is whole')
    rules[e.kind]!(e)
    left.delete(e.organization_id)
    for (const [id, all] of orgs)
      if (!left.has(id)) assert.ok([...all.values()].includes('owner'), `${id} has an owner`)
  }

  return {
    /** Replays events. @throws at the first illegal event. */
    followAll: (trail: readonly TrailEvent[]): void => {
      for (const event of trail) {
        try {
          follow(event)
        } catch (error) {
          throw new Error(`${JSON.stringify(event)} could not be`, { cause: error })
        }
      }
      assert.equal(left.size, 0, 'every deletion is whole')
    },
    /** Returns the current roles, and the status of the invites of existing organizations. */
    state: () => ({
      members: [...orgs]
        .flatMap(([id, all]) => [...all].map(([user, role]) => `${id} ${user} ${role}`))
        .sort(),
      invites: [...invites]
        .filter(([, { organization }]) => orgs.has(organization))
        .map(([id, { status }]) => `${id} ${status}`)
        .sort(),
    }),
  }
}
