import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { digestOf, emailChangeTokensOf } from '../../tasks/accounts/tokens.ts'
import { emailChangeTokenOf, FOREIGN_KEYS, mailedTokenOf } from '../keys.ts'
import { until } from '../until.ts'
import { getMe, logIn, refreshSession } from './accounts-help.ts'
import { type Account, type Answered, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'
import { createMailbox, type Mail } from './mailbox.ts'
import { assertRefused } from './orgs-help.ts'

/** An account changes its address once both addresses have confirmed the change. */

const base = await startEdgeAndDatabase({
  env: { RATE_LIMIT_PASSWORD_RESET: '0', RATE_LIMIT_LOGIN: '0', RATE_LIMIT_REGISTER: '0' },
})
const { api, url, query } = base
const readMails = createMailbox(base)
const admin = await api.register('admin@example.com')
let count = 0
const newAddress = (): string => `next${++count}@example.com`
const registerAccount = (): Promise<Account> => api.register(`person${++count}@example.com`)
const BAD_TOKEN = 'The token is invalid or has expired'

const requestChange = (who: Account, email: string, more: object = { password: PASSWORD }, headers = {}) =>
  api.post('/api/v1/auth/me/email', { token: who.token, json: { email, ...more }, headers })
const getPendingChange = (who: Account) => api.get('/api/v1/auth/me/email', { token: who.token })
const cancel = (who: Account) => api.call('DELETE', '/api/v1/auth/me/email', { token: who.token })
const confirm = (token: string, headers = {}) =>
  api.post('/api/v1/auth/email-change/confirm', { json: { token }, headers })
const refuse = (token: string) => api.post('/api/v1/auth/email-change/refuse', { json: { token } })
const readEmail = async (id: number) =>
  (await query('select email from account where id = $1', [id]))[0]!.email
const readAuditEvents = (id: number) =>
  query(`select kind, actor_id, data from audit_event where account_id = $1 and kind ~ 'email' order by id`, [
    id,
  ])

/** Requests a change and returns the tokens that both addresses received. */
async function beginChange(who: Account, email = newAddress()) {
  await readMails()
  const answer = await requestChange(who, email)
  assert.equal(answer.status, 201, answer.text)
  const got = await readMails()
  const of = (to: string): Mail => got.find((mail) => mail.to === to)!
  return { email, old: of(who.email).token, new: of(email).token, got }
}

describe('requesting an email change', () => {
  test('mails both addresses and changes nothing yet', async () => {
    const who = await registerAccount()
    await readMails()
    const email = newAddress()
    const answer = await requestChange(who, ` ${email.toUpperCase()} `)
    assert.equal(answer.status, 201)
    assert.equal(answer.headers['cache-control'], 'no-store')
    const { created_at, expires_at, ...fields } = answer.json
    assert.deepEqual(fields, { email, old_confirmed: false, new_confirmed: false })
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), 24 * 3_600_000)
    assert.deepEqual((await getPendingChange(who)).json, answer.json)
    const got = await readMails()
    assert.deepEqual(got.map(({ to, subject }) => [to, subject]).sort(), [
      [email, 'Confirm your new address'],
      [who.email, 'Confirm your email address change'],
    ])
    assert.equal(await readEmail(who.id), who.email)
    assert.deepEqual(await readAuditEvents(who.id), [
      { kind: 'account.email_change_requested', actor_id: who.id, data: { email } },
    ])
    const [row] = await query('select * from email_change where account_id = $1', [who.id])
    const stored = JSON.stringify([
      row,
      await query(`select * from job where name = 'accounts.email-change'`),
    ])
    for (const { token } of got) assert.ok(token.length === 43 && !stored.includes(token))
    assert.deepEqual(row!.new_digest, digestOf(got.find(({ to }) => to === email)!.token))
  })

  test('gives the same answer for a taken address and notifies its owner', async () => {
    const [who, other] = [await registerAccount(), await registerAccount()]
    await readMails()
    const seen = ({ status, headers, json }: Answered) => {
      const { 'x-request-id': _, date: __, 'content-length': ___, ...rest } = headers
      const { email: ____, created_at: _____, expires_at: ______, ...said } = json
      return { status, rest, said }
    }
    const free = seen(await requestChange(who, newAddress()))
    await readMails()
    const taken = await requestChange(who, other.email)
    assert.deepEqual(seen(taken), free)
    assert.deepEqual((await getPendingChange(who)).json, taken.json)
    const got = await readMails()
    assert.deepEqual(got.map(({ to, subject, token }) => [to, subject, token === '']).sort(), [
      [who.email, 'Confirm your email address change', false],
      [other.email, 'Your address already has an account', true],
    ])
    assert.equal((await confirm(got.find(({ to }) => to === who.email)!.token)).status, 200)
    assert.equal(await readEmail(who.id), who.email)
  })

  test('requires the password and counts wrong ones as failed logins', async () => {
    const who = await registerAccount()
    for (let i = 0; i < 5; i++)
      assertRefused(
        await requestChange(who, newAddress(), { password: 'wrong' }),
        400,
        'The password or the code is incorrect',
      )
    assertRefused(
      await requestChange(who, newAddress()),
      403,
      'This account is locked after too many failed logins; try again later',
    )
    assert.equal((await logIn(api, who.email)).status, 403)
    const kinds = await query(
      `select kind, count(*)::int as n from audit_event where account_id = $1 and kind ~ 'failed|locked' group by 1 order by 1`,
      [who.id],
    )
    assert.deepEqual(kinds, [
      { kind: 'account.locked', n: 1 },
      { kind: 'account.sign_in_failed', n: 7 },
    ])
    assertRefused(await getPendingChange(who), 404, 'No email change is pending')
  })

  test("accepts a sign-in within the last ten minutes by the database's clock instead", async () => {
    const who = await registerAccount()
    assert.equal((await requestChange(who, newAddress(), {})).status, 201)
    assert.equal((await requestChange(who, newAddress(), { password: null })).status, 201)
    const age = (minutes: number) =>
      query(`update session set created_at = now() - make_interval(mins => $2) where account_id = $1`, [
        who.id,
        minutes,
      ])
    await age(9)
    assert.equal((await requestChange(who, newAddress(), {})).status, 201)
    await age(11)
    const detail =
      'This requires the password (and a one-time code, if enabled) or a sign-in within the last 10 minutes'
    assertRefused(await requestChange(who, newAddress(), {}), 403, detail)
    const again = await refreshSession(api, who.refresh)
    const refreshed = { ...who, token: again.json.access_token }
    assertRefused(await requestChange(refreshed, newAddress(), {}), 403, detail)
    const signedIn = { ...who, token: (await logIn(api, who.email)).json.access_token }
    assert.equal((await requestChange(signedIn, newAddress(), {})).status, 201)
    assert.equal((await requestChange(who, newAddress())).status, 201)
  })

  test('is rejected for API keys and anonymous callers', async () => {
    const who = await registerAccount()
    const key = await api.post('/api/v1/auth/keys', {
      token: who.token,
      json: { name: 'k', scopes: ['*:write'] },
    })
    const program = { ...who, token: key.json.key }
    for (const call of [requestChange(program, newAddress()), getPendingChange(program), cancel(program)])
      assertRefused(await call, 403, 'API keys may not do this; sign in instead')
    const nobody = { ...who, token: '' }
    for (const call of [requestChange(nobody, newAddress()), getPendingChange(nobody), cancel(nobody)])
      assertRefused(await call, 401)
    const none = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
    const path = '/api/v1/auth/me/email'
    const json = { email: newAddress() }
    for (const proof of [{}, { password: PASSWORD }])
      assertRefused(
        await none.post(path, { json: { ...json, ...proof } }),
        409,
        'Authentication is disabled (AUTH_LEVEL=none)',
      )
    assertRefused(await none.get(path), 404)
    assertRefused(await none.call('DELETE', path), 404)
  })

  test('is rejected for an invalid or unchanged address', async () => {
    const who = await registerAccount()
    assertRefused(
      await requestChange(who, who.email.toUpperCase()),
      400,
      'The account already uses this address',
    )
    for (const email of ['', 'nobody', 'a@b', `${'a'.repeat(320)}@example.com`, 'a\u0000@example.com'])
      assertRefused(await requestChange(who, email), 422)
    for (const more of [{ password: '' }, { password: 7 }, { password: 'x'.repeat(1025) }, { role: 'admin' }])
      assertRefused(await requestChange(who, newAddress(), more), 422)
    assertRefused(await getPendingChange(who), 404)
  })

  test('has the same rate limits as a password reset', async () => {
    const limited = await startEdge(url, { env: { RATE_LIMIT_PASSWORD_RESET: '2/60' } })
    const who = await registerAccount()
    const statuses: number[] = []
    for (let i = 0; i < 3; i++)
      statuses.push(
        (
          await limited.post('/api/v1/auth/me/email', {
            token: who.token,
            json: { email: newAddress(), password: PASSWORD },
          })
        ).status,
      )
    assert.deepEqual(statuses, [201, 201, 429])
  })

  test('replaces an earlier request and invalidates its tokens, even if mailed later', async () => {
    const who = await registerAccount()
    const first = await beginChange(who)
    assert.equal((await confirm(first.old)).status, 200)
    const second = await beginChange(who)
    for (const token of [first.old, first.new]) {
      assertRefused(await confirm(token), 400, BAD_TOKEN)
      assertRefused(await refuse(token), 400, BAD_TOKEN)
    }
    const { json } = await getPendingChange(who)
    assert.deepEqual([json.email, json.old_confirmed, json.new_confirmed], [second.email, false, false])
    await requestChange(who, newAddress())
    await requestChange(who, second.email)
    assert.equal((await readMails()).length, 2, 'and what was replaced before it was mailed is not mailed')
  })

  test('takes effect once per Idempotency-Key', async () => {
    const who = await registerAccount()
    await readMails()
    const email = newAddress()
    const key = { 'idempotency-key': 'change' }
    const answers = [
      await requestChange(who, email, undefined, key),
      await requestChange(who, email, undefined, key),
    ]
    assert.deepEqual([answers[1]!.status, answers[1]!.json], [201, answers[0]!.json])
    assert.equal((await readMails()).length, 2)
  })
})

