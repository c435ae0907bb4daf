import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inviteTokenOf } from '../../tasks/accounts/tokens.ts'
import { FOREIGN_KEYS, TEST_KEYS } from '../keys.ts'
import { type Answered, createEmail, PASSWORD } from './harness.ts'
import { assertRefused, createSharedOrgs, type Person, signInAs } from './orgs-help.ts'

const { api, call, org, people, roles, trail, query } = await createSharedOrgs()
const createAddress = (): string => createEmail('guest')
const accept = (who: Person | null, token: unknown, headers = {}) =>
  api.post('/api/v1/auth/accept-invite', { json: { token }, headers, ...(who && { token: who.token }) })
const register = (email: string) => api.post('/api/v1/auth/register', { json: { email, password: PASSWORD } })
const readInviteStatus = async (id: number) =>
  (
    await query('select status, accepted_at is not null as at from organization_invite where id = $1', [id])
  )[0]
const readEvents = async (id: number) =>
  (await trail(id)).map(({ kind, actor_id, account_id }) => [kind, actor_id, account_id])

/** Inserts an account without registration, like the deployment's own admin, so that it accepts no pending invites. */
async function insertAccount(email: string): Promise<Person> {
  const [row] = await query(`insert into account (email, password_hash) values ($1, 'x') returning id`, [
    email,
  ])
  return signInAs(api, row!.id as number, email)
}

/** Creates an organization, an account, and a pending invite for it. */
async function createInvitedAccount(role = 'member') {
  const at = await org()
  const email = createAddress()
  const { json } = await call(at.owner, 'POST', `/${at.id}/invites`, { json: { email, role } })
  assert.equal(json.status, 'pending')
  return { ...at, invite: json as { id: number; token: string }, guest: await insertAccount(email) }
}

const assertInvalid = (answer: Answered) => assertRefused(answer, 400, 'The invite token is invalid')

describe('POST /auth/accept-invite', () => {
  test('makes the caller a member with the invited role', async () => {
    const { id, invite, guest } = await createInvitedAccount('admin')
    const answer = await accept(guest, invite.token)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.json, { ...invite, status: 'accepted' })
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.equal((await roles(id))[guest.id], 'admin')
    assert.deepEqual(await readInviteStatus(invite.id), { status: 'accepted', at: true })
    assert.deepEqual((await readEvents(id)).slice(2), [
      ['invite.accepted', guest.id, guest.id],
      ['member.added', guest.id, guest.id],
    ])
  })

  test('is 400 when repeated, and one of twenty concurrent requests is 200', async () => {
    const { invite, guest, id } = await createInvitedAccount()
    const answers = await Promise.all(Array.from({ length: 20 }, () => accept(guest, invite.token)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(19).fill(400)])
    assertRefused(await accept(guest, invite.token), 400, 'The invite was already accepted')
    assert.equal((await readEvents(id)).length, 4)
  })

  test('takes effect once per Idempotency-Key, and the stored answer has no token', async () => {
    const { invite, guest, id } = await createInvitedAccount()
    const key = { 'idempotency-key': 'accept' }
    const answers = [await accept(guest, invite.token, key), await accept(guest, invite.token, key)]
    for (const { status, json } of answers)
      assert.deepEqual([status, json], [200, { ...invite, status: 'accepted' }])
    assert.equal((await readEvents(id)).length, 4)
    assert.deepEqual(
      await query('select 1 from idempotency_key where strpos(idempotency_key::text, $1) > 0', [
        invite.token,
      ]),
      [],
    )
  })

  test('leaves an existing member unchanged and uses up the invite', async () => {
    const { id, invite, guest, owner } = await createInvitedAccount()
    await call(owner, 'POST', `/${id}/members`, { query: { user_id: guest.id, role: 'admin' } })
    const answer = await accept(guest, invite.token)
    assert.deepEqual([answer.status, answer.json.status], [200, 'accepted'])
    assert.equal((await roles(id))[guest.id], 'admin')
    assert.deepEqual((await readEvents(id)).at(-1), ['invite.accepted', guest.id, guest.id])
  })

  test('rejects an account with another address with 400 and no details', async () => {
    const { id, invite, guest, owner, outsider } = await createInvitedAccount()
    const detail = 'The invite is for a different email address'
    for (const who of [outsider, owner]) assertRefused(await accept(who, invite.token), 400, detail)
    await accept(guest, invite.token)
    assertRefused(await accept(outsider, invite.token), 400, detail)
    assert.equal((await roles(id))[outsider.id], undefined)
  })

  test('rejects an invalid token with 400', async () => {
    const { invite, guest } = await createInvitedAccount()
    const [id, mac] = invite.token.split('.') as [string, string]
    const last = mac.endsWith('A') ? 'E' : 'A'
    const bad = [
      'x',
      id,
      mac,
      `${id}.`,
      `${id}.${mac.slice(0, -1)}${last}`,
      `${id}.${mac}x`,
      `0${id}.${mac}`,
      `${Number(id) + 1}.${mac}`,
      `9999999999.${mac}`,
      inviteTokenOf(FOREIGN_KEYS, invite.id, guest.email),
      inviteTokenOf(TEST_KEYS, invite.id, 'other@example.com'),
      inviteTokenOf(TEST_KEYS, 999_999, guest.email),
    ]
    for (const token of bad) assertInvalid(await accept(guest, token))
    for (const token of ['', 7, null, 'x'.repeat(201)]) assertRefused(await accept(guest, token), 422)
    assertRefused(await accept(null, invite.token), 401)
    assert.deepEqual(await readInviteStatus(invite.id), { status: 'pending', at: false })
  })

  test('rejects a revoked invite with 400', async () => {
    const { id, invite, guest, owner } = await createInvitedAccount()
    await call(owner, 'DELETE', `/${id}/invites/${invite.id}`)
    assertRefused(await accept(guest, invite.token), 400, 'The invite was revoked')
    assert.equal((await roles(id))[guest.id], undefined)
  })

  test('rejects an expired invite with 400 and marks it as expired', async () => {
    const { id, invite, guest } = await createInvitedAccount()
    await query(`update organization_invite set expires_at = now() where id = $1`, [invite.id])
    for (let i = 0; i < 2; i++)
      assertRefused(await accept(guest, invite.token), 400, 'The invite has expired')
    assert.deepEqual(await readInviteStatus(invite.id), { status: 'expired', at: false })
    assert.equal((await roles(id))[guest.id], undefined)
  })

  test('rejects a token of a deleted organization as invalid', async () => {
    const { id, invite, guest, owner } = await createInvitedAccount()
    await call(owner, 'DELETE', `/${id}`)
    assertInvalid(await accept(guest, invite.token))
  })

  test('may race a revocation or a deletion: one wins completely', async () => {
    for (let round = 0; round < 12; round++) {
      const { id, invite, guest, owner } = await createInvitedAccount()
      const path = round % 2 ? `/${id}` : `/${id}/invites/${invite.id}`
      const [joined, ended] = await Promise.all([accept(guest, invite.token), call(owner, 'DELETE', path)])
      assert.ok([200, 400].includes(joined.status) && [204, 400].includes(ended.status))
      if (round % 2) assert.equal(ended.status, 204)
      else assert.notEqual(joined.status === 200, ended.status === 204)
      if (round % 2 === 0) assert.equal((await roles(id))[guest.id] !== undefined, joined.status === 200)
    }
  })
})

