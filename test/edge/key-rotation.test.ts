import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { uuidv7 } from '../../sql/ids.ts'
import { StartError } from '../../sql/server/start-error.ts'
import { setupTokenOf } from '../../tasks/accounts/tokens.ts'
import { unsubscribeTokenOf } from '../../tasks/comms/unsubscribe.ts'
import { SecretKeys } from '../../tasks/platform/keys.ts'
import { openKeys } from '../../tasks/platform/stored-keys.ts'
import { reseal } from '../../tasks/system/reseal.ts'
import { createTestDatabase } from '../database.ts'
import { computeCode, computeCurrentStep, decodeBase32 } from '../totp.ts'
import { assertRefused, getMe, KEY_INVALID, TOKEN_INVALID } from './accounts-help.ts'
import { requestKey } from './api-keys-help.ts'
import { createEmail, PASSWORD, startEdge } from './harness.ts'
import { createMailboxOf } from './mailbox.ts'
import { enableTotp, signInWith, TOTP_PATH } from './totp-help.ts'

/**
 * Edges with the keys of each step of a rotation. In steps 0 and 1 all of them accept the tokens of each other. Then
 * the new key alone refuses tokens that the old one signed, and accepts all else.
 */

const [OLD, NEW] = ['the old key with 32 characters...', 'the new key with 32 characters...']
const LOST = 'y'.repeat(32)
const database = await createTestDatabase()
const { db, query, url } = database
const warnings: string[] = []
const log = { warn: (message: string) => warnings.push(message) }
const env = { LOGIN_MAX_FAILURES: '3' }
const start = async (...secrets: string[]) => {
  const keys = await openKeys(db, secrets, log)
  return { keys, api: await startEdge(url, { keys, env }) }
}
const prepared = await start(OLD, NEW)
const rotated = await start(NEW, OLD)
const { api: before } = prepared
const { api: during } = rotated
// The keys of the last step open nothing before the job has run.
const finish = async () => {
  await reseal(db, rotated.keys, { signal: new AbortController().signal, onProgress: () => {} })
  return (await start(NEW)).api
}
const admin = await before.register('admin@example.com')

test('all processes open one stored key, of which the first start stores the only one', async () => {
  assert.deepEqual(prepared.keys.material.stored, rotated.keys.material.stored)
  assert.equal((await query('select id from stored_key')).length, 1)
  assert.deepEqual(warnings, [])
})

test('access tokens are accepted until the old key is removed, and sessions continue', async () => {
  const account = await before.register(createEmail())
  const later = await during.register(createEmail())
  assert.equal((await getMe(during, account.token)).status, 200)
  assert.equal((await getMe(before, later.token)).status, 200)
  const after = await finish()
  assertRefused(await getMe(after, account.token), 401, TOKEN_INVALID)
  assert.equal((await getMe(after, later.token)).status, 200)
  const cookie = `millrace_refresh=${account.refresh}`
  assert.equal((await after.post('/api/v1/auth/refresh', { headers: { cookie } })).status, 200)
})

test('a repeated refresh gets its successor from a process with another current key', async () => {
  const account = await before.register(createEmail())
  const headers = { cookie: `millrace_refresh=${account.refresh}`, 'idempotency-key': randomUUID() }
  const [first, second] = [
    await before.post('/api/v1/auth/refresh', { headers }),
    await during.post('/api/v1/auth/refresh', { headers }),
  ]
  assert.deepEqual([first.status, second.status], [200, 200])
  assert.equal(first.cookie('millrace_refresh'), second.cookie('millrace_refresh'))
})

test('one-time codes of an app work with each key, and after the job with the new one', async () => {
  const accounts = [
    await enableTotp(before, await before.register(createEmail())),
    await enableTotp(during, await during.register(createEmail())),
  ]
  const codeOf = (secret: Buffer) => ({ totp_code: computeCode(secret, computeCurrentStep()) })
  const [first, second] = accounts as [(typeof accounts)[0], (typeof accounts)[0]]
  assert.equal((await signInWith(during, first.email, codeOf(first.secret))).status, 200)
  assert.equal((await signInWith(before, second.email, codeOf(second.secret))).status, 200)
  await query('update account_totp set last_step = 0')
  const sealed = await query(`select secret from account_totp where account_id = $1`, [first.id])
  assert.ok((sealed[0]!.secret as string).startsWith(prepared.keys.currentId))
  const after = await finish()
  for (const { email, secret } of accounts)
    assert.equal((await signInWith(after, email, codeOf(secret))).status, 200)
})