describe('confirming an email change', () => {
  for (const order of [
    ['old', 'new'],
    ['new', 'old'],
  ] as const)
    test(`changes the address after confirmation by first the ${order[0]}, then the ${order[1]} address`, async () => {
      const who = await registerAccount()
      const change = await beginChange(who)
      const first = await confirm(change[order[0]])
      assert.deepEqual(
        [first.status, first.json],
        [200, { detail: 'Confirmed; the address changes once the other address confirms it, too' }],
      )
      assertRefused(await confirm(change[order[0]]), 400, BAD_TOKEN)
      const { json } = await getPendingChange(who)
      assert.deepEqual([json.old_confirmed, json.new_confirmed], [order[0] === 'old', order[0] === 'new'])
      assert.equal(await readEmail(who.id), who.email)
      const last = await confirm(change[order[1]])
      assert.deepEqual([last.status, last.json], [200, { detail: 'The email address has been changed' }])
      const now = (await getMe(api, who.token)).json
      assert.deepEqual([now.email, now.is_verified], [change.email, true])
      assertRefused(await getPendingChange(who), 404)
      assert.equal((await logIn(api, who.email)).status, 401)
      assert.equal((await logIn(api, change.email)).status, 200)
      for (const side of order) assertRefused(await confirm(change[side]), 400, BAD_TOKEN)
      assert.deepEqual((await readAuditEvents(who.id)).slice(1), [
        ...order.map((by) => ({
          kind: 'account.email_change_confirmed',
          actor_id: who.id,
          data: { email: change.email, by },
        })),
        { kind: 'account.email_changed', actor_id: who.id, data: { from: who.email, to: change.email } },
      ])
    })

  test('ends every session except the requesting one, and invalidates mail to the previous address', async () => {
    const who = await registerAccount()
    const other = await logIn(api, who.email)
    await api.post('/api/v1/auth/password-reset/request', { json: { email: who.email } })
    const stale = (await readMails()).filter(({ to }) => to === who.email).map(({ token }) => token)
    assert.equal(stale.length, 2, 'a verification and a reset')
    const change = await beginChange(who)
    await confirm(change.old)
    assert.equal((await getMe(api, other.json.access_token)).status, 200)
    await confirm(change.new)
    assert.equal((await getMe(api, who.token)).status, 200)
    assert.equal((await refreshSession(api, who.refresh)).status, 200)
    assert.equal((await getMe(api, other.json.access_token)).status, 401)
    assert.equal((await refreshSession(api, other.cookie('millrace_refresh'))).status, 401)
    for (const token of stale) {
      assertRefused(await api.post('/api/v1/auth/verify-email', { json: { token } }), 400, BAD_TOKEN)
      const json = { token, new_password: 'another password' }
      assertRefused(await api.post('/api/v1/auth/password-reset/confirm', { json }), 400, BAD_TOKEN)
    }
  })

  test('does not revive the requesting session if it has ended', async () => {
    const who = await registerAccount()
    const change = await beginChange(who)
    const json = { current_password: PASSWORD, new_password: 'another password' }
    const other = await logIn(api, who.email)
    await api.post('/api/v1/auth/change-password', { token: other.json.access_token, json })
    await confirm(change.old)
    await confirm(change.new)
    for (const token of [who.token, other.json.access_token])
      assert.equal((await getMe(api, token)).status, 401)
    assert.equal((await logIn(api, change.email, 'another password')).status, 200)
  })

  test('rejects an expired token, a token of another kind or side, and a malformed one', async () => {
    const who = await registerAccount()
    const change = await beginChange(who)
    const [{ id }] = (await query('select id from email_change where account_id = $1', [who.id])) as [
      { id: string },
    ]
    const bad = [
      ...['x', 'é', "' or 1=1", 'x'.repeat(200), digestOf(change.old).toString('base64url')],
      ...[who.refresh, who.token.slice(0, 200), mailedTokenOf('verify', id)],
      emailChangeTokensOf(FOREIGN_KEYS, 'new', id)[0]!,
      emailChangeTokenOf('new', change.email),
    ]
    for (const token of bad)
      for (const call of [confirm, refuse]) assertRefused(await call(token), 400, BAD_TOKEN)
    for (const token of ['', '\u0000', 'x'.repeat(201)])
      for (const call of [confirm, refuse]) assertRefused(await call(token), 422)
    assert.equal((await confirm(change.old)).status, 200)
    await query('update email_change set expires_at = now() where id = $1', [id])
    for (const call of [confirm, refuse]) assertRefused(await call(change.new), 400, BAD_TOKEN)
    assertRefused(await getPendingChange(who), 404)
    assertRefused(await cancel(who), 404)
    assert.equal(await readEmail(who.id), who.email)
  })

  test('happens once when each token is sent ten times concurrently', async () => {
    const who = await registerAccount()
    const change = await beginChange(who)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => confirm(i % 2 ? change.old : change.new)),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, ...Array(18).fill(400)])
    assert.equal(
      (await readAuditEvents(who.id)).filter(({ kind }) => kind === 'account.email_changed').length,
      1,
    )
    assert.equal(await readEmail(who.id), change.email)
  })

  test('takes effect once per Idempotency-Key', async () => {
    const change = await beginChange(await registerAccount())
    const key = { 'idempotency-key': 'confirm' }
    const answers = [await confirm(change.old, key), await confirm(change.old, key)]
    assert.deepEqual([answers[1]!.status, answers[1]!.json], [200, answers[0]!.json])
  })

  test('is rejected if the account is deleted or deactivated', async () => {
    const [gone, off] = [await registerAccount(), await registerAccount()]
    const [one, two] = [await beginChange(gone), await beginChange(off)]
    await confirm(one.old)
    const asAdmin = (method: string, path: string) =>
      api.call(method, `/api/v1/auth/users/${path}`, { token: admin.token })
    assert.equal((await asAdmin('DELETE', `${gone.id}`)).status, 204)
    assertRefused(await confirm(one.new), 400, BAD_TOKEN)
    await asAdmin('PATCH', `${off.id}/deactivate`)
    assertRefused(await confirm(two.old), 400, BAD_TOKEN)
    await asAdmin('PATCH', `${off.id}/activate`)
    assert.equal((await confirm(two.old)).status, 200)
  })
})