describe('registering with an invited address', () => {
  test('accepts every pending invite that has not expired', async () => {
    const email = createAddress()
    const orgs = await Promise.all(Array.from({ length: 5 }, () => org()))
    const made: { id: number }[] = []
    for (const [i, { id, owner }] of orgs.entries()) {
      const role = ['member', 'admin', 'owner', 'member', 'member'][i]!
      made.push((await call(owner, 'POST', `/${id}/invites`, { json: { email, role } })).json)
    }
    await call(orgs[3]!.owner, 'DELETE', `/${orgs[3]!.id}/invites/${made[3]!.id}`)
    await query('update organization_invite set expires_at = now() where id = $1', [made[4]!.id])
    const answer = await register(` ${email.toUpperCase()}`)
    assert.equal(answer.status, 200)
    const { id: account } = answer.json
    const given = await Promise.all(orgs.map(async ({ id }) => (await roles(id))[account]))
    assert.deepEqual(given, ['member', 'admin', 'owner', undefined, undefined])
    const statuses = await Promise.all(made.map(async ({ id }) => (await readInviteStatus(id))!.status))
    assert.deepEqual(statuses.slice(0, 4), ['accepted', 'accepted', 'accepted', 'revoked'])
    assert.deepEqual((await readEvents(orgs[1]!.id)).slice(2), [
      ['invite.accepted', account, account],
      ['member.added', account, account],
    ])
    const mine = await api.get('/api/v1/orgs', { token: answer.cookie('millrace_session') })
    assert.equal(mine.json.length, 3)
  })

  test('changes no invite if the address differs or is taken', async () => {
    const { id, invite, guest } = await createInvitedAccount()
    assert.equal((await register(createAddress())).status, 200)
    assert.equal((await register(guest.email)).status, 400)
    assert.deepEqual(await readInviteStatus(invite.id), { status: 'pending', at: false })
    assert.equal(Object.keys(await roles(id)).length, 3)
  })

  test('makes the account a member even while the invite is created', async () => {
    const { id, owner } = await org()
    for (let round = 0; round < 10; round++) {
      const email = createAddress()
      const [answer, invite] = await Promise.all([
        register(email),
        call(owner, 'POST', `/${id}/invites`, { json: { email } }),
      ])
      assert.deepEqual([answer.status, invite.status], [200, 201])
      assert.equal((await roles(id))[answer.json.id], 'member')
      assert.deepEqual(await readInviteStatus(invite.json.id), { status: 'accepted', at: true })
    }
  })

  test('does not deadlock with a change of the organization', async () => {
    const { id, owner } = await org()
    const emails = Array.from({ length: 6 }, createAddress)
    const made = await Promise.all(
      emails.map(async (email) => (await call(owner, 'POST', `/${id}/invites`, { json: { email } })).json.id),
    )
    const answers = await Promise.all([
      ...emails.map(register),
      ...made.map((invite) => call(owner, 'DELETE', `/${id}/invites/${invite}`)),
      ...(await people(6)).map(({ id: user_id }) =>
        call(owner, 'POST', `/${id}/members`, { query: { user_id } }),
      ),
    ])
    assert.deepEqual(
      answers.filter(({ status }) => status >= 500),
      [],
    )
    const accepted = await query(
      `select count(*)::int as n from organization_invite where organization_id = $1 and status = 'accepted'`,
      [id],
    )
    assert.equal(Object.keys(await roles(id)).length, 3 + 6 + (accepted[0]!.n as number))
  })
})
