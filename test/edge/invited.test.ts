import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inviteTokenOf } from '../../tasks/accounts/tokens.ts'
import { TEST_KEYS } from '../keys.ts'
import { createEmail, PASSWORD, startEdgeAndDatabase } from './harness.ts'
import { createMailbox } from './mailbox.ts'
import { assertRefused, createOrgs, createOrgsOn, type Person, signInAs } from './orgs-help.ts'

/** Invited people join, whether registration is open, closed, or needs a verified address. */

const CLOSED = 'Registration is closed'

/** Returns an organization, and the requests of an address that it has invited. */
async function createInvites({ call, org, ...world }: Awaited<ReturnType<typeof createOrgs>>) {
  const { api } = world
  // Otherwise the first registration creates the admin.
  await world.people(1, 'admin')
  const at = await org()
  const invite = async (role = 'member', email = createEmail('guest')) => {
    const { status, json } = await call(at.owner, 'POST', `/${at.id}/invites`, { json: { email, role } })
    assert.equal(status, 201, JSON.stringify(json))
    return json as { id: number; email: string; token: string; status: string }
  }
  const register = (email: string, invite_token?: string | null, more: object = {}) =>
    api.post('/api/v1/auth/register', { json: { email, password: PASSWORD, invite_token, ...more } })
  const accept = (who: Person, token: string) =>
    api.post('/api/v1/auth/accept-invite', { token: who.token, json: { token } })
  return { ...world, ...at, call, invite, register, accept }
}

describe('REGISTRATION_ENABLED=false', async () => {
  const world = await createInvites(await createOrgs({ env: { REGISTRATION_ENABLED: 'false' } }))
  const { call, id, owner, invite, register, roles, trail, query } = world

  test('lets an invited address register with the token of its invite only', async () => {
    const { email, token } = await invite('admin')
    for (const given of [undefined, null, ''])
      assert.ok([403, 422].includes((await register(email, given)).status))
    assertRefused(await register(email), 403, CLOSED)
    assertRefused(
      await register(createEmail('other'), token),
      400,
      'The invite is for a different email address',
    )
    assertRefused(await register(email, `${token}x`), 400, 'The invite token is invalid')
    const answer = await register(email.toUpperCase(), token)
    assert.deepEqual([answer.status, answer.json.email, answer.json.role], [200, email, 'user'], answer.text)
    assert.equal((await roles(id))[answer.json.id], 'admin')
    const own = (await trail(id)).slice(-2).map(({ kind, actor_id }) => [kind, actor_id])
    assert.deepEqual(own, [
      ['invite.accepted', answer.json.id],
      ['member.added', answer.json.id],
    ])
    assertRefused(await register(email, token), 400, 'The invite was already accepted')
  })

  test('refuses an invite that has ended', async () => {
    const [revoked, expired] = [await invite(), await invite()]
    await call(owner, 'DELETE', `/${id}/invites/${revoked.id}`)
    await query(`update organization_invite set expires_at = now() where id = $1`, [expired.id])
    assertRefused(await register(revoked.email, revoked.token), 400, 'The invite was revoked')
    assertRefused(await register(expired.email, expired.token), 400, 'The invite has expired')
    const last = await invite()
    assert.equal((await call(owner, 'DELETE', `/${id}`)).status, 204)
    assertRefused(await register(last.email, last.token), 400, 'The invite token is invalid')
    assertRefused(await register(createEmail('late'), inviteTokenOf(TEST_KEYS, 999_999, 'x@y')), 400)
  })
})

test('an open registration rejects a wrong invite token, too', async () => {
  const { invite, register } = await createInvites(await createOrgs())
  const { email, token } = await invite()
  assertRefused(await register(createEmail('other'), token), 400)
  assert.equal((await register(email, token)).status, 200)
})

describe('INVITES_NEED_VERIFICATION=true', async () => {
  const env = { INVITES_NEED_VERIFICATION: 'true', REGISTRATION_ENABLED: 'false' }
  const base = await startEdgeAndDatabase({ env })
  const world = await createInvites(createOrgsOn(base))
  const { api, id, owner, call, people, invite, register, accept, roles, trail, query } = world
  const readMails = createMailbox(base)
  const tokenFor = async (email: string, subject: string) =>
    (await readMails()).findLast((mail) => mail.to === email && mail.subject === subject)!.token
  const UNVERIFIED = /^Verify the address of your account first/

  test('registration leaves the invite pending, and the verification accepts it', async () => {
    const { email, token } = await invite('admin')
    const { json, status } = await register(email, token)
    assert.equal(status, 200)
    assert.equal((await roles(id))[json.id], undefined)
    const guest = await signInAs(api, json.id, email)
    assertRefused(await accept(guest, token), 403, UNVERIFIED)
    const verify = await tokenFor(email, 'Verify your address')
    const verified = await api.post('/api/v1/auth/verify-email', { json: { token: verify } })
    assert.equal(verified.status, 200, verified.text)
    assert.equal((await roles(id))[json.id], 'admin')
    assert.deepEqual(
      (await trail(id)).slice(-2).map(({ kind }) => kind),
      ['invite.accepted', 'member.added'],
    )
    assertRefused(await accept(guest, token), 400, 'The invite was already accepted')
  })

  test('a password reset verifies the address and accepts the invite', async () => {
    const { email, token } = await invite()
    const { json } = await register(email, token)
    await api.post('/api/v1/auth/password-reset/request', { json: { email } })
    const reset = { token: await tokenFor(email, 'Set a new password'), new_password: 'another horse' }
    assert.equal((await api.post('/api/v1/auth/password-reset/confirm', { json: reset })).status, 200)
    assert.equal((await roles(id))[json.id], 'member')
  })

  test('an invited account without a verified address is no member yet', async () => {
    const [person] = await people(1)
    const pending = await invite('member', person!.email)
    assert.equal(pending.status, 'pending')
    assertRefused(await accept(person!, pending.token), 403, UNVERIFIED)
    await query('update account set is_verified = true where id = $1', [person!.id])
    assert.equal((await accept(person!, pending.token)).status, 200)
    const [verified] = await people(1)
    await query('update account set is_verified = true where id = $1', [verified!.id])
    assert.equal((await invite('member', verified!.email)).status, 'accepted')
    assert.equal((await roles(id))[verified!.id], 'member')
    assert.equal((await call(owner, 'GET', `/${id}/invites`)).json.length, 0)
  })
})