describe('refusing and cancelling', () => {
  for (const side of ['old', 'new'] as const)
    test(`the token of the ${side} address cancels the change`, async () => {
      const who = await registerAccount()
      const change = await beginChange(who)
      await confirm(change.old)
      const answer = await refuse(change[side])
      assert.deepEqual([answer.status, answer.json], [200, { detail: 'The email change has been refused' }])
      for (const token of [change.old, change.new]) {
        assertRefused(await confirm(token), 400, BAD_TOKEN)
        assertRefused(await refuse(token), 400, BAD_TOKEN)
      }
      assertRefused(await getPendingChange(who), 404)
      assert.deepEqual((await readAuditEvents(who.id)).at(-1), {
        kind: 'account.email_change_refused',
        actor_id: null,
        data: { email: change.email, by: side },
      })
    })

  test('DELETE cancels the change', async () => {
    const who = await registerAccount()
    const change = await beginChange(who)
    const answer = await cancel(who)
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assertRefused(await cancel(who), 404, 'No email change is pending')
    assertRefused(await confirm(change.new), 400, BAD_TOKEN)
    assert.deepEqual((await readAuditEvents(who.id)).at(-1), {
      kind: 'account.email_change_cancelled',
      actor_id: who.id,
      data: { email: change.email },
    })
  })

  test('a cancellation and a confirmation may race: one wins completely', async () => {
    for (let round = 0; round < 8; round++) {
      const who = await registerAccount()
      const change = await beginChange(who)
      await confirm(change.old)
      const [done, ended] = await Promise.all([
        confirm(change.new),
        round % 2 ? refuse(change.old) : cancel(who),
      ])
      const changed = (await readEmail(who.id)) === change.email
      assert.deepEqual([done.status === 200, ended.status < 300], [changed, !changed])
    }
  })
})

