import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertRefused, getMe, KEY_INVALID } from './accounts-help.ts'
import { createKey, deleteKey, KEYS, requestKey } from './api-keys-help.ts'
import { createEmail } from './harness.ts'
import { createSharedOrgs, createSlug, type Person } from './orgs-help.ts'

/**
 * Tests API keys of organizations. A key reaches no other organization, and only admins and owners of its organization
 * manage it.
 */

const world = await createSharedOrgs()
const { api, call, org, query } = world
const KEY_REJECTED = [401, KEY_INVALID] as const
const RANK_TOO_LOW = [403, 'This requires the role admin or owner in the organization'] as const
const OTHER_ORGANIZATION = [
  403,
  'This API key is limited to one organization: its routes, webhooks, worker queues and audit trail',
] as const

test('only admins and owners of the organization create and list its keys', async () => {
  const { id, owner, admin, member, outsider } = await org()
  const made = [
    await createKey(api, owner, { organization_id: id }),
    await createKey(api, admin, { organization_id: id }),
  ]
  assertRefused(await requestKey(api, member, { organization_id: id }), ...RANK_TOO_LOW)
  assertRefused(
    await requestKey(api, outsider, { organization_id: id }),
    403,
    'Only members of the organization may do this',
  )
  assertRefused(await requestKey(api, owner, { organization_id: 999_999 }), 404, 'Organization not found')
  const list = (token: string, of = id) => api.get(`${KEYS}?organization_id=${of}`, { token })
  for (const { token } of [owner, admin]) {
    const answer = await list(token)
    assert.deepEqual(
      answer.json.map((key: { id: string }) => key.id),
      made.map(({ id }) => id).reverse(),
    )
    assert.ok(!answer.text.includes('mill_live_'))
  }
  assertRefused(await list(member.token), ...RANK_TOO_LOW)
  assertRefused(await list(outsider.token), 403, 'Only members of the organization may do this')
  assertRefused(await list(owner.token, 999_999), 404, 'Organization not found')
  // The creator also sees the key among their own keys.
  const own = await api.get(KEYS, { token: admin.token })
  assert.deepEqual(
    own.json.map((key: { id: string; organization_id: number }) => [key.id, key.organization_id]),
    [[made[1]!.id, id]],
  )
})

test('a key of an organization reaches that organization only', async () => {
  const { id, owner } = await org()
  const elsewhere = await world.create(owner)
  const { key } = await createKey(api, owner, { organization_id: id })
  const by = { ...owner, token: key }
  assert.equal((await call(by, 'GET', `/${id}`)).status, 200)
  assert.equal((await call(by, 'GET', `/${id}/members`)).status, 200)
  assert.equal((await call(by, 'PATCH', `/${id}`, { query: { name: 'New' } })).status, 200)
  for (const path of [`/${elsewhere}`, `/${elsewhere}/members`, '', '/999999'])
    assertRefused(await call(by, 'GET', path), ...OTHER_ORGANIZATION, path)
  assertRefused(
    await call(by, 'POST', '', { json: { name: 'A', slug: createSlug() } }),
    ...OTHER_ORGANIZATION,
  )
  assert.equal((await getMe(api, key)).json.id, owner.id)
})

test('a key of an organization cannot reach resources of its account', async () => {
  const { root } = world
  const id = await world.create(root)
  const { key: token } = await createKey(api, root, { organization_id: id })
  const paths = [
    '/api/v1/documents',
    '/api/v1/jobs',
    '/api/v1/auth/users',
    '/api/v1/auth/me/quotas',
    '/api/v1/ai/conversations',
  ]
  for (const path of [...paths, '/api/v1/webhooks'])
    assertRefused(await api.get(path, { token }), ...OTHER_ORGANIZATION, path)
  assertRefused(await api.upload(token, 'x'), ...OTHER_ORGANIZATION)
  const hook = { url: 'https://example.com/', events: ['job.done'] }
  const add = (json: object) => api.post('/api/v1/webhooks', { token, json })
  assertRefused(await add(hook), ...OTHER_ORGANIZATION)
  assertRefused(await add({ ...hook, organization_id: 999_999 }), ...OTHER_ORGANIZATION)
  assert.equal((await add({ ...hook, organization_id: id })).status, 201)
  assert.equal((await api.get(`/api/v1/webhooks?organization_id=${id}`, { token })).json.length, 1)
  assert.equal((await call(root, 'DELETE', `/${id}`)).status, 204)
})

