import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { getMe, logIn, refreshSession } from './accounts-help.ts'
import { type Account, type Api, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'
import { createMailbox } from './mailbox.ts'
import { assertRefused } from './orgs-help.ts'

const base = await startEdgeAndDatabase()
const { api, url, query } = base
const noAuthEdge = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
const readMails = createMailbox(base)
const admin = await api.register('admin@example.com')
let count = 0
const registerLeaver = (): Promise<Account> => api.register(`leaver${++count}@example.com`)

const requestDeletion = (
  who: Pick<Account, 'token'>,
  json: object | null = { password: PASSWORD },
  edge: Api = api,
) => edge.call('DELETE', '/api/v1/auth/me', { token: who.token, ...(json && { json }) })
const restore = (who: Pick<Account, 'token'>, headers = {}) =>
  api.post('/api/v1/auth/me/restore', { token: who.token, headers })
const readAuditEvents = (id: number) =>
  query(`select kind, actor_id, data from audit_event where account_id = $1 and kind ~ 'delet' order by id`, [
    id,
  ])
const readDeletionJobs = (id: number) =>
  query(`select name, owner_id from job where name ~ '^accounts.delet' and payload ->> 'account_id' = $1`, [
    String(id),
  ])
const makeDeletionDue = (id: number) =>
  query(`update account set deletion_at = now() - interval '1 s' where id = $1`, [id])

/** Inserts an account into the database and signs it in. */
async function createAccount(role: string): Promise<Account> {
  const email = `p${++count}@example.com`
  const hash = await api.serving.edge.passwords.hash(PASSWORD)
  await query(`insert into account (email, password_hash, role) values ($1, $2, $3)`, [email, hash, role])
  const { json } = await logIn(api, email)
  return { ...(await getMe(api, json.access_token)).json, token: json.access_token }
}

describe('DELETE /auth/me', () => {
  test('answers with the time, mails it, and leaves the account usable until then', async () => {
    const who = await registerLeaver()
    const key = await api.post('/api/v1/auth/keys', {
      token: who.token,
      json: { name: 'k', scopes: ['documents:read'] },
    })
    await readMails()
    const answer = await requestDeletion(who)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['cache-control'], 'no-store')
    const { deletion_at: at, updated_at, ...account } = answer.json
    assert.ok(Math.abs(Date.parse(at) - Date.now() - 7 * 86_400_000) < 60_000)
    assert.deepEqual([account.id, account.is_active], [who.id, true])
    const [mail, ...more] = await readMails()
    assert.deepEqual(
      [mail!.to, mail!.subject, mail!.token, more],
      [who.email, 'Your account will be deleted', '', []],
    )
    assert.deepEqual(await readDeletionJobs(who.id), [{ name: 'accounts.deletion-mail', owner_id: null }])
    assert.deepEqual(await readAuditEvents(who.id), [
      { kind: 'account.deletion_requested', actor_id: who.id, data: { deletion_at: at } },
    ])
    assert.equal((await getMe(api, who.token)).json.deletion_at, at)
    assert.equal((await refreshSession(api, who.refresh)).status, 200)
    const signedIn = await logIn(api, who.email)
    assert.equal((await getMe(api, signedIn.json.access_token)).json.deletion_at, at)
    assert.equal((await api.get('/api/v1/documents', { token: key.json.key })).status, 200)
  })

  test('changes and mails nothing when repeated', async () => {
    const who = await registerLeaver()
    await readMails()
    const first = await requestDeletion(who)
    const answers = await Promise.all(Array.from({ length: 5 }, () => requestDeletion(who)))
    for (const { status, json } of answers) assert.deepEqual([status, json], [200, first.json])
    assert.equal((await readMails()).length, 1)
    assert.equal((await readAuditEvents(who.id)).length, 1)
  })

  test('takes effect once for five concurrent requests', async () => {
    const who = await registerLeaver()
    const answers = await Promise.all(Array.from({ length: 5 }, () => requestDeletion(who)))
    for (const { status, json } of answers) assert.deepEqual([status, json], [200, answers[0]!.json])
    assert.equal((await readAuditEvents(who.id)).length, 1)
    assert.equal((await readDeletionJobs(who.id)).length, 1)
  })

  test('requires a recent sign-in or the password, and counts wrong passwords as failed logins', async () => {
    const who = await registerLeaver()
    assertRefused(
      await requestDeletion(who, { password: 'wrong' }),
      400,
      'The password or the code is incorrect',
    )
    await query(`update session set created_at = now() - interval '11 minutes' where account_id = $1`, [
      who.id,
    ])
    for (const json of [{}, { password: null }, null])
      assertRefused(await requestDeletion(who, json), 403, /^This requires the password/)
    for (const json of [{ password: '' }, { password: 7 }, { password: 'x'.repeat(1025) }, { days: 0 }])
      assertRefused(await requestDeletion(who, json), 422)
    for (let i = 0; i < 4; i++) assert.equal((await requestDeletion(who, { password: 'wrong' })).status, 400)
    assertRefused(await requestDeletion(who), 403, /^This account is locked/)
    assert.equal((await getMe(api, who.token)).json.deletion_at, null)
    await query('delete from login_failure')
    for (const json of [{}, null]) {
      const token = (await logIn(api, who.email)).json.access_token
      assert.equal((await requestDeletion({ token }, json)).status, 200)
      await restore({ token })
    }
  })

  test('rejects API keys and requests without a credential', async () => {
    const who = await registerLeaver()
    const key = await api.post('/api/v1/auth/keys', {
      token: who.token,
      json: { name: 'k', scopes: ['*:write'] },
    })
    for (const call of [requestDeletion({ token: key.json.key }), restore({ token: key.json.key })])
      assertRefused(await call, 403, 'API keys may not do this; sign in instead')
    for (const call of [requestDeletion({ token: '' }), restore({ token: '' })])
      assertRefused(await call, 401)
    for (const json of [null, undefined])
      assertRefused(await requestDeletion({ token: '' }, json, noAuthEdge), 409)
    assertRefused(await noAuthEdge.post('/api/v1/auth/me/restore'), 404, 'User not found')
  })

  test('with ACCOUNT_DELETION_DAYS=0 starts immediately and cannot be cancelled', async () => {
    const sudden = await startEdge(url, { env: { ACCOUNT_DELETION_DAYS: '0' } })
    const who = await registerLeaver()
    await readMails()
    const answer = await requestDeletion(who, undefined, sudden)
    assert.equal(answer.status, 200)
    assert.ok(Date.parse(answer.json.deletion_at) <= Date.now() + 60_000)
    assert.deepEqual(await readDeletionJobs(who.id), [{ name: 'accounts.delete', owner_id: null }])
    assert.deepEqual(await readMails(), [])
    assertRefused(await restore(who), 409, 'The account is being deleted; this can no longer be undone')
  })
})

