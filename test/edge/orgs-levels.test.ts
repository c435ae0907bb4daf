import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inviteTokenOf } from '../../tasks/accounts/tokens.ts'
import { TEST_KEYS } from '../keys.ts'
import { createEmail, getSharedEdge } from './harness.ts'
import {
  assertRefused,
  createOrgsOnShared,
  NOT_MEMBER,
  ORG_MISSING,
  OWNERS_ONLY,
  RANK_EXCEEDED,
  RANK_TOO_LOW,
} from './orgs-help.ts'

describe('AUTH_LEVEL=basic', async () => {
  const { admin: root } = await getSharedEdge()
  const { call, org } = await createOrgsOnShared({ env: { AUTH_LEVEL: 'basic' } })

  test('has the same rules for members and their ranks', async () => {
    const { id, owner, admin, member, outsider } = await org()
    assertRefused(await call(null, 'GET', `/${id}`), 401)
    assertRefused(await call(outsider, 'GET', `/${id}`), 403, NOT_MEMBER)
    assertRefused(await call(member, 'PATCH', `/${id}`, { query: { name: 'x' } }), 403, RANK_TOO_LOW)
    assertRefused(await call(admin, 'DELETE', `/${id}`), 403, OWNERS_ONLY)
    const role = { query: { role: 'owner' } }
    assertRefused(await call(admin, 'PATCH', `/${id}/members/${member.id}`, role), 403, RANK_EXCEEDED)
    assert.equal((await call(owner, 'DELETE', `/${id}`)).status, 204)
  })

  test('has the same rules for system admins', async () => {
    const { id, owner } = await org()
    for (const path of ['/all', '/memberships']) {
      assert.equal((await call(root, 'GET', path)).status, 200)
      assertRefused(await call(owner, 'GET', path), 403)
    }
    assertRefused(await call(root, 'GET', `/${id}`), 403, NOT_MEMBER)
  })
})

describe('AUTH_LEVEL=none: every caller may do everything as an owner without membership', async () => {
  const { api, people, call, create, roles, trail, query } = await createOrgsOnShared({
    env: { AUTH_LEVEL: 'none' },
  })

  test('an organization is created without members and is open to all callers', async () => {
    const id = await create(null, { name: 'Free' })
    assert.deepEqual(await roles(id), {})
    for (const path of ['', '/all']) assert.equal((await call(null, 'GET', path)).json[0].id, id)
    assert.equal((await call(null, 'GET', `/${id}`)).json.name, 'Free')
    for (const path of ['members', 'members/details', 'invites'])
      assert.deepEqual((await call(null, 'GET', `/${id}/${path}`)).json, [])
    assert.equal((await call(null, 'GET', '/memberships')).status, 200)
    assert.equal((await call(null, 'PATCH', `/${id}`, { query: { name: 'New' } })).json.name, 'New')
    assert.equal((await call(null, 'DELETE', `/${id}`)).status, 204)
    assertRefused(await call(null, 'DELETE', `/${id}`), 404, ORG_MISSING)
    assert.deepEqual(
      (await trail(id)).map(({ kind, actor_id }) => [kind, actor_id]),
      [
        ['organization.created', null],
        ['organization.updated', null],
        ['organization.deleted', null],
      ],
    )
  })

  test('members can be added, changed and removed in every role', async () => {
    const id = await create(null)
    const [one, two, three] = await people(3)
    const added = await call(null, 'POST', `/${id}/members`, { query: { user_id: one!.id, role: 'owner' } })
    assert.equal(added.status, 201)
    const user_ids = [two!.id, three!.id]
    assert.equal((await call(null, 'POST', `/${id}/members/bulk`, { json: { user_ids } })).json.length, 2)
    await call(null, 'PATCH', `/${id}/members/${two!.id}`, { query: { role: 'admin' } })
    assert.deepEqual(await roles(id), { [one!.id]: 'owner', [two!.id]: 'admin', [three!.id]: 'member' })
    assert.equal((await call(null, 'DELETE', `/${id}/members/${three!.id}`)).status, 204)
    assertRefused(await call(null, 'DELETE', `/${id}/members/${one!.id}`), 403)
    assertRefused(await call(null, 'PATCH', `/${id}/members/${one!.id}`, { query: { role: 'member' } }), 403)
    assertRefused(await call(null, 'DELETE', `/${id}/members/me`), 404, 'Member not found')
    const transfer = { json: { user_id: two!.id } }
    assert.equal((await call(null, 'POST', `/${id}/transfer-ownership`, transfer)).status, 200)
    assert.deepEqual(await roles(id), { [one!.id]: 'owner', [two!.id]: 'owner' })
  })

  test('invites can be created and revoked, but not accepted', async () => {
    const id = await create(null)
    const email = createEmail('guest')
    const made = await call(null, 'POST', `/${id}/invites`, { json: { email, role: 'owner' } })
    assert.equal(made.status, 201)
    const token = inviteTokenOf(TEST_KEYS, made.json.id, email)
    assert.deepEqual((await call(null, 'GET', `/${id}/invites`)).json, [{ ...made.json, token }])
    const accepted = await api.post('/api/v1/auth/accept-invite', { json: { token } })
    assertRefused(accepted, 400, 'The invite is for a different email address')
    assert.equal((await call(null, 'DELETE', `/${id}/invites/${made.json.id}`)).status, 204)
    assert.deepEqual(
      await query('select invited_by from organization_invite where id = $1', [made.json.id]),
      [{ invited_by: null }],
    )
  })
})
