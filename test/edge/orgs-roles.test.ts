import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  assertRefused,
  type Call,
  createSharedOrgs,
  LAST_OWNER,
  NOT_MEMBER,
  ORG_MISSING,
  type Person,
  RANK_EXCEEDED,
  RANK_TOO_LOW,
  ROLE_INVALID,
} from './orgs-help.ts'

const { call, org, roles, trail, last, root } = await createSharedOrgs()
const promote = (who: Person, id: number, user: number, role: string) =>
  call(who, 'PATCH', `/${id}/members/${user}`, { query: { role } })
const remove = (who: Person, id: number, user: number | 'me') => call(who, 'DELETE', `/${id}/members/${user}`)

describe('PATCH /orgs/{org_id}/members/{user_id}', () => {
  test("changes roles up to the caller's own", async () => {
    const { id, owner, admin, member } = await org()
    const answer = await promote(admin, id, member.id, 'admin')
    assert.deepEqual([answer.status, answer.json.user_id, answer.json.role], [200, member.id, 'admin'])
    assert.deepEqual(await last(id), {
      kind: 'member.role_changed',
      actor_id: admin.id,
      account_id: member.id,
      data: { from: 'member', to: 'admin' },
    })
    assert.equal((await promote(admin, id, member.id, 'member')).json.role, 'member', 'admins touch admins')
    assert.equal((await promote(owner, id, member.id, 'owner')).json.role, 'owner', 'there may be two')
    assert.equal((await promote(owner, id, member.id, 'admin')).json.role, 'admin', 'owners touch owners')
    assert.equal((await promote(admin, id, admin.id, 'member')).json.role, 'member', 'also oneself')
  })

  test('setting the current role changes nothing', async () => {
    const { id, owner } = await org()
    const answer = await promote(owner, id, owner.id, 'owner')
    assert.deepEqual([answer.status, answer.json.role], [200, 'owner'])
    assert.equal((await trail(id)).length, 1)
  })

  test('an unknown member is 404, an unknown role 400, a missing role 422', async () => {
    const { id, owner, member, outsider } = await org()
    for (const user of [outsider.id, 999_999])
      assertRefused(await promote(owner, id, user, 'admin'), 404, 'Member not found')
    assertRefused(await promote(owner, id, member.id, 'root'), 400, ROLE_INVALID)
    assertRefused(await call(owner, 'PATCH', `/${id}/members/${member.id}`), 422)
    assertRefused(await call(owner, 'PATCH', `/${id}/members/x`, { query: { role: 'admin' } }), 422)
  })

  test('admins cannot appoint or change owners', async () => {
    const { id, owner, admin, member } = await org()
    assertRefused(await promote(admin, id, member.id, 'owner'), 403, RANK_EXCEEDED)
    assertRefused(await promote(admin, id, admin.id, 'owner'), 403, RANK_EXCEEDED)
    for (const role of ['owner', 'admin', 'member'])
      assertRefused(await promote(admin, id, owner.id, role), 403, RANK_EXCEEDED)
  })

  test('the last owner stays; of two co-owners only one can step down', async () => {
    const { id, owner, admin } = await org()
    for (const role of ['admin', 'member'])
      assertRefused(await promote(owner, id, owner.id, role), 403, LAST_OWNER)
    assert.equal((await trail(id)).length, 1)
    await promote(owner, id, admin.id, 'owner')
    const answers = await Promise.all([
      promote(owner, id, owner.id, 'member'),
      promote(admin, id, admin.id, 'member'),
    ])
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 403])
    assert.equal(Object.values(await roles(id)).filter((role) => role === 'owner').length, 1)
  })

  test('a demoted admin loses its rights immediately', async () => {
    for (let round = 0; round < 10; round++) {
      const { id, owner, admin, member } = await org()
      const [demoted, granted] = await Promise.all([
        promote(owner, id, admin.id, 'member'),
        promote(admin, id, member.id, 'admin'),
      ])
      assert.equal(demoted.status, 200)
      const kinds = (await trail(id)).slice(1).map(({ actor_id }) => actor_id)
      // In either order, the admin changes nothing after the demotion.
      assert.deepEqual(kinds, granted.status === 200 ? [admin.id, owner.id] : [owner.id])
    }
  })
})

