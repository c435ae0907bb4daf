import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEmail } from './harness.ts'
import { assertRefused, createSharedOrgs, type Person } from './orgs-help.ts'

/** Pending invites follow the rank of their sender, and everything that ends with a membership is audited. */

const { api, call, org, roles, trail, query, root } = await createSharedOrgs()

/** Returns an organization with a second owner, who has invited a member, an admin and an owner. */
async function createSender() {
  const at = await org()
  const sender = at.outsider
  await call(at.owner, 'POST', `/${at.id}/members`, { query: { user_id: sender.id, role: 'owner' } })
  const invites = new Map<string, number>()
  for (const role of ['member', 'admin', 'owner']) {
    const { json } = await call(sender, 'POST', `/${at.id}/invites`, {
      json: { email: createEmail('guest'), role },
    })
    invites.set(role, json.id)
  }
  const read = async () =>
    (
      await query('select role, status from organization_invite where organization_id = $1 order by id', [
        at.id,
      ])
    ).map(({ role, status }) => `${role} ${status}`)
  return { ...at, sender, invites, read }
}
const setRole = (who: Person, id: number, target: Person, role: string) =>
  call(who, 'PATCH', `/${id}/members/${target.id}`, { query: { role } })

const PENDING = ['member pending', 'admin pending', 'owner pending']
const LOWERED = ['member pending', 'admin pending', 'admin pending']
const REVOKED = ['member revoked', 'admin revoked', 'owner revoked']

test('an owner who becomes an admin invites no owners, and a member has no invites', async () => {
  const { id, owner, sender, invites, read } = await createSender()
  assert.deepEqual(await read(), PENDING)
  assert.equal((await setRole(owner, id, sender, 'admin')).status, 200)
  assert.deepEqual(await read(), LOWERED)
  const { kind, actor_id, data } = (await trail(id)).at(-1)!
  const { email, ...change } = data as Record<string, unknown>
  assert.deepEqual([kind, actor_id, typeof email], ['invite.role_changed', owner.id, 'string'])
  assert.deepEqual(change, { invite: invites.get('owner'), reason: 'sender', from: 'owner', to: 'admin' })
  assert.equal((await setRole(owner, id, sender, 'member')).status, 200)
  assert.deepEqual(await read(), ['member revoked', 'admin revoked', 'admin revoked'])
})

test('a transfer lowers the invites of the former owner', async () => {
  const { id, sender, member, read } = await createSender()
  const json = { user_id: member.id }
  assert.equal((await call(sender, 'POST', `/${id}/transfer-ownership`, { json })).status, 200)
  assert.deepEqual(await read(), LOWERED)
})

test('invites of a sender who leaves, is removed or is deactivated are revoked', async () => {
  const ways: ((at: Awaited<ReturnType<typeof createSender>>) => Promise<{ status: number }>)[] = [
    ({ id, sender }) => call(sender, 'DELETE', `/${id}/members/me`),
    async ({ id, owner, sender }) => {
      await setRole(owner, id, sender, 'admin')
      return call(owner, 'DELETE', `/${id}/members/${sender.id}`)
    },
    ({ sender }) => api.call('PATCH', `/api/v1/auth/users/${sender.id}/deactivate`, { token: root.token }),
  ]
  for (const way of ways) {
    const at = await createSender()
    const guest = createEmail('guest')
    const kept = await call(at.owner, 'POST', `/${at.id}/invites`, { json: { email: guest } })
    assert.ok((await way(at)).status < 300)
    const [, , , last, ...others] = await at.read()
    assert.deepEqual([last, others], ['member pending', []])
    assert.ok((await at.read()).slice(0, 3).every((state) => state.endsWith('revoked')))
    const token = (await call(at.owner, 'GET', `/${at.id}/invites`)).json[0].token
    assert.equal(token, kept.json.token)
  }
})

test('a revoked invite does not admit its address', async () => {
  const { id, owner, sender, read } = await createSender()
  const email = createEmail('late')
  const { json } = await call(sender, 'POST', `/${id}/invites`, { json: { email, role: 'owner' } })
  await setRole(owner, id, sender, 'member')
  assert.deepEqual(await read(), [...REVOKED, 'owner revoked'])
  const invite_token = json.token
  const registered = { json: { email, password: 'correct horse', invite_token } }
  assertRefused(await api.post('/api/v1/auth/register', registered), 400, 'The invite was revoked')
  assert.equal(Object.keys(await roles(id)).length, 4)
})

test('the keys and webhook endpoints that end with a membership are audited', async () => {
  const { id, owner, admin } = await org()
  const { token } = admin
  const own = { organization_id: id }
  const scopes = ['organizations:read']
  const key = await api.post('/api/v1/auth/keys', { token, json: { ...own, name: 'k', scopes } })
  const json = { ...own, url: 'https://hooks.example.com/x', events: ['job.done'] }
  const webhook = await api.post('/api/v1/webhooks', { token, json })
  assert.deepEqual([key.status, webhook.status], [201, 201], key.text + webhook.text)
  const path = `/api/v1/webhooks/${webhook.json.id}`
  await api.call('PATCH', path, { token, json: { description: 'mine', events: ['job.failed'] } })
  const updated = (await trail(id)).at(-1)!
  assert.deepEqual(updated.data, {
    webhook: webhook.json.id,
    description: 'mine',
    events: ['job.failed'],
    before: { description: null, events: ['job.done'] },
  })
  assert.equal((await call(owner, 'DELETE', `/${id}/members/${admin.id}`)).status, 204)
  assert.deepEqual((await trail(id)).slice(-3), [
    { kind: 'member.removed', actor_id: owner.id, account_id: admin.id, data: { role: 'admin' } },
    {
      kind: 'key.deleted',
      actor_id: owner.id,
      account_id: admin.id,
      data: { key: key.json.id, name: 'k', scopes, expires_at: null, reason: 'member' },
    },
    {
      kind: 'webhook.deleted',
      actor_id: owner.id,
      account_id: admin.id,
      data: { webhook: webhook.json.id, url: webhook.json.url, events: ['job.failed'], reason: 'member' },
    },
  ])
})