test('a key of an organization cannot accept invites to another', async () => {
  const [{ id, owner }, other] = [await org(), await org()]
  // The account gets this address only later, because registering with it would accept the invites immediately.
  const email = createEmail('later')
  const invite = async (to: number, by: Person): Promise<string> =>
    (await call(by, 'POST', `/${to}/invites`, { json: { email } })).json.token
  const [own, others] = [await invite(id, owner), await invite(other.id, other.owner)]
  await query('update account set email = $2 where id = $1', [owner.id, email])
  api.serving.edge.authenticator.forget(owner.id)
  const accept = async (token: string, invite: string) =>
    api.post('/api/v1/auth/accept-invite', { token, json: { token: invite } })
  const { key } = await createKey(api, owner, { organization_id: id })
  assertRefused(await accept(key, others), ...OTHER_ORGANIZATION)
  assert.equal((await accept(key, own)).status, 200)
  assert.equal((await accept((await createKey(api, owner)).key, others)).status, 200)
})

test('a key of an organization reads only the audit trail of that organization', async () => {
  const { root } = world
  const elsewhere = await world.create(root)
  const own = await world.create(root)
  const { key } = await createKey(api, root, { organization_id: own })
  const trail = (of: string) => api.get(`/api/v1/auth/audit${of}`, { token: key })
  for (const answer of [await trail(''), await trail(`?organization_id=${own}`)])
    assert.deepEqual(
      [...new Set(answer.json.events.map((event: { organization_id: number }) => event.organization_id))],
      [own],
    )
  assertRefused(await trail(`?organization_id=${elsewhere}`), ...OTHER_ORGANIZATION)
  for (const id of [own, elsewhere]) assert.equal((await call(root, 'DELETE', `/${id}`)).status, 204)
})

describe('a key of an organization is deleted', () => {
  test('by its creator, and by admins and owners, only', async () => {
    const { id, owner, admin, member, outsider } = await org()
    const keys = await Promise.all(
      [admin, admin, owner].map((who) => createKey(api, who, { organization_id: id })),
    )
    assertRefused(await deleteKey(api, member, keys[0]!.id), ...RANK_TOO_LOW)
    assertRefused(
      await deleteKey(api, outsider, keys[0]!.id),
      403,
      'Only members of the organization may do this',
    )
    for (const [i, who] of [admin, owner, admin].entries())
      assert.equal((await deleteKey(api, who, keys[i]!.id)).status, 204)
    for (const { key } of keys) assertRefused(await getMe(api, key), ...KEY_REJECTED)
  })

  test('when its account leaves or is removed, or the organization is deleted', async () => {
    const [left, removed, deleted] = [await org(), await org(), await org()]
    const made = {
      left: await createKey(api, left.admin, { organization_id: left.id }),
      own: await createKey(api, left.admin),
      removed: await createKey(api, removed.admin, { organization_id: removed.id }),
      deleted: await createKey(api, deleted.owner, { organization_id: deleted.id }),
    }
    for (const { key } of Object.values(made)) assert.equal((await getMe(api, key)).status, 200)
    await call(left.admin, 'DELETE', `/${left.id}/members/me`)
    await call(removed.owner, 'DELETE', `/${removed.id}/members/${removed.admin.id}`)
    await call(deleted.owner, 'DELETE', `/${deleted.id}`)
    const { edge } = api.serving
    for (const { id } of [left.admin, removed.admin, deleted.owner]) edge.authenticator.forget(id)
    for (const which of ['left', 'removed', 'deleted'] as const)
      assertRefused(await getMe(api, made[which].key), ...KEY_REJECTED, which)
    assert.equal((await getMe(api, made.own.key)).status, 200)
  })

  test('but not when its account is demoted; the key then has the lower rank', async () => {
    const { id, owner, admin } = await org()
    const { key } = await createKey(api, admin, { organization_id: id })
    await call(owner, 'PATCH', `/${id}/members/${admin.id}`, { query: { role: 'member' } })
    const by = { ...admin, token: key }
    assert.equal((await call(by, 'GET', `/${id}`)).status, 200)
    assertRefused(await call(by, 'GET', `/${id}/invites`), ...RANK_TOO_LOW)
  })
})