describe('DELETE /orgs/{org_id}/members/{user_id}', () => {
  test('removes members and admins, including the caller', async () => {
    const { id, owner, admin, member } = await org()
    const answer = await remove(admin, id, member.id)
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assert.deepEqual(await last(id), {
      kind: 'member.removed',
      actor_id: admin.id,
      account_id: member.id,
      data: { role: 'member' },
    })
    assertRefused(await call(member, 'GET', `/${id}`), 403, NOT_MEMBER)
    assertRefused(await remove(admin, id, member.id), 404, 'Member not found')
    assert.equal((await remove(admin, id, admin.id)).status, 204)
    assert.deepEqual(await roles(id), { [owner.id]: 'owner' })
  })

  test('owners are never removed, by owners or with co-owners', async () => {
    const { id, owner, admin, member } = await org()
    const detail = 'The owner cannot be removed; ownership must be transferred first'
    await promote(owner, id, member.id, 'owner')
    for (const who of [owner, admin, member])
      for (const target of [owner, member]) assertRefused(await remove(who, id, target.id), 403, detail)
    await promote(owner, id, member.id, 'admin')
    assert.equal((await remove(owner, id, member.id)).status, 204)
  })

  test('an unknown member is 404', async () => {
    const { id, owner, outsider } = await org()
    for (const user of [outsider.id, 999_999])
      assertRefused(await remove(owner, id, user), 404, 'Member not found')
    assert.equal((await call(owner, 'DELETE', `/${id}/members/details`)).status, 405)
    assertRefused(await call(owner, 'DELETE', `/${id}/members/x`), 422)
  })
})

describe('DELETE /orgs/{org_id}/members/me', () => {
  test('every member may leave', async () => {
    const { id, owner, admin, member } = await org()
    for (const [who, role] of [
      [admin, 'admin'],
      [member, 'member'],
    ] as const) {
      const answer = await remove(who, id, 'me')
      assert.deepEqual([answer.status, answer.text], [204, ''])
      assert.deepEqual(await last(id), {
        kind: 'member.left',
        actor_id: who.id,
        account_id: who.id,
        data: { role },
      })
      assertRefused(await remove(who, id, 'me'), 403, NOT_MEMBER)
    }
    assert.deepEqual(await roles(id), { [owner.id]: 'owner' })
  })

  test('an owner may leave if another one stays; one of two concurrent requests succeeds', async () => {
    const { id, owner, admin } = await org()
    assertRefused(await remove(owner, id, 'me'), 403, LAST_OWNER)
    await promote(owner, id, admin.id, 'owner')
    const answers = await Promise.all([remove(owner, id, 'me'), remove(admin, id, 'me')])
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 403])
    assertRefused(answers.find(({ status }) => status === 403)!, 403, LAST_OWNER)
  })

  test('is 404 without a membership and 401 without a credential', async () => {
    const { id, owner } = await org()
    assertRefused(await call(owner, 'DELETE', '/999999/members/me'), 404, ORG_MISSING)
    assertRefused(await call(null, 'DELETE', `/${id}/members/me`), 401)
  })
})

test('checks for an unknown organization, membership, rank and input, in this order', async () => {
  const { id, owner, member, outsider, admin } = await org()
  const routes: readonly [method: string, path: string, request: Call][] = [
    ['POST', '/members', { query: { user_id: outsider.id, role: 'root' } }],
    ['POST', '/members/bulk', { json: { user_ids: [999_999], role: 'root' } }],
    ['PATCH', `/members/${owner.id}`, { query: { role: 'root' } }],
    ['DELETE', `/members/${owner.id}`, {}],
    ['DELETE', `/members/${admin.id}`, {}],
  ]
  for (const [method, path, request] of routes) {
    assertRefused(await call(outsider, method, `/999999${path}`, request), 404, ORG_MISSING)
    assertRefused(await call(outsider, method, `/${id}${path}`, request), 403, NOT_MEMBER)
    assertRefused(await call(root, method, `/999999${path}`, request), 404, ORG_MISSING)
    assertRefused(await call(member, method, `/${id}${path}`, request), 403, RANK_TOO_LOW)
    assertRefused(await call(null, method, `/${id}${path}`, request), 401)
  }
  assert.equal((await trail(id)).length, 1, 'nothing was done')
})
