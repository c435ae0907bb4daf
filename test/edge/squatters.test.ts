import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { runAdmin } from '../../edge/admin/commands.ts'
import { createAdminSettings } from '../job-settings.ts'
import { Authenticator } from '../passkeys.ts'
import { Client } from '../service.ts'
import { until } from '../until.ts'
import { getMe, logIn, refreshSession } from './accounts-help.ts'
import { createKey } from './api-keys-help.ts'
import { type Account, type Api, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'
import { createMailbox } from './mailbox.ts'
import { enableTotp, signInWith } from './totp-help.ts'

/** An account registered with another person's address must lose all earlier access once the owner takes it over. */

const ORIGIN = 'https://mill.example.com'
const env = { PUBLIC_BASE_URL: `${ORIGIN}/`, RATE_LIMIT_REGISTER: '0', RATE_LIMIT_LOGIN: '0' }
const PASSKEYS = '/api/v1/auth/passkeys'
const NEW_PASSWORD = 'of the owner alone'

const base = await startEdgeAndDatabase({ env })
const { api, url, db, query } = base
const readMails = createMailbox(base)
const first = await api.register('first@example.com')
let count = 0
const registerAccount = (): Promise<Account> => api.register(`owner${++count}@example.com`)

/** Creates an account with every means of sign-in, delegated access and notification. */
async function createHolder(t: TestContext) {
  const account = await registerAccount()
  const { token } = account
  const { key } = await createKey(api, account)
  const device = new Authenticator(ORIGIN)
  const options = (await api.post(`${PASSKEYS}/options`, { token, json: {} })).json
  const made = await api.post(PASSKEYS, { token, json: { credential: device.create(options) } })
  assert.equal(made.status, 201, made.text)
  const hook = { url: 'https://example.com/hook', events: ['job.done'] }
  assert.equal((await api.post('/api/v1/webhooks', { token, json: hook })).status, 201)
  const change = { email: `other${count}@example.com` }
  assert.equal((await api.post('/api/v1/auth/me/email', { token, json: change })).status, 201)
  await enableTotp(api, account)
  const stream = await Object.assign(new Client(api.port), { token: key }).stream('/api/v1/jobs/events')
  t.after(() => stream.close())
  return { ...account, key, device, stream }
}
type Holder = Awaited<ReturnType<typeof createHolder>>

const signInWithPasskey = async (device: Authenticator, edge: Api) => {
  const asked = (await edge.post(`${PASSKEYS}/sign-in/options`)).json
  return edge.post(`${PASSKEYS}/sign-in`, { json: { credential: device.get(asked) } })
}

/** Counts the account's keys, passkeys, one-time codes, email changes and endpoints. */
async function countAccess({ id }: Account): Promise<Record<string, number>> {
  const [row] = await query(
    `select (select count(*)::int from api_key where account_id = $1) as keys,
      (select count(*)::int from passkey where account_id = $1) as passkeys,
      (select count(*)::int from account_totp where account_id = $1) as codes,
      (select count(*)::int from email_change where account_id = $1) as changes,
      (select count(*)::int from webhook_endpoint where account_id = $1 and deleted_at is null) as endpoints`,
    [id],
  )
  return row as Record<string, number>
}
const NO_ACCESS = { keys: 0, passkeys: 0, codes: 0, changes: 0, endpoints: 0 }
const FULL_ACCESS = { keys: 1, passkeys: 1, codes: 1, changes: 1, endpoints: 1 }

async function assertNoAccess(squatter: Holder, edges: readonly Api[]): Promise<void> {
  await squatter.stream.waitForEnd()
  for (const edge of edges) {
    for (const token of [squatter.token, squatter.key])
      await until('the edge sees the change', async () => (await getMe(edge, token)).status === 401)
    assert.equal((await refreshSession(edge, squatter.refresh)).status, 401)
    assert.equal((await signInWith(edge, squatter.email)).status, 401)
    assert.equal((await signInWithPasskey(squatter.device, edge)).status, 401)
  }
  assert.deepEqual(await countAccess(squatter), NO_ACCESS)
}

/** Signs in with only the password and returns the account. */
async function signInToOwn(email: string, password: string, edge: Api = api) {
  const answer = await logIn(edge, email, password)
  assert.equal(answer.status, 200, answer.text)
  return (await getMe(edge, answer.json.access_token)).json
}

async function reset(email: string, more: object = {}): Promise<void> {
  await readMails()
  await api.post('/api/v1/auth/password-reset/request', { json: { email } })
  const { token } = (await readMails()).findLast(({ to }) => to === email)!
  const json = { token, new_password: NEW_PASSWORD, ...more }
  assert.equal((await api.post('/api/v1/auth/password-reset/confirm', { json })).status, 200)
}

const createWebhook = (key: string) =>
  api.post('/api/v1/webhooks', {
    token: key,
    json: { url: 'https://example.com/by-key', events: ['job.done'] },
  })

const readAuditEvents = async ({ id }: Account, by: RegExp): Promise<unknown[]> =>
  (
    await query(
      `select kind from audit_event where account_id = $1 and coalesce(data ->> 'by', 'reset') ~ $2
       and kind ~ 'role|password_reset$|account.verified|deletion_cancelled' order by id`,
      [id, by.source],
    )
  ).map(({ kind }) => kind)

const startWithAdmin = (email: string) =>
  startEdge(url, { env: { ...env, ADMIN_EMAIL: email, ADMIN_PASSWORD: NEW_PASSWORD } })
const verify = ({ id }: Account) => query('update account set is_verified = true where id = $1', [id])
const requestDeletion = async ({ token }: Account) =>
  assert.equal((await api.call('DELETE', '/api/v1/auth/me', { token })).status, 200)

describe('the address of ADMIN_EMAIL', () => {
  test('becomes the configured admin, and a squatter loses everything', async (t) => {
    const squatter = await createHolder(t)
    await requestDeletion(squatter)
    const again = await startWithAdmin(squatter.email)
    await assertNoAccess(squatter, [api, again])
    const { id, role, deletion_at } = await signInToOwn(squatter.email, NEW_PASSWORD, again)
    assert.deepEqual([id, role, deletion_at], [squatter.id, 'admin', null])
    assert.deepEqual(await readAuditEvents(squatter, /ADMIN_EMAIL/), [
      ...['account.role_changed', 'account.password_reset', 'account.verified', 'account.deletion_cancelled'],
    ])
  })

  test("keeps its verified owner's access, except a pending deletion", async (t) => {
    const owner = await createHolder(t)
    await verify(owner)
    await requestDeletion(owner)
    await startWithAdmin(owner.email)
    assert.deepEqual(await countAccess(owner), FULL_ACCESS)
    const isStaying = async () => (await getMe(api, owner.key)).json.deletion_at === null
    await until('the other edge sees the change', isStaying)
    assert.deepEqual(await readAuditEvents(owner, /ADMIN_EMAIL/), [
      'account.role_changed',
      'account.deletion_cancelled',
    ])
  })
})

describe('create-admin', () => {
  const createAdmin = (...args: string[]) => runAdmin(['create-admin', ...args], db, createAdminSettings())

  test('cancels a pending deletion', async () => {
    const account = await registerAccount()
    await requestDeletion(account)
    await createAdmin(account.email)
    const { role, deletion_at } = await signInToOwn(account.email, PASSWORD)
    assert.deepEqual([role, deletion_at], ['admin', null])
    assert.deepEqual(await readAuditEvents(account, /command line/), [
      ...['account.role_changed', 'account.deletion_cancelled'],
    ])
  })

  test('with a new password removes all access of a squatter', async (t) => {
    const squatter = await createHolder(t)
    const lines = await createAdmin(squatter.email, '--new-password')
    await assertNoAccess(squatter, [api])
    assert.equal((await signInToOwn(squatter.email, lines[1]!.slice('Password: '.length))).role, 'admin')
  })

  test('with a new password ends the sessions of a verified owner and keeps all else', async (t) => {
    const owner = await createHolder(t)
    await verify(owner)
    await createAdmin(owner.email, '--new-password')
    await until('the session has ended', async () => (await getMe(api, owner.token)).status === 401)
    assert.deepEqual(await countAccess(owner), FULL_ACCESS)
    assert.equal((await getMe(api, owner.key)).status, 200)
  })
})

describe('a password reset', () => {
  test('of an unverified address verifies it and removes all access of a squatter', async (t) => {
    const squatter = await createHolder(t)
    await reset(squatter.email)
    await assertNoAccess(squatter, [api])
    const { id, is_verified } = await signInToOwn(squatter.email, NEW_PASSWORD)
    assert.deepEqual([id, is_verified], [squatter.id, true])
    assert.deepEqual(await readAuditEvents(squatter, /reset/), ['account.password_reset', 'account.verified'])
  })

  test('of a verified address ends sessions, API keys, and the access created with keys', async (t) => {
    const owner = await createHolder(t)
    await verify(owner)
    assert.equal((await createWebhook(owner.key)).status, 201)
    assert.deepEqual(await countAccess(owner), { ...FULL_ACCESS, endpoints: 2 })
    await reset(owner.email)
    for (const token of [owner.token, owner.key]) assert.equal((await getMe(api, token)).status, 401)
    assert.deepEqual(await countAccess(owner), { ...FULL_ACCESS, keys: 0 })
    assert.equal((await signInWithPasskey(owner.device, api)).status, 200)
    assert.equal((await logIn(api, owner.email, NEW_PASSWORD)).json.code, 'auth.totp_required')
    assert.deepEqual(await readAuditEvents(owner, /reset/), ['account.password_reset'])
  })

  test('keeps API keys and the access created with them on request', async (t) => {
    const owner = await createHolder(t)
    await verify(owner)
    assert.equal((await createWebhook(owner.key)).status, 201)
    await reset(owner.email, { keep_keys: true })
    assert.equal((await getMe(api, owner.token)).status, 401)
    assert.equal((await getMe(api, owner.key)).status, 200)
    assert.deepEqual(await countAccess(owner), { ...FULL_ACCESS, endpoints: 2 })
  })

  test('removes all access of a squatter, whatever the request', async (t) => {
    const squatter = await createHolder(t)
    await reset(squatter.email, { keep_keys: true })
    assert.deepEqual(await countAccess(squatter), NO_ACCESS)
  })

  test('leaves other accounts alone', async () => {
    const { key } = await createKey(api, first)
    const one = await registerAccount()
    await reset(one.email)
    assert.equal((await getMe(api, key)).status, 200)
  })
})

describe('verifying an address', () => {
  const verifying = async (email: string, more: object, options: object = {}): Promise<void> => {
    const { token } = (await readMails()).findLast(
      (mail) => mail.to === email && /Verify/.test(mail.subject),
    )!
    const answer = await api.post('/api/v1/auth/verify-email', { json: { token, ...more }, ...options })
    assert.equal(answer.status, 200, answer.text)
  }

  test('without a session of the account removes all earlier access except sessions', async (t) => {
    const squatter = await createHolder(t)
    const stranger = await registerAccount()
    await verifying(squatter.email, {}, { token: stranger.token })
    assert.deepEqual(await countAccess(squatter), NO_ACCESS)
    assert.equal((await getMe(api, squatter.key)).status, 401)
    assert.equal((await getMe(api, squatter.token)).json.is_verified, true)
  })

  test('with an access token or refresh cookie of the account keeps all access', async (t) => {
    const [one, other] = [await createHolder(t), await createHolder(t)]
    const both = (await readMails()).filter(({ subject }) => /Verify/.test(subject))
    const tokenOf = (email: string) => both.find(({ to }) => to === email)!.token
    const post = (email: string, options: object) =>
      api.post('/api/v1/auth/verify-email', { json: { token: tokenOf(email) }, ...options })
    assert.equal((await post(one.email, { token: one.token })).status, 200)
    const cookie = { headers: { cookie: `__Secure-millrace_refresh=${other.refresh}` } }
    assert.equal((await post(other.email, cookie)).status, 200)
    for (const each of [one, other]) assert.deepEqual(await countAccess(each), FULL_ACCESS)
  })

  test('keeps access on request, but not with an invalid credential', async (t) => {
    const owner = await createHolder(t)
    await verifying(owner.email, { keep_credentials: true })
    assert.deepEqual(await countAccess(owner), FULL_ACCESS)
    const squatter = await createHolder(t)
    await verifying(squatter.email, {}, { token: 'mill_live_nonsense' })
    assert.deepEqual(await countAccess(squatter), NO_ACCESS)
  })

  test('when repeated, keeps access created since', async (t) => {
    const owner = await createHolder(t)
    const { token } = (await readMails()).find(
      ({ to, subject }) => to === owner.email && /Verify/.test(subject),
    )!
    await verify(owner)
    assert.equal((await api.post('/api/v1/auth/verify-email', { json: { token } })).status, 200)
    assert.deepEqual(await countAccess(owner), FULL_ACCESS)
  })
})

test('ended credentials create no lasting access, even on an edge that was not notified', async () => {
  const account = await registerAccount()
  const { id, token } = account
  const { key, id: keyId } = await createKey(api, account)
  const device = new Authenticator(ORIGIN)
  const options = (await api.post(`${PASSKEYS}/options`, { token, json: {} })).json
  for (const known of [token, key]) assert.equal((await getMe(api, known)).status, 200)
  await query('update session set revoked_at = now(), ended_at = now() where account_id = $1', [id])
  await query('update api_key set expires_at = now() where id = $1', [keyId])
  const hook = { url: 'https://example.com/hook', events: ['job.done'] }
  for (const [path, json, by = token] of [
    ['/api/v1/auth/keys', { name: 'to stay', scopes: ['*:write'] }],
    [PASSKEYS, { credential: device.create(options) }],
    ['/api/v1/webhooks', hook],
    ['/api/v1/webhooks', hook, key],
    ['/api/v1/auth/totp', {}],
    ['/api/v1/auth/me/email', { email: 'to.stay@example.com' }],
  ] as const) {
    const answer = await api.post(path, { token: by, json })
    assert.ok([401, 403].includes(answer.status), `${path}: ${answer.text}`)
  }
  assert.deepEqual(await countAccess(account), { ...NO_ACCESS, keys: 1 })
})