describe('POST /auth/me/restore', () => {
  test('cancels the deletion, and can be repeated', async () => {
    const who = await registerLeaver()
    await requestDeletion(who)
    const answer = await restore(who)
    assert.deepEqual([answer.status, answer.json.deletion_at], [200, null])
    const again = await restore(who)
    assert.deepEqual([again.status, again.json], [200, answer.json])
    assert.deepEqual((await readAuditEvents(who.id)).slice(1), [
      { kind: 'account.deletion_cancelled', actor_id: who.id, data: {} },
    ])
    await readMails()
    assert.equal((await requestDeletion(who)).status, 200)
    assert.equal((await readMails()).length, 1, 'and another deletion is another one')
  })

  test('sends no mail about a deletion that was cancelled first', async () => {
    const who = await registerLeaver()
    await readMails()
    await requestDeletion(who)
    await restore(who)
    assert.deepEqual(await readMails(), [])
  })

  test('fails once the deletion is due', async () => {
    const who = await registerLeaver()
    await requestDeletion(who)
    await makeDeletionDue(who.id)
    assertRefused(await restore(who), 409, 'The account is being deleted; this can no longer be undone')
    assert.notEqual((await getMe(api, who.token)).json.deletion_at, null)
  })

  test('takes effect once per Idempotency-Key', async () => {
    const who = await registerLeaver()
    await requestDeletion(who)
    const key = { 'idempotency-key': 'restore' }
    const answers = [await restore(who, key), await restore(who, key)]
    assert.deepEqual([answers[1]!.status, answers[1]!.json], [200, answers[0]!.json])
  })
})

describe('the last remaining active admin', { concurrency: false }, () => {
  const DETAIL = 'This is the last active admin; make another account an admin first'
  const admins = () =>
    query(`select id from account where role = 'admin' and is_active and deletion_at is null order by id`)

  test('cannot delete its own account while the other admins are pending deletion', async () => {
    assertRefused(await requestDeletion(admin), 409, DETAIL)
    const other = await createAccount('admin')
    assert.equal((await requestDeletion(other)).status, 200)
    assertRefused(await requestDeletion(admin), 409, DETAIL)
    const users = '/api/v1/auth/users'
    const ways = [
      ['DELETE', `${users}/${admin.id}`],
      ['PATCH', `${users}/${admin.id}/deactivate`],
      ['PATCH', `${users}/${admin.id}/role?role=user`],
    ] as const
    for (const [method, path] of ways)
      assertRefused(await api.call(method, path, { token: other.token }), 409, DETAIL)
    assert.equal((await restore(other)).status, 200)
    assert.equal((await requestDeletion(admin)).status, 200)
    assertRefused(await requestDeletion(other), 409, DETAIL)
    assert.equal((await restore(admin)).status, 200)
    await query(`update account set role = 'user' where id = $1`, [other.id])
  })

  test('remains when all admins delete their accounts concurrently', async () => {
    for (let round = 0; round < 4; round++) {
      const all = [admin, ...(await Promise.all(Array.from({ length: 3 }, () => createAccount('admin'))))]
      const answers = await Promise.all(all.map((one) => requestDeletion(one)))
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 409])
      assert.equal((await admins()).length, 1)
      await query(`update account set deletion_at = null`)
      await query(`update account set role = 'user' where role = 'admin' and id <> $1`, [admin.id])
    }
  })
})