test('a code whose secret no key opens is no wrong guess, and a recovery code still works', async () => {
  const account = await enableTotp(before, await before.register(createEmail()))
  const keys = new SecretKeys({ secrets: [LOST], stored: prepared.keys.material.stored })
  const api = await startEdge(url, { keys, env })
  const code = { totp_code: computeCode(account.secret, computeCurrentStep()) }
  for (let n = 0; n < 4; n++) {
    const refused = await signInWith(api, account.email, code)
    assert.deepEqual([refused.status, refused.json.code], [401, 'auth.totp_required'])
  }
  const recovery = { recovery_code: account.recoveryCodes[0]! }
  assert.equal((await signInWith(api, account.email, recovery)).status, 200)
})

test('a setup whose secret no key opens has to begin again, and counts no wrong guess', async () => {
  const account = await before.register(createEmail())
  const keys = new SecretKeys({ secrets: [LOST], stored: prepared.keys.material.stored })
  const api = await startEdge(url, { keys, env })
  const token = (await signInWith(api, account.email)).json.access_token
  const begun = await before.post(TOTP_PATH, { token: account.token, json: {} })
  const code = computeCode(decodeBase32(begun.json.secret), computeCurrentStep())
  for (let n = 0; n < 4; n++) {
    const refused = await api.post(`${TOTP_PATH}/confirm`, { token, json: { code } })
    assert.deepEqual([refused.status, refused.json.code], [409, 'account.totp_unbegun'])
  }
  assert.equal((await signInWith(api, account.email)).status, 200)
})

describe('a repeated request with an Idempotency-Key', () => {
  const TARGET = 'https://example.com/hook'
  const repeatOn = async (call: (api: typeof before) => ReturnType<typeof requestKey>) => {
    const [first, second] = [await call(before), await call(during)]
    assert.equal(first.status, 201, first.text)
    assert.equal(second.text, first.text)
    const refused = await call(await finish())
    assert.equal(refused.status, 422)
    assert.match(refused.text, /an answer that can no longer be decrypted; use another key/)
    return first
  }

  test('gets the same API key, which the removal of the old key does not end', async () => {
    const account = await before.register(createEmail())
    const headers = { 'idempotency-key': randomUUID() }
    const { json } = await repeatOn((api) => {
      const token = api === before || api === during ? account.token : null
      return token === null ? repeatFresh(api, account.email, headers) : requestKey(api, account, {}, headers)
    })
    assert.equal((await getMe(await finish(), json.key)).status, 200)
  })

  /** Signs in again, because the new key alone refuses the account's access token. */
  async function repeatFresh(api: typeof before, email: string, headers: Record<string, string>) {
    const { json } = await signInWith(api, email)
    return requestKey(api, { token: json.access_token } as never, {}, headers)
  }

  test('gets the same secret of a webhook endpoint', async () => {
    const { email } = await before.register(createEmail())
    const headers = { 'idempotency-key': randomUUID() }
    await repeatOn(async (api) => {
      const { access_token: token } = (await signInWith(api, email)).json
      return api.post('/api/v1/webhooks', { token, headers, json: { url: TARGET, events: ['job.done'] } })
    })
  })
})

test('invites, links to drafts and unsubscribe links outlive the old key', async () => {
  const email = createEmail('guest')
  const { token } = admin
  const slug = `acme-${randomUUID()}`
  const { json: org } = await before.post('/api/v1/orgs', { token, json: { name: 'Acme', slug } })
  const path = `/api/v1/orgs/${org.id}/invites`
  const { json: invite } = await before.post(path, { token, json: { email, role: 'member' } })
  const { json: post } = await before.post('/api/v1/blog/posts', { token, json: { title: 'Draft' } })
  const { json: preview } = await before.post(`/api/v1/blog/posts/${post.id}/preview`, { token, json: {} })
  const subscription = { sendId: randomUUID(), stream: 'broadcast', address: email } as const
  const link = unsubscribeTokenOf(prepared.keys, subscription)
  const after = await finish()
  assert.equal((await after.get(`/api/v1/blog/preview/${preview.token}`)).status, 200)
  assert.equal((await after.post(`/unsubscribe?token=${link}`)).status, 200)
  const guest = await after.register(email)
  const accepted = await after.post('/api/v1/auth/accept-invite', {
    token: guest.token,
    json: { token: invite.token },
  })
  // Registration has accepted the invite, whose token it could verify.
  assert.match(accepted.text, /already/)
})

