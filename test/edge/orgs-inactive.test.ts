import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createEmail, PASSWORD } from './harness.ts'
import {
  assertRefused,
  createSharedOrgs,
  LAST_OWNER,
  NOT_MEMBER,
  type Person,
  signInAs,
} from './orgs-help.ts'

/** An organization has an owner who can sign in, or an admin of the service who repairs it. */

const { api, call, create, org, people, roles, trail, last, query, root } = await createSharedOrgs()
const INACTIVE = 'A deactivated account cannot own an organization'
const deactivate = (person: Person) =>
  api.call('PATCH', `/api/v1/auth/users/${person.id}/deactivate`, { token: root.token })
/** Activates an account and signs it in again, because its sessions have ended. */
async function activate(person: Person): Promise<Person> {
  const answer = await api.call('PATCH', `/api/v1/auth/users/${person.id}/activate`, { token: root.token })
  assert.equal(answer.status, 200, answer.text)
  return signInAs(api, person.id, person.email)
}
const remove = (person: Person) =>
  api.call('DELETE', `/api/v1/auth/users/${person.id}`, { token: root.token })
const setRole = (who: Person, id: number, target: Person, role: string) =>
  call(who, 'PATCH', `/${id}/members/${target.id}`, { query: { role } })
const transfer = (who: Person, id: number, to: Person) =>
  call(who, 'POST', `/${id}/transfer-ownership`, { json: { user_id: to.id } })

describe('a deactivated account', () => {
  test('becomes an owner by no request', async () => {
    const { id, owner, admin, outsider } = await org()
    for (const person of [admin, outsider]) await deactivate(person)
    const before = await trail(id)
    const requests = [
      ['POST', '/transfer-ownership', { json: { user_id: admin.id } }],
      ['PATCH', `/members/${admin.id}`, { query: { role: 'owner' } }],
      ['POST', '/members', { query: { user_id: outsider.id, role: 'owner' } }],
      ['POST', '/members/bulk', { json: { user_ids: [outsider.id], role: 'owner' } }],
      ['POST', '/invites', { json: { email: outsider.email, role: 'owner' } }],
    ] as const
    for (const who of [owner, root])
      for (const [method, path, request] of requests)
        if (who === owner || path !== '/invites')
          assertRefused(await call(who, method, `/${id}${path}`, request), 400, INACTIVE)
    assert.deepEqual(await trail(id), before)
    assert.equal(
      (await call(owner, 'POST', `/${id}/members`, { query: { user_id: outsider.id } })).status,
      201,
    )
  })

  test('that registers with the invite of an owner joins as an admin', async () => {
    const { id, owner } = await org()
    const email = createEmail('sleeper')
    await call(owner, 'POST', `/${id}/invites`, { json: { email, role: 'owner' } })
    const json = { email, password: PASSWORD, is_active: false }
    const answer = await api.post('/api/v1/auth/register', { json })
    assert.equal(answer.status, 200, answer.text)
    assert.equal((await roles(id))[answer.json.id], 'admin')
  })
})