describe('an admin who deletes an account', () => {
  const remove = (id: number) => api.call('DELETE', `/api/v1/auth/users/${id}`, { token: admin.token })
  const subscribe = (id: number, facts: object = { status: ['0', 'active'] }) =>
    query(
      `with customer as (insert into payment_customer (user_id, provider_customer_id) values ($1::int, 'cus_' || $1::int) returning id)
       insert into payment_subscription (customer_id, provider_subscription_id, facts) select id, 'sub_' || $1::int, $2 from customer`,
      [id, JSON.stringify(facts)],
    )

  test('deletes it immediately even if its own deletion is pending', async () => {
    const who = await registerLeaver()
    await requestDeletion(who)
    assert.equal((await remove(who.id)).status, 204)
    assert.equal((await remove(who.id)).status, 404)
    const [row] = await query('select deletion_at, deleted_at from account where id = $1', [who.id])
    assert.deepEqual([row!.deletion_at, row!.deleted_at instanceof Date], [null, true])
  })

  test('deactivates an account with a subscription immediately; a job cancels the subscription and deletes the account', async () => {
    const who = await registerLeaver()
    await subscribe(who.id)
    assert.equal((await remove(who.id)).status, 204)
    assert.equal((await getMe(api, who.token)).status, 401)
    assert.equal((await refreshSession(api, who.refresh)).status, 401)
    assert.equal((await logIn(api, who.email)).status, 403)
    const seen = (await api.get(`/api/v1/auth/users/${who.id}`, { token: admin.token })).json
    assert.deepEqual([seen.is_active, Date.parse(seen.deletion_at) <= Date.now() + 60_000], [false, true])
    assert.deepEqual(await readDeletionJobs(who.id), [{ name: 'accounts.delete', owner_id: null }])
    assert.deepEqual(await readAuditEvents(who.id), [
      { kind: 'account.deletion_requested', actor_id: admin.id, data: {} },
    ])
    assert.equal((await remove(who.id)).status, 204)
    assert.equal((await readDeletionJobs(who.id)).length, 1, 'again is the same job')
  })

  test('takes a due deletion back by activating the account', async () => {
    const who = await registerLeaver()
    await subscribe(who.id)
    assert.equal((await remove(who.id)).status, 204)
    const path = `/api/v1/auth/users/${who.id}/activate`
    const answer = await api.call('PATCH', path, { token: admin.token })
    assert.deepEqual([answer.json.is_active, answer.json.deletion_at], [true, null])
    assert.deepEqual((await readAuditEvents(who.id)).at(-1), {
      kind: 'account.deletion_cancelled',
      actor_id: admin.id,
      data: {},
    })
    const { json } = await logIn(api, who.email)
    assert.equal((await requestDeletion({ token: json.access_token })).status, 200)
    const pending = await api.call('PATCH', path, { token: admin.token })
    assert.ok(pending.json.deletion_at !== null, 'a deletion that is not due yet stays')
  })

  test('leaves the deletion of a provider customer to the job, whatever the subscription state', async () => {
    for (const facts of [
      { status: ['0', 'canceled'] },
      { status: ['0', 'active'], cancel_at_period_end: ['0', true] },
    ]) {
      const who = await registerLeaver()
      await subscribe(who.id, facts)
      assert.equal((await remove(who.id)).status, 204)
      assert.equal((await getMe(api, who.token)).status, 401)
      assert.deepEqual(await readDeletionJobs(who.id), [{ name: 'accounts.delete', owner_id: null }])
    }
  })

  test('cannot delete the last admin, even one with a subscription', async () => {
    await subscribe(admin.id)
    assertRefused(await remove(admin.id), 409, /^This is the last active admin/)
    assert.equal((await getMe(api, admin.token)).status, 200)
  })
})

test('every edge sees the deletion immediately', async () => {
  const other = await startEdge(url)
  const who = await registerLeaver()
  assert.equal((await getMe(other, who.token)).json.deletion_at, null)
  await requestDeletion(who)
  await until('the other edge sees it', async () => (await getMe(other, who.token)).json.deletion_at !== null)
})
