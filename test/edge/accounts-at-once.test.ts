import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { until } from '../until.ts'
import { getMe, getSharedCast, logIn, refreshSession, sessionIdOf } from './accounts-help.ts'
import { type Account, type Answered, createCuttableConnection, PASSWORD, startEdge } from './harness.ts'

/** Account changes must take effect on every edge process immediately, even for unexpired tokens. */

const { api, url, query, admin, moderator, newcomer } = await getSharedCast()
// A second edge process on the same database, which learns of changes through NOTIFY only.
const otherEdge = await startEdge(url)
const USERS = '/api/v1/auth/users'
const change = (id: number, what: string): Promise<Answered> =>
  api.call('PATCH', `${USERS}/${id}/${what}`, { token: admin.token })

// Stop the clock: cached accounts, normally valid for 5 s, then change only through notifications.
const startedAt = Math.floor(performance.now())
const frozenClock = mock.method(performance, 'now', () => startedAt)

const waitForRejection = (token: string, edge = otherEdge) =>
  until('the token is rejected', async () => (await getMe(edge, token)).status === 401)

/** Creates an account that both processes have cached. */
async function createCachedAccount(): Promise<Account> {
  const account = await newcomer()
  for (const edge of [api, otherEdge]) assert.equal((await getMe(edge, account.token)).status, 200)
  return account
}

test('another process sees a deactivation immediately', async () => {
  const looks: number[] = []
  for (let round = 0; round < 9; round++) {
    const victim = await createCachedAccount()
    assert.equal((await change(victim.id, 'deactivate')).status, 200)
    let count = 0
    await until('the token is rejected', async () => {
      count++
      return (await getMe(otherEdge, victim.token)).status === 401
    })
    looks.push(count)
  }
  // The median tolerates a few slow rounds on a busy machine. The seventh poll comes after 60 ms.
  const median = looks.toSorted((a, b) => a - b)[4]!
  assert.ok(median < 7, `${looks} looks`)
})

test('another process sees an activation immediately', async () => {
  const victim = await createCachedAccount()
  await change(victim.id, 'deactivate')
  await waitForRejection(victim.token)
  assert.equal((await change(victim.id, 'activate')).status, 200)
  const { access_token } = (await logIn(otherEdge, victim.email)).json
  assert.equal((await getMe(otherEdge, access_token)).status, 200)
  assert.equal((await getMe(otherEdge, victim.token)).status, 401, 'but no session is alive again')
})

test('another process sees a deletion immediately', async () => {
  const victim = await createCachedAccount()
  assert.equal((await api.call('DELETE', `${USERS}/${victim.id}`, { token: admin.token })).status, 204)
  assert.equal((await getMe(api, victim.token)).status, 401, 'where it was done, with the answer')
  await waitForRejection(victim.token)
})

test('another process sees promotions and demotions immediately', async () => {
  const { id, token } = await createCachedAccount()
  const list = () => otherEdge.get(USERS, { token })
  assert.equal((await list()).status, 403)
  await change(id, 'role?role=moderator')
  await until('the account may list users', async () => (await list()).status === 200)
  await change(id, 'role?role=user')
  await until('the account may not list users', async () => (await list()).status === 403)
})

test('a demoted admin loses admin rights even though the token still has the role', async () => {
  const { id, email } = await createCachedAccount()
  await change(id, 'role?role=admin')
  const { access_token: token } = (await logIn(api, email)).json
  const act = () => otherEdge.call('PATCH', `${USERS}/${moderator.id}/activate`, { token })
  await until('the account has admin rights', async () => (await act()).status === 200)
  await change(id, 'role?role=user')
  await until('the account has no admin rights', async () => (await act()).status === 403)
})

test('ending a session invalidates its access token and no other token of the account', async () => {
  const { email, token, refresh: cookie } = await createCachedAccount()
  const { access_token: kept } = (await logIn(api, email)).json
  assert.equal((await getMe(otherEdge, kept)).status, 200)
  const path = `/api/v1/auth/sessions/${sessionIdOf(token)}`
  assert.equal((await api.call('DELETE', path, { token: kept })).status, 204)
  await waitForRejection(token)
  assert.equal((await refreshSession(otherEdge, cookie)).status, 401)
  assert.equal((await getMe(otherEdge, kept)).status, 200)
})

test('a password change ends all sessions except the current one', async () => {
  const { email, token } = await createCachedAccount()
  const { access_token: elsewhere } = (await logIn(otherEdge, email)).json
  assert.equal((await getMe(otherEdge, elsewhere)).status, 200)
  const json = { current_password: PASSWORD, new_password: 'another password' }
  assert.equal((await api.post('/api/v1/auth/change-password', { token, json })).status, 200)
  await waitForRejection(elsewhere)
  assert.equal((await getMe(otherEdge, token)).status, 200)
})

test('a replayed refresh token invalidates the access tokens of its session', async () => {
  const { refresh: cookie, token } = await createCachedAccount()
  const next = await refreshSession(api, cookie)
  assert.equal((await getMe(otherEdge, next.json.access_token)).status, 200)
  assert.equal((await refreshSession(api, cookie)).status, 401)
  await waitForRejection(next.json.access_token)
  await waitForRejection(token)
})

test('another process sees a new name', async () => {
  const { id, token } = await createCachedAccount()
  await api.call('PATCH', `${USERS}/${id}?full_name=Grace`, { token })
  await until('the new name', async () => (await getMe(otherEdge, token)).json.full_name === 'Grace')
})

test('the access token survives a logout until it expires', async () => {
  const { token, refresh: cookie } = await createCachedAccount()
  await api.post('/api/v1/auth/logout', { token })
  assert.equal((await refreshSession(otherEdge, cookie)).status, 401)
  for (const edge of [api, otherEdge]) assert.equal((await getMe(edge, token)).status, 200)
})

test('a cached account needs no query: /auth/me answers for 5 s without the database', async () => {
  const line = await createCuttableConnection(url)
  const edge = await startEdge(line.url)
  const { token, id } = await newcomer()
  assert.equal((await getMe(edge, token)).status, 200)
  await line.cut()
  try {
    for (let i = 0; i < 200; i++) {
      const answer = await getMe(edge, token)
      assert.deepEqual([answer.status, answer.json.id], [200, id])
    }
    frozenClock.mock.mockImplementation(() => startedAt + 5_000)
    assert.equal((await getMe(edge, token)).status, 503, 'and the cached state expires')
  } finally {
    frozenClock.mock.mockImplementation(() => startedAt)
    await line.restore()
  }
})

test('changes during a lost connection are seen after the reconnect', async () => {
  const line = await createCuttableConnection(url)
  const edge = await startEdge(line.url)
  const victim = await newcomer()
  assert.equal((await getMe(edge, victim.token)).status, 200)
  await line.cut()
  await change(victim.id, 'deactivate')
  await line.restore()
  await waitForRejection(victim.token, edge)
})

test('an account read that overlaps a change is not cached', async () => {
  // A read that starts before the commit sees the old account and may finish after the commit.
  const ids: number[] = []
  for (let round = 0; round < 10; round++) {
    const victim = await newcomer()
    ids.push(victim.id)
    const reading = Promise.all(Array.from({ length: 5 }, () => getMe(otherEdge, victim.token)))
    await Promise.all([reading, change(victim.id, 'deactivate')])
    await waitForRejection(victim.token)
  }
  const [row] = await query(
    'select count(*)::int as n from session where ended_at is not null and account_id = any($1)',
    [ids],
  )
  assert.ok((row!.n as number) >= 10)
})