describe('the deactivation of the only owner', () => {
  test('makes the highest-ranked active member an owner, too, with an audit event', async () => {
    const { id, owner, admin, member } = await org()
    await deactivate(admin)
    assert.equal((await deactivate(owner)).status, 200)
    assert.deepEqual(await roles(id), { [owner.id]: 'owner', [admin.id]: 'admin', [member.id]: 'owner' })
    assert.deepEqual(await last(id), {
      kind: 'organization.inherited',
      actor_id: root.id,
      account_id: member.id,
      data: { from: owner.id },
    })
    assert.equal((await setRole(member, id, owner, 'member')).status, 200)
    assert.equal((await call(await activate(owner), 'GET', `/${id}`)).status, 200)
  })

  test('leaves the ownership with another active owner', async () => {
    const { id, owner, admin, member } = await org()
    await setRole(owner, id, admin, 'owner')
    await deactivate(owner)
    assert.deepEqual(await roles(id), { [owner.id]: 'owner', [admin.id]: 'owner', [member.id]: 'member' })
    const step = { query: { role: 'admin' } }
    for (const answer of [
      await call(admin, 'PATCH', `/${id}/members/${admin.id}`, step),
      await call(admin, 'DELETE', `/${id}/members/me`),
    ])
      assertRefused(answer, 403, LAST_OWNER)
  })

  test('without active members leaves the organization to it and to admins of the service', async () => {
    const [owner, other] = await people(2)
    const id = await create(owner!)
    await deactivate(owner!)
    assert.deepEqual(await roles(id), { [owner!.id]: 'owner' })
    const added = await call(root, 'POST', `/${id}/members`, { query: { user_id: other!.id } })
    assert.equal(added.status, 201)
    assert.equal((await transfer(root, id, other!)).status, 200)
    assert.deepEqual(await roles(id), { [owner!.id]: 'admin', [other!.id]: 'owner' })
    assert.deepEqual((await last(id))!.data, { from: 'member', to: 'owner', former_owners: [owner!.id] })
  })

  test('and concurrent transfers, promotions and leaves keep an active owner', async () => {
    for (let round = 0; round < 10; round++) {
      const { id, owner, admin, member } = await org()
      const answers = await Promise.all([
        transfer(owner, id, admin),
        deactivate(round % 2 ? admin : owner),
        setRole(owner, id, member, 'owner'),
        call(admin, 'DELETE', `/${id}/members/me`),
        ...(round % 3 ? [] : [remove(member)]),
      ])
      for (const answer of answers) assert.ok(answer.status < 500, answer.text)
      const active = await query(
        `select from organization_member m join account a on a.id = m.user_id and a.is_active
         where m.organization_id = $1 and m.role = 'owner'`,
        [id],
      )
      const members = await query(
        `select from organization_member m join account a on a.id = m.user_id and a.is_active
         where m.organization_id = $1`,
        [id],
      )
      assert.ok(active.length > 0 || members.length === 0, `round ${round}`)
    }
  })
})

describe('the deletion of the only owner', () => {
  test('passes the organization to an active member, not to a deactivated one of higher rank', async () => {
    const { id, owner, admin, member } = await org()
    await deactivate(admin)
    assert.equal((await remove(owner)).status, 204)
    assert.deepEqual(await roles(id), { [admin.id]: 'admin', [member.id]: 'owner' })
  })

  test('leaves an organization of deactivated members without an owner, for an admin of the service', async () => {
    const { id, owner, admin, member } = await org()
    for (const person of [admin, member]) await deactivate(person)
    assert.equal((await remove(owner)).status, 204)
    assert.deepEqual(await roles(id), { [admin.id]: 'admin', [member.id]: 'member' })
    const heir = await activate(member)
    assert.equal((await setRole(root, id, member, 'owner')).status, 200)
    assert.equal((await call(heir, 'PATCH', `/${id}`, { query: { name: 'Mine' } })).status, 200)
    for (const person of [member, admin]) assert.equal((await remove(person)).status, 204)
    assertRefused(await call(root, 'DELETE', `/${id}`), 404)
  })
})

describe('an admin of the service', () => {
  test('repairs members and ownership of any organization, and cannot read it', async () => {
    const { id, owner, admin, member, outsider } = await org()
    assert.equal((await setRole(root, id, member, 'admin')).status, 200)
    assert.equal((await setRole(root, id, member, 'owner')).status, 200)
    assert.equal((await transfer(root, id, admin)).status, 200)
    assert.deepEqual(await roles(id), { [owner.id]: 'admin', [admin.id]: 'owner', [member.id]: 'admin' })
    assert.equal((await call(root, 'DELETE', `/${id}/members/${member.id}`)).status, 204)
    const user_ids = [outsider.id]
    assert.equal((await call(root, 'POST', `/${id}/members/bulk`, { json: { user_ids } })).status, 201)
    assertRefused(await setRole(root, id, admin, 'member'), 403, LAST_OWNER)
    assertRefused(await call(root, 'GET', `/${id}`), 403, NOT_MEMBER)
    assertRefused(await transfer(root, id, root), 400)
    assert.equal((await call(root, 'DELETE', `/${id}`)).status, 204)
  })

  test('repairs nothing with an API key of an organization', async () => {
    const [at, other] = [await org(), await org()]
    await call(root, 'POST', `/${at.id}/members`, { query: { user_id: root.id } })
    await setRole(root, at.id, root, 'admin')
    const scopes = ['organizations:write']
    const json = { name: 'k', scopes, organization_id: at.id }
    const made = await api.post('/api/v1/auth/keys', { token: root.token, json })
    assert.equal(made.status, 201, made.text)
    const key = { ...root, token: made.json.key as string }
    assertRefused(await transfer(key, at.id, at.member), 403)
    assertRefused(await transfer(key, other.id, other.member), 403)
    assert.equal((await call(root, 'DELETE', `/${at.id}/members/${root.id}`)).status, 204)
  })
})
