import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { insertMailedToken } from '../../sql/accounts/accounts.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { assertRefused, getMe, logIn, refreshSession, TOKEN_INVALID } from './accounts-help.ts'
import { PASSWORD } from './harness.ts'
import { createOrgs, type Person } from './orgs-help.ts'

/** Deleted accounts and organizations must disappear for every caller before a worker has pruned their rows. */

const { api, call, create, org, roles, people, db, query } = await createOrgs()
const admin = await api.register('admin@example.com')
const USERS = '/api/v1/auth/users'
const NO_USER = 'User not found'
const remove = async (id: number): Promise<void> =>
  assert.equal((await api.call('DELETE', `${USERS}/${id}`, { token: admin.token })).status, 204)
const readPurgeJobs = () =>
  query(`select status, owner_id from job where name = 'accounts.purge' order by id`)
const idsIn = (list: readonly { id?: number; user_id?: number }[]) =>
  list.map(({ id, user_id }) => user_id ?? id)

describe('a deleted account', () => {
  test('cannot be found, listed or changed', async () => {
    const { id } = await api.register('one@example.com', { full_name: 'One' })
    await remove(id)
    assert.deepEqual(
      await query('select email, full_name, password_hash, is_active from account where id = $1', [id]),
      [{ email: null, full_name: null, password_hash: '', is_active: false }],
    )
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['PATCH', '?full_name=Back'],
      ['PATCH', '/activate'],
      ['PATCH', '/deactivate'],
      ['PATCH', '/role?role=admin'],
    ] as const)
      assertRefused(
        await api.call(method, `${USERS}/${id}${path}`, { token: admin.token }),
        404,
        NO_USER,
        path,
      )
    const listed = (await api.get(USERS, { token: admin.token })).json
    assert.ok(!idsIn(listed).includes(id))
  })

  test('cannot sign in, refresh or sign out, and all its tokens are invalid', async () => {
    const account = await api.register('two@example.com')
    for (const kind of ['reset', 'verify'] as const)
      await db.one(insertMailedToken(randomUUID(), account.id, kind, digestOf(kind), 60))
    await remove(account.id)
    assertRefused(await getMe(api, account.token), 401, TOKEN_INVALID)
    assertRefused(await logIn(api, account.email), 401, 'Incorrect email or password')
    assert.equal((await refreshSession(api, account.refresh)).status, 401)
    const headers = { cookie: `millrace_refresh=${account.refresh}` }
    assert.equal((await api.post('/api/v1/auth/logout', { headers })).status, 401)
    const reset = { token: 'reset', new_password: 'a new password' }
    for (const [path, json] of [
      ['password-reset/confirm', reset],
      ['verify-email', { token: 'verify' }],
    ] as const)
      assert.equal((await api.post(`/api/v1/auth/${path}`, { json })).status, 400, path)
    const last = await query('select kind from audit_event where account_id = $1 order by id desc limit 1', [
      account.id,
    ])
    assert.deepEqual(last, [{ kind: 'account.deleted' }])
  })

  test('frees its address', async () => {
    const { id, email } = await api.register('three@example.com')
    await remove(id)
    const again = await api.register(email)
    assert.notEqual(again.id, id)
    assert.equal((await logIn(api, email, PASSWORD)).status, 200)
  })

  test('is not a member and cannot become one', async () => {
    const { id, owner, member, outsider } = await org()
    const invite = (await call(owner, 'POST', `/${id}/invites`, { json: { email: 'four@example.com' } })).json
    for (const { id: gone } of [member, outsider]) await remove(gone)
    assert.ok(!(member.id in (await roles(id))))
    for (const path of ['members', 'members/details'])
      assert.ok(!idsIn((await call(owner, 'GET', `/${id}/${path}`)).json).includes(member.id), path)
    for (const gone of [member, outsider])
      assertRefused(
        await call(owner, 'POST', `/${id}/members`, { query: { user_id: gone.id } }),
        404,
        NO_USER,
      )
    const bulk = await call(owner, 'POST', `/${id}/members/bulk`, { json: { user_ids: [outsider.id] } })
    assertRefused(bulk, 400, `Unknown user ids: ${outsider.id}`)
    assertRefused(await call(owner, 'DELETE', `/${id}/members/${member.id}`), 404, 'Member not found')
    assert.equal(invite.status, 'pending')
    const again = (await call(owner, 'POST', `/${id}/invites`, { json: { email: member.email } })).json
    assert.equal(again.status, 'pending', 'no account has the address')
  })

  test('is purged by a job without an owner, also after deleting itself', async () => {
    const [before, [one]] = [(await readPurgeJobs()).length, (await people(1, 'admin')) as [Person]]
    const answer = await api.call('DELETE', `${USERS}/${one.id}`, { token: one.token })
    assert.equal(answer.status, 204)
    assert.deepEqual((await readPurgeJobs()).slice(before), [{ status: 'available', owner_id: null }])
    const seen = async (token: string): Promise<boolean> =>
      (await api.get('/api/v1/jobs', { token })).json.some(
        ({ name }: { name: string }) => name === 'accounts.purge',
      )
    const [user] = (await people(1)) as [Person]
    assert.deepEqual([await seen(admin.token), await seen(user.token)], [true, false])
  })
})