describe('an address that two accounts request', () => {
  test('goes to the first confirmed change; the other account is notified and its change ends', async () => {
    const [one, two] = [await registerAccount(), await registerAccount()]
    const email = newAddress()
    const [first, second] = [await beginChange(one, email), await beginChange(two, email)]
    for (const token of [first.old, first.new, second.new]) assert.equal((await confirm(token)).status, 200)
    assertRefused(await confirm(second.old), 400, 'An account with this email already exists')
    assertRefused(await confirm(second.old), 400, BAD_TOKEN)
    assertRefused(await getPendingChange(two), 404)
    assert.deepEqual([await readEmail(one.id), await readEmail(two.id)], [email, two.email])
    assert.equal((await getMe(api, two.token)).status, 200, 'it stays signed in')
  })

  test('goes to one of them if both confirm concurrently', async () => {
    for (let round = 0; round < 6; round++) {
      const all = await Promise.all(Array.from({ length: 3 }, registerAccount))
      const email = newAddress()
      const changes: { old: string; new: string }[] = []
      for (const who of all) changes.push(await beginChange(who, email))
      for (const change of changes) await confirm(change.new)
      const answers = await Promise.all(changes.map((change) => confirm(change.old)))
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400])
      const emails = await Promise.all(all.map(({ id }) => readEmail(id)))
      assert.deepEqual(
        emails.map((one) => one === email),
        answers.map(({ status }) => status === 200),
      )
    }
  })

  test('goes to one of them if one registers with it, without a deadlock', async () => {
    for (let round = 0; round < 8; round++) {
      const who = await registerAccount()
      const change = await beginChange(who)
      await confirm(change.old)
      const [changed, registered] = await Promise.all([
        confirm(change.new),
        api.post('/api/v1/auth/register', { json: { email: change.email, password: PASSWORD } }),
      ])
      assert.deepEqual([changed.status, registered.status].sort(), [200, 400])
      if (changed.status === 400) assertRefused(changed, 400, 'An account with this email already exists')
      const [{ n }] = (await query('select count(*)::int as n from account where email = $1', [
        change.email,
      ])) as [{ n: number }]
      assert.equal(n, 1)
    }
  })

  test('is free again when an account gives it up', async () => {
    const who = await registerAccount()
    const change = await beginChange(who)
    await confirm(change.old)
    await confirm(change.new)
    assert.equal(
      (await api.post('/api/v1/auth/register', { json: { email: who.email, password: PASSWORD } })).status,
      200,
    )
  })
})