test('mailed tokens work whatever process mails them, and outlive the old key', async () => {
  const { email } = await before.register(createEmail())
  await before.post('/api/v1/auth/password-reset/request', { json: { email } })
  const [resetMail] = (await createMailboxOf(database, rotated.keys)()).filter(({ subject }) =>
    /password/i.test(subject),
  )
  const json = { token: resetMail!.token, new_password: `${PASSWORD} again` }
  assert.equal((await (await finish()).post('/api/v1/auth/password-reset/confirm', { json })).status, 200)

  const account = await before.register(createEmail())
  const next = createEmail('next')
  const proof = { email: next, password: PASSWORD }
  assert.equal(
    (await before.post('/api/v1/auth/me/email', { token: account.token, json: proof })).status,
    201,
  )
  const mails = (await createMailboxOf(database, rotated.keys)()).filter(({ to }) =>
    [account.email, next].includes(to),
  )
  const tokens = mails.filter(({ subject }) => /^Confirm your/.test(subject)).map(({ token }) => token)
  assert.equal(tokens.length, 2)
  const after = await finish()
  for (const token of tokens)
    assert.equal((await after.post('/api/v1/auth/email-change/confirm', { json: { token } })).status, 200)
})

test('a mail job of an unknown key is retried, and mails no dead link', async () => {
  const account = await during.register(createEmail())
  const json = { email: createEmail(), password: PASSWORD }
  await during.post('/api/v1/auth/me/email', { token: account.token, json })
  const { stored } = prepared.keys.material
  const unprepared = new SecretKeys({ secrets: ['x'.repeat(32)], stored })
  await assert.rejects(createMailboxOf(database, unprepared)(), /under an unknown SECRET_KEY/)
})

test('a browser that has signed in before stays known', async () => {
  const { email } = await before.register(createEmail())
  const known = (await signInWith(before, email)).cookie('millrace_device')
  const after = await finish()
  const logIn = (password: string, cookie = '') =>
    after.post('/api/v1/auth/token', { form: { username: email, password }, headers: { cookie } })
  for (let n = 0; n < 3; n++) await logIn('wrong')
  assert.equal((await logIn(PASSWORD)).status, 403)
  assert.equal((await logIn(PASSWORD, `millrace_device=${known}`)).status, 200)
})

test('the setup link is that of any accepted key', async () => {
  const refusals: number[] = []
  for (const [link, accepted] of [
    [OLD, [NEW, OLD]],
    [OLD, [NEW]],
  ] as const) {
    const fresh = await createTestDatabase()
    const keys = await openKeys(fresh.db, accepted, log)
    const api = await startEdge(fresh.url, { keys })
    const setup_token = setupTokenOf(new SecretKeys({ secrets: [link], stored: [] }))
    const json = { email: createEmail(), password: PASSWORD, setup_token }
    refusals.push((await api.post('/api/v1/auth/register', { json })).status)
  }
  assert.deepEqual(refusals, [200, 403])
})

test('with a leaked key, sealed texts survive although its tokens are refused immediately', async () => {
  const account = await enableTotp(before, await before.register(createEmail()))
  const { json: key } = await requestKey(before, account)
  // All processes stop, `npm run admin -- reseal` runs, and they start with the new key alone.
  const after = await finish()
  assertRefused(await getMe(after, account.token), 401, TOKEN_INVALID)
  await query('update account_totp set last_step = 0')
  const code = { totp_code: computeCode(account.secret, computeCurrentStep()) }
  assert.equal((await signInWith(after, account.email, code)).status, 200)
  assert.equal((await getMe(after, key.key)).status, 200)
  assertRefused(await getMe(after, `${key.key}x`), 401, KEY_INVALID)
})

test('a process whose keys open no stored key refuses to start, and stores none', async () => {
  const rows = () => query('select id, secret from stored_key order by id')
  const known = await rows()
  await assert.rejects(openKeys(db, [LOST], log), (error) => {
    assert.ok(error instanceof StartError)
    assert.equal(
      error.message,
      'SECRET_KEY opens no stored key: add the previous key to SECRET_KEYS_PREVIOUS, or see "Lost key" in deploy/operating.md',
    )
    return true
  })
  assert.deepEqual(await rows(), known)
})

test('concurrent first starts share one stored key', async () => {
  const { db, query } = await createTestDatabase()
  const [first, second] = await Promise.all([1, 2].map(() => openKeys(db, [LOST], log)))
  assert.deepEqual(first!.material.stored, second!.material.stored)
  assert.equal((await query('select from stored_key')).length, 1)
  await assert.rejects(openKeys(db, [NEW], log), StartError)
})

test('a process that opens only some stored keys says so', async () => {
  warnings.length = 0
  const other = new SecretKeys({ secrets: [LOST], stored: [] })
  const id = uuidv7()
  await query('insert into stored_key (id, secret) values ($1, $2)', [
    id,
    other.seal(`stored_key:${id}`, 'k'),
  ])
  const found = await openKeys(db, [NEW, OLD], log)
  assert.equal(warnings.length, 1)
  assert.match(warnings[0]!, /^SECRET_KEY does not open all stored keys: add the previous key/)
  assert.ok(found.stored.verify(prepared.keys.stored.token('use'), 'use'))
  await query('delete from stored_key where id = $1', [id])
})