describe('a deleted organization', () => {
  const gone = async () => {
    const world = await org()
    const email = `guest${world.id}@example.com`
    const { json: invite } = await call(world.owner, 'POST', `/${world.id}/invites`, { json: { email } })
    const { slug } = (await call(world.owner, 'GET', `/${world.id}`)).json as { slug: string }
    assert.equal((await call(world.owner, 'DELETE', `/${world.id}`)).status, 204)
    return { ...world, email, invite, slug }
  }

  test('is not found or listed by its members', async () => {
    const { id, owner, admin: ruler, member } = await gone()
    for (const who of [owner, ruler, member]) {
      for (const path of ['', '/members', '/members/details', '/invites'])
        assertRefused(await call(who, 'GET', `/${id}${path}`), 404, 'Organization not found')
      assert.deepEqual((await call(who, 'GET', '')).json, [])
    }
    for (const [method, path] of [
      ['PATCH', '?name=Back'],
      ['DELETE', ''],
      ['DELETE', '/members/me'],
      ['POST', `/members?user_id=${admin.id}`],
    ] as const)
      assertRefused(await call(owner, method, `/${id}${path}`), 404, 'Organization not found')
    const root = { ...admin, id: admin.id } as Person
    assert.ok(!idsIn((await call(root, 'GET', '/all')).json).includes(id))
    const members = idsIn((await call(root, 'GET', '/memberships', { query: { page_size: 1000 } })).json)
    assert.ok(!members.includes(owner.id))
  })

  test('frees its slug, and the audit trail keeps its old name', async () => {
    const { id, slug, outsider } = await gone()
    assert.notEqual(await create(outsider, { slug }), id)
    const [event] = await query(
      `select data from audit_event where organization_id = $1 and kind = 'organization.deleted'`,
      [id],
    )
    assert.deepEqual(event, { data: { slug } })
  })

  test('cannot invite', async () => {
    const { id, email, invite } = await gone()
    const guest = await api.register(email)
    assert.deepEqual((await call(guest, 'GET', '')).json, [])
    const accepted = await api.post('/api/v1/auth/accept-invite', {
      token: guest.token,
      json: { token: invite.token },
    })
    assertRefused(accepted, 400, 'The invite token is invalid')
    const joined = await query(
      `select 1 from audit_event where kind = 'member.added' and organization_id = $1 and account_id = $2`,
      [id, guest.id],
    )
    assert.deepEqual(joined, [])
  })

  test('is purged by a job without an owner', async () => {
    const before = (await readPurgeJobs()).length
    await gone()
    assert.deepEqual((await readPurgeJobs()).slice(before), [{ status: 'available', owner_id: null }])
  })
})