describe('invites to the new address', () => {
  const invite = async (owner: Account, id: number, email: string, role = 'member') =>
    (await api.post(`/api/v1/orgs/${id}/invites`, { token: owner.token, json: { email, role } })).json
  const organization = async (owner: Account): Promise<number> =>
    (await api.post('/api/v1/orgs', { token: owner.token, json: { name: 'Acme', slug: `acme-${++count}` } }))
      .json.id
  const roleIn = async (id: number, account: number) =>
    (
      await query('select role from organization_member where organization_id = $1 and user_id = $2', [
        id,
        account,
      ])
    )[0]?.role

  test('are accepted with the change, and existing members keep their role', async () => {
    const [owner, who] = [await registerAccount(), await registerAccount()]
    const [one, two] = [await organization(owner), await organization(owner)]
    await invite(owner, two, who.email)
    const email = newAddress()
    const made = [await invite(owner, one, email, 'admin'), await invite(owner, two, email, 'admin')]
    const change = await beginChange(who, email)
    await confirm(change.new)
    assert.equal(await roleIn(one, who.id), undefined)
    await confirm(change.old)
    assert.deepEqual([await roleIn(one, who.id), await roleIn(two, who.id)], ['admin', 'member'])
    const rows = await query(`select status from organization_invite where id = any($1)`, [
      made.map(({ id }) => id),
    ])
    assert.deepEqual(rows, [{ status: 'accepted' }, { status: 'accepted' }])
    const added = await query(
      `select organization_id, data from audit_event where account_id = $1 and kind = 'member.added' and data ->> 'invite' = any($2)`,
      [who.id, made.map(({ id }) => String(id))],
    )
    assert.deepEqual(added, [{ organization_id: one, data: { role: 'admin', invite: made[0].id } }])
  })

  test('make the account a member even if sent during the change', async () => {
    const owner = await registerAccount()
    const id = await organization(owner)
    for (let round = 0; round < 8; round++) {
      const who = await registerAccount()
      const change = await beginChange(who)
      await confirm(change.old)
      const [changed, made] = await Promise.all([confirm(change.new), invite(owner, id, change.email)])
      assert.equal(changed.status, 200)
      assert.equal(await roleIn(id, who.id), 'member')
      const [row] = await query('select status from organization_invite where id = $1', [made.id])
      assert.equal(row!.status, 'accepted')
    }
  })
})

test('every edge sees the new address immediately', async () => {
  const other = await startEdge(url)
  const who = await registerAccount()
  assert.equal((await getMe(other, who.token)).json.email, who.email)
  const change = await beginChange(who)
  await confirm(change.old)
  await confirm(change.new)
  await until(
    'the other edge sees it',
    async () => (await getMe(other, who.token)).json.email === change.email,
  )
})
