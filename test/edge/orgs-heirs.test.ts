import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEmail } from './harness.ts'
import { assertRefused, createSharedOrgs, createSlug, type Person } from './orgs-help.ts'

/** Tests the effect of account deletion on organizations. */

const { api, people, call, create, org, roles, trail, query, root } = await createSharedOrgs()
const remove = (person: Person) =>
  api.call('DELETE', `/api/v1/auth/users/${person.id}`, { token: root.token })
const organizationExists = async (id: number): Promise<boolean> =>
  (await query('select 1 from organization where id = $1 and deleted_at is null', [id])).length === 1

test('an organization of a single owner passes to the highest-ranked member, with an audit event', async () => {
  const { id, owner, admin, member } = await org()
  assert.equal((await remove(owner)).status, 204)
  assert.deepEqual(await roles(id), { [admin.id]: 'owner', [member.id]: 'member' })
  assert.deepEqual((await trail(id)).at(-1), {
    kind: 'organization.inherited',
    actor_id: root.id,
    account_id: admin.id,
    data: { from: owner.id },
  })
  assert.equal((await call(admin, 'PATCH', `/${id}`, { query: { name: 'Mine' } })).status, 200)
  assertRefused(await call(owner, 'GET', `/${id}`), 401)
})

test('an organization without other members is deleted, with an audit event', async () => {
  const [owner] = await people(1)
  const slug = createSlug('alone')
  const id = await create(owner!, { slug })
  await call(owner!, 'POST', `/${id}/invites`, { json: { email: createEmail('never') } })
  assert.equal((await remove(owner!)).status, 204)
  assert.equal(await organizationExists(id), false)
  assert.deepEqual((await trail(id)).at(-1), {
    kind: 'organization.deleted',
    actor_id: root.id,
    account_id: null,
    data: { slug },
  })
  assert.equal((await api.get(`/api/v1/orgs/${id}`, { token: root.token })).status, 404)
})

test('an organization with another owner stays unchanged', async () => {
  const { id, owner, admin, member } = await org()
  await call(owner, 'PATCH', `/${id}/members/${admin.id}`, { query: { role: 'owner' } })
  const before = (await trail(id)).length
  for (const person of [owner, member]) assert.equal((await remove(person)).status, 204)
  assert.deepEqual(await roles(id), { [admin.id]: 'owner' })
  assert.equal((await trail(id)).length, before)
})

test('the pending invites of a deleted account are revoked, with an audit event', async () => {
  const { id, owner, admin } = await org()
  const email = createEmail('later')
  const { json: invite } = await call(admin, 'POST', `/${id}/invites`, { json: { email } })
  const kept = await call(owner, 'POST', `/${id}/invites`, { json: { email: createEmail('kept') } })
  assert.equal((await remove(admin)).status, 204)
  const { json } = await call(owner, 'GET', `/${id}/invites`)
  assert.deepEqual(json, [kept.json])
  assert.deepEqual((await trail(id)).at(-1), {
    kind: 'invite.revoked',
    actor_id: root.id,
    account_id: null,
    data: { invite: invite.id, email, reason: 'sender', role: 'member' },
  })
})

test('a deletion records all its effects in one transaction', async () => {
  const { id, owner, admin } = await org()
  const alone = await create(owner)
  const answer = await remove(owner)
  const events = await query(
    'select kind, account_id, organization_id from audit_event where request_id = $1 order by id',
    [answer.headers['x-request-id']],
  )
  assert.deepEqual(events, [
    { kind: 'account.deleted', account_id: owner.id, organization_id: null },
    { kind: 'organization.inherited', account_id: admin.id, organization_id: id },
    { kind: 'organization.deleted', account_id: null, organization_id: alone },
  ])
  assertRefused(await remove(owner), 404, 'User not found')
})

test('concurrent deletion of all members deletes the organization', async () => {
  for (let round = 0; round < 5; round++) {
    const { id, owner, admin, member } = await org()
    const answers = await Promise.all([owner, admin, member].map(remove))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [204, 204, 204],
    )
    assert.equal(await organizationExists(id), false)
  }
})

test('an owner remains when an account is deleted during its promotion, leave, invite or transfer', async () => {
  for (let round = 0; round < 10; round++) {
    const { id, owner, admin, member, outsider } = await org()
    const answers = await Promise.all([
      call(owner, 'POST', `/${id}/members`, { query: { user_id: outsider.id, role: 'owner' } }),
      call(owner, 'POST', `/${id}/transfer-ownership`, { json: { user_id: admin.id } }),
      call(owner, 'POST', `/${id}/invites`, { json: { email: createEmail('guest') } }),
      remove(round % 2 ? outsider : owner),
      remove(admin),
      call(member, 'DELETE', `/${id}/members/me`),
    ])
    for (const answer of answers) assert.ok(answer.status < 500, answer.text)
    const left = Object.values(await roles(id))
    assert.ok(left.includes('owner') || !(await organizationExists(id)), `round ${round}: ${left}`)
  }
})
