import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { assertRefused, logIn } from './accounts-help.ts'
import { type Answered, type Api, startEdge, startEdgeAndDatabase } from './harness.ts'

/** At least one active admin always remains, even under concurrent requests. */

const { api, url, query } = await startEdgeAndDatabase()
const otherEdge = await startEdge(url)
const openEdge = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
const admin = await api.register('admin@example.com')
const user = await api.register('user@example.com')
const REFUSAL = 'This is the last active admin; make another account an admin first'

const REMOVALS = {
  demote: (edge: Api, id: number, token: string) =>
    edge.call('PATCH', `/api/v1/auth/users/${id}/role?role=moderator`, { token }),
  deactivate: (edge: Api, id: number, token: string) =>
    edge.call('PATCH', `/api/v1/auth/users/${id}/deactivate`, { token }),
  delete: (edge: Api, id: number, token: string) =>
    edge.call('DELETE', `/api/v1/auth/users/${id}`, { token }),
} satisfies Record<string, (edge: Api, id: number, token: string) => Promise<Answered>>
type Removal = keyof typeof REMOVALS
const removals = Object.keys(REMOVALS) as Removal[]

const listActiveAdmins = () => query(`select id from account where role = 'admin' and is_active order by id`)

for (const way of removals) {
  test(`the last active admin can't ${way} itself: 409, and nothing changes`, async () => {
    assertRefused(await REMOVALS[way](api, admin.id, admin.token), 409, REFUSAL)
    assert.deepEqual(await listActiveAdmins(), [{ id: admin.id }])
    const { json, status } = await api.get('/api/v1/auth/me', { token: admin.token })
    assert.deepEqual([status, json.role, json.is_active], [200, 'admin', true])
    assert.equal((await logIn(api, admin.email)).status, 200)
  })
}

test("unauthenticated callers can't remove the last admin either", async () => {
  for (const way of removals) assertRefused(await REMOVALS[way](openEdge, admin.id, ''), 409, REFUSAL)
})

test('an inactive admin does not count as another admin, an active one does', async () => {
  await query(`update account set role = 'admin', is_active = false where id = $1`, [user.id])
  for (const way of removals) assertRefused(await REMOVALS[way](api, admin.id, admin.token), 409, REFUSAL)
  await api.call('PATCH', `/api/v1/auth/users/${user.id}/activate`, { token: admin.token })
  assert.equal((await REMOVALS.deactivate(api, user.id, admin.token)).status, 200)
  await api.call('PATCH', `/api/v1/auth/users/${user.id}/activate`, { token: admin.token })
  assert.equal((await REMOVALS.demote(api, user.id, admin.token)).json.role, 'moderator')
})

test('granting the last admin its own role or changing its name is allowed', async () => {
  const role = await api.call('PATCH', `/api/v1/auth/users/${admin.id}/role?role=admin`, {
    token: admin.token,
  })
  assert.deepEqual([role.status, role.json.role], [200, 'admin'])
  const active = await api.call('PATCH', `/api/v1/auth/users/${admin.id}/activate`, { token: admin.token })
  assert.equal(active.status, 200)
  const name = await api.call('PATCH', `/api/v1/auth/users/${admin.id}?full_name=Last`, {
    token: admin.token,
  })
  assert.equal(name.status, 200)
})

/** Creates new admins and demotes all others. */
async function createAdmins(count: number): Promise<{ id: number; token: string }[]> {
  const rows = await query(
    `insert into account (email, password_hash, role)
     select gen_random_uuid() || '@example.com', 'x', 'admin' from generate_series(1, $1) returning id`,
    [count],
  )
  const ids = rows.map(({ id }) => id as number)
  await query(`update account set role = 'user' where role = 'admin' and not (id = any($1))`, [ids])
  return Promise.all(
    ids.map(async (id) => ({
      id,
      token: await api.serving.edge.authenticator.sign({ id, role: 'admin' }, randomUUID()),
    })),
  )
}

for (const first of removals) {
  test(`of two admins that remove each other concurrently (${first} and each way), one remains and the other gets 409`, async () => {
    for (const second of removals) {
      const outcomes: number[] = []
      for (let round = 0; round < 8; round++) {
        const [one, two] = (await createAdmins(2)) as [{ id: number; token: string }, typeof admin]
        // Both edges have the accounts cached, so neither request is delayed by a read.
        await Promise.all(
          [one, two].flatMap(({ token }) => [api, otherEdge].map((edge) => warmUp(edge, token))),
        )
        const answers = await Promise.all([
          REMOVALS[first](api, two.id, one.token),
          REMOVALS[second](otherEdge, one.id, two.token),
        ])
        const done = answers.filter(({ status }) => status < 300)
        const refused = answers.find(({ status }) => status >= 300)!
        assert.equal(done.length, 1, `${first}/${second}: ${answers.map(({ status }) => status)}`)
        // The losing edge answers 403 or 401 if it already knows that its caller has been changed.
        assert.ok([409, 403, 401].includes(refused.status), refused.text)
        outcomes.push(refused.status)
        assert.equal((await listActiveAdmins()).length, 1)
      }
      assert.ok(outcomes.includes(409), `${first}/${second} met at least once: ${outcomes}`)
    }
  })
}

const warmUp = (edge: Api, token: string): Promise<Answered> => edge.get('/api/v1/auth/me', { token })

test('when many admins remove themselves concurrently, the last one remains', async () => {
  for (let round = 0; round < 6; round++) {
    const all = await createAdmins(6)
    await Promise.all(all.flatMap(({ token }) => [warmUp(api, token), warmUp(otherEdge, token)]))
    const answers = await Promise.all(
      all.map(({ id, token }, i) => REMOVALS[removals[(i + round) % 3]!](i % 2 ? api : otherEdge, id, token)),
    )
    assert.deepEqual(
      answers.map(({ status }) => status).filter((status) => status >= 300),
      [409],
    )
    assert.equal((await listActiveAdmins()).length, 1)
  }
})
