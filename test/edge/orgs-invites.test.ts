import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isInviteToken } from '../../tasks/accounts/tokens.ts'
import { TEST_KEYS } from '../keys.ts'
import { createEmail, getSharedEdge, PASSWORD } from './harness.ts'
import {
  assertRefused,
  createOrgsOnShared,
  NOT_MEMBER,
  ORG_MISSING,
  type Person,
  RANK_EXCEEDED,
  RANK_TOO_LOW,
  ROLE_INVALID,
} from './orgs-help.ts'

const { admin: root } = await getSharedEdge()
const { api, people, call, org, roles, trail, last, query } = await createOrgsOnShared({
  env: { INVITE_TOKEN_DAYS: '3' },
})
const createAddress = (): string => createEmail('invited')
const invite = (who: Person, id: number, email: unknown, role?: unknown) =>
  call(who, 'POST', `/${id}/invites`, { json: { email, role } })
const revoke = (who: Person, id: number, invite: number) => call(who, 'DELETE', `/${id}/invites/${invite}`)
const resend = (who: Person | null, id: number, invite: number | string, headers = {}) =>
  call(who, 'POST', `/${id}/invites/${invite}/resend`, { headers })
const listPendingTokens = async (who: Person, id: number): Promise<string[]> =>
  (await call(who, 'GET', `/${id}/invites`)).json.map((one: { email: string }) => one.email)
const readStatuses = (id: number) =>
  query('select status, email from organization_invite where organization_id = $1 order by id', [id])
const expire = (invite: number) =>
  query(`update organization_invite set expires_at = now() - interval '1 s' where id = $1`, [invite])
const readMailJobs = (invite: number) =>
  query(`select name, queue, owner_id, payload from job where payload ->> 'invite_id' = $1`, [String(invite)])

/** Asserts that a request is rejected for an invite that is missing or no longer pending. */
async function assertPendingOnly(ask: typeof revoke) {
  const [{ id, owner, outsider }, other] = [await org(), await org()]
  const made = async () => (await invite(owner, id, createAddress())).json.id as number
  const [revoked, expired, here] = [await made(), await made(), await made()]
  await revoke(owner, id, revoked)
  await expire(expired)
  const accepted = (await invite(owner, id, outsider.email)).json.id as number
  assertRefused(await ask(owner, id, revoked), 400, 'The invite was revoked')
  assertRefused(await ask(owner, id, expired), 400, 'The invite has expired')
  assertRefused(await ask(owner, id, accepted), 400, 'The invite was already accepted')
  assertRefused(await ask(owner, id, 999_999), 404, 'Invite not found')
  assertRefused(await ask(other.owner, other.id, here), 404, 'Invite not found')
  return { owner, id, revoked, expired, accepted, here }
}

describe('POST /orgs/{org_id}/invites', () => {
  test('invites an address without an account by mail', async () => {
    const { id, admin } = await org()
    const email = createEmail('new.person')
    const answer = await invite(admin, id, ` ${email.toUpperCase()} `)
    assert.equal(answer.status, 201)
    const { id: row, token, created_at, expires_at, ...fields } = answer.json
    assert.deepEqual(fields, {
      organization_id: id,
      email,
      role: 'member',
      status: 'pending',
    })
    assert.ok(isInviteToken(TEST_KEYS, token, row, email))
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), 3 * 86_400_000)
    assert.equal(answer.headers['cache-control'], 'no-store')
    const payload = { invite_id: row }
    assert.deepEqual(await readMailJobs(row), [
      { name: 'accounts.invite', queue: 'accounts', owner_id: null, payload },
    ])
    assert.deepEqual(await last(id), {
      kind: 'invite.created',
      actor_id: admin.id,
      account_id: null,
      data: { invite: row, email, role: 'member' },
    })
    assert.deepEqual(Object.values(await roles(id)).length, 3, 'no member is added yet')
  })

  test('stores no token, even for an Idempotency-Key, which returns it again', async () => {
    const { id, owner } = await org()
    const request = { json: { email: createAddress() }, headers: { 'idempotency-key': 'invite' } }
    const [{ json }, again] = [
      await call(owner, 'POST', `/${id}/invites`, request),
      await call(owner, 'POST', `/${id}/invites`, request),
    ]
    assert.deepEqual([again.status, again.json], [201, json])
    const { token } = json
    const [secret] = token.split('.').slice(1)
    for (const table of ['organization_invite', 'job', 'job_event', 'audit_event', 'idempotency_key'])
      assert.deepEqual(await query(`select 1 from ${table} t where strpos(t::text, $1) > 0`, [secret]), [])
  })

  test('makes an address with an account a member immediately', async () => {
    const { id, admin, outsider } = await org()
    const answer = await invite(admin, id, outsider.email.toUpperCase(), 'admin')
    assert.deepEqual([answer.status, answer.json.status, answer.json.role], [201, 'accepted', 'admin'])
    assert.equal((await roles(id))[outsider.id], 'admin')
    assert.deepEqual(
      (await trail(id)).slice(1).map(({ kind, actor_id, account_id }) => [kind, actor_id, account_id]),
      [
        ['invite.created', admin.id, null],
        ['invite.accepted', admin.id, outsider.id],
        ['member.added', admin.id, outsider.id],
      ],
    )
    assert.equal((await readMailJobs(answer.json.id)).length, 1)
    assert.deepEqual(await listPendingTokens(admin, id), [])
    const [row] = await query('select accepted_at, invited_by from organization_invite where id = $1', [
      answer.json.id,
    ])
    assert.ok(row!.accepted_at instanceof Date)
    assert.equal(row!.invited_by, admin.id)
  })

  test('rejects members and pending invites with 400; another organization may still invite', async () => {
    const [{ id, owner, member }, other] = [await org(), await org()]
    assertRefused(await invite(owner, id, member.email), 400, 'The user is already a member')
    const email = createAddress()
    assert.equal((await invite(owner, id, email)).status, 201)
    assertRefused(
      await invite(owner, id, ` ${email.toUpperCase()}`),
      400,
      'An invite for this address is already pending',
    )
    assert.equal((await invite(other.owner, other.id, email)).status, 201)
  })

  test('accepts an address with an expired, revoked or used invite', async () => {
    const { id, owner } = await org()
    const email = createAddress()
    await expire((await invite(owner, id, email)).json.id)
    const second = await invite(owner, id, email)
    assert.equal(second.status, 201)
    assert.equal((await revoke(owner, id, second.json.id)).status, 204)
    assert.equal((await invite(owner, id, email)).status, 201)
    assert.deepEqual(
      (await readStatuses(id)).map(({ status }) => status),
      ['expired', 'revoked', 'pending'],
    )
    const [one] = await people(1)
    for (let i = 0; i < 2; i++) {
      assert.equal((await invite(owner, id, one!.email)).json.status, 'accepted')
      await call(one!, 'DELETE', `/${id}/members/me`)
    }
  })

  test('does not invite an account that already has a pending invite', async () => {
    const { id, owner } = await org()
    const email = createAddress()
    await invite(owner, id, email)
    // Insert the account without registration, like the deployment's own admin.
    await query(`insert into account (email, password_hash) values ($1, 'x')`, [email])
    assertRefused(await invite(owner, id, email), 400, 'An invite for this address is already pending')
  })

  test('twenty concurrent requests for one address create one invite', async () => {
    const { id, owner, admin } = await org()
    const email = createAddress()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => invite(i % 2 ? owner : admin, id, email)),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, ...Array(19).fill(400)])
    assert.equal((await trail(id)).length, 2)
  })

  test("allows roles up to the caller's own and rejects unknown ones with 400", async () => {
    const { id, owner, admin } = await org()
    assertRefused(await invite(admin, id, createAddress(), 'owner'), 403, RANK_EXCEEDED)
    assertRefused(await invite(owner, id, createAddress(), 'root'), 400, ROLE_INVALID)
    for (const role of ['owner', 'admin', 'member']) {
      const answer = await invite(owner, id, createAddress(), role)
      assert.deepEqual([answer.status, answer.json.role], [201, role])
    }
  })

  test('rejects invalid input with 422', async () => {
    const { id, owner } = await org()
    for (const email of [undefined, '', 'nobody', 'a@b', 7, `${'a'.repeat(320)}@example.com`])
      assertRefused(await invite(owner, id, email), 422)
    assertRefused(await invite(owner, id, createAddress(), 7), 422)
    assertRefused(
      await call(owner, 'POST', `/${id}/invites`, { json: { email: createAddress(), status: 'accepted' } }),
      422,
    )
    assert.deepEqual(await readStatuses(id), [])
  })
})

describe('GET /orgs/{org_id}/invites', () => {
  test('lists pending invites with their tokens, oldest first', async () => {
    const { id, owner, admin, outsider } = await org()
    const [first, second, third, fourth] = [
      createAddress(),
      createAddress(),
      createAddress(),
      createAddress(),
    ]
    const made = await invite(owner, id, first)
    const revoked = await invite(owner, id, second)
    const expired = await invite(owner, id, third)
    await invite(owner, id, outsider.email)
    await invite(admin, id, fourth)
    await revoke(owner, id, revoked.json.id)
    await expire(expired.json.id)
    const answer = await call(admin, 'GET', `/${id}/invites`)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.json[0], made.json)
    assert.deepEqual(await listPendingTokens(owner, id), [first, fourth])
    assert.equal(answer.headers['cache-control'], 'no-store')
    const page = await call(owner, 'GET', `/${id}/invites`, { query: { page: 2, page_size: 1 } })
    assert.equal(page.json[0].email, fourth)
  })
})

describe('DELETE /orgs/{org_id}/invites/{invite_id}', () => {
  test('revokes a pending invite', async () => {
    const { id, owner, admin } = await org()
    const email = createAddress()
    const { id: row } = (await invite(owner, id, email)).json
    const answer = await revoke(admin, id, row)
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assert.deepEqual(await last(id), {
      kind: 'invite.revoked',
      actor_id: admin.id,
      account_id: null,
      data: { invite: row, email },
    })
    assert.deepEqual(await listPendingTokens(owner, id), [])
  })

  test('is 400 for an invite that is no longer pending and 404 for a missing one', async () => {
    const { owner, id, here } = await assertPendingOnly(revoke)
    assertRefused(await call(owner, 'DELETE', `/${id}/invites/x`), 422)
    assert.equal((await revoke(owner, id, here)).status, 204)
  })

  test('does not let admins revoke invites that only owners may create', async () => {
    const { id, owner, admin } = await org()
    const { id: row } = (await invite(owner, id, createAddress(), 'owner')).json
    assertRefused(await revoke(admin, id, row), 403, RANK_EXCEEDED)
    assert.equal((await revoke(owner, id, row)).status, 204)
  })
})

describe('POST /orgs/{org_id}/invites/{invite_id}/resend', () => {
  test('mails the invite again with the same token and a new expiry; its creation time stays', async () => {
    const { id, owner, admin } = await org()
    const made = (await invite(owner, id, createAddress())).json
    await query(
      `update organization_invite set created_at = now() - interval '2 days', expires_at = now() + interval '1 hour' where id = $1`,
      [made.id],
    )
    const answer = await resend(admin, id, made.id)
    assert.equal(answer.status, 200)
    const { created_at, expires_at, ...fields } = answer.json
    const { created_at: _, expires_at: __, ...before } = made
    assert.deepEqual(fields, before)
    assert.equal(Math.round((Date.parse(expires_at) - Date.parse(created_at)) / 86_400_000), 5)
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.equal((await readMailJobs(made.id)).length, 2, 'a mail of its own')
    assert.deepEqual(await last(id), {
      kind: 'invite.resent',
      actor_id: admin.id,
      account_id: null,
      data: { invite: made.id, email: made.email },
    })
    assert.equal((await resend(admin, id, made.id)).status, 200, 'and again')
  })

  test('takes effect once per Idempotency-Key, and the stored answer has no token', async () => {
    const { id, owner } = await org()
    const made = (await invite(owner, id, createAddress())).json
    const key = { 'idempotency-key': 'resend' }
    const answers = [await resend(owner, id, made.id, key), await resend(owner, id, made.id, key)]
    for (const { status, json } of answers) assert.deepEqual([status, json.token], [200, made.token])
    assert.equal((await readMailJobs(made.id)).length, 2)
    const kept = await query('select 1 from idempotency_key where strpos(idempotency_key::text, $1) > 0', [
      made.token,
    ])
    assert.deepEqual(kept, [])
  })

  test('is 400 for an invite that is no longer pending, 404 for a missing one, and mails nothing', async () => {
    const { owner, id, revoked, expired, accepted, here } = await assertPendingOnly(resend)
    for (const bad of ['x', '0', '-1', '1e9', '99999999999999999999'])
      assertRefused(await resend(owner, id, bad), 422)
    for (const one of [revoked, expired, here, accepted]) assert.equal((await readMailJobs(one)).length, 1)
  })

  test('does not let admins resend invites that only owners may create', async () => {
    const { id, owner, admin } = await org()
    const { id: row } = (await invite(owner, id, createAddress(), 'owner')).json
    assertRefused(await resend(admin, id, row), 403, RANK_EXCEEDED)
    assert.equal((await resend(owner, id, row)).status, 200)
  })

  test('does not revive an invite that is concurrently revoked or accepted by registration', async () => {
    const { id, owner, admin } = await org()
    for (let round = 0; round < 8; round++) {
      const made = (await invite(owner, id, createAddress())).json
      const register = () =>
        api.post('/api/v1/auth/register', { json: { email: made.email, password: PASSWORD } })
      const [again, over] = await Promise.all([
        resend(admin, id, made.id),
        round % 2 ? register() : revoke(owner, id, made.id),
      ])
      assert.equal(over.status, round % 2 ? 200 : 204)
      if (again.status !== 200)
        assertRefused(again, 400, round % 2 ? 'The invite was already accepted' : 'The invite was revoked')
      const [row] = await query('select status from organization_invite where id = $1', [made.id])
      assert.equal(row!.status, round % 2 ? 'accepted' : 'revoked')
    }
  })
})

test('checks for an unknown organization, membership, rank and input, in this order', async () => {
  const { id, member, outsider } = await org()
  const routes = [
    ['POST', '/invites', { json: { email: member.email, role: 'root' } }],
    ['GET', '/invites', {}],
    ['DELETE', '/invites/999999', {}],
    ['POST', '/invites/999999/resend', {}],
  ] as const
  for (const [method, path, request] of routes) {
    assertRefused(await call(outsider, method, `/999999${path}`, request), 404, ORG_MISSING)
    for (const who of [outsider, root])
      assertRefused(await call(who, method, `/${id}${path}`, request), 403, NOT_MEMBER)
    assertRefused(await call(member, method, `/${id}${path}`, request), 403, RANK_TOO_LOW)
    assertRefused(await call(null, method, `/${id}${path}`, request), 401)
  }
  assert.equal((await trail(id)).length, 1, 'nothing was done')
})

describe('RATE_LIMIT_INVITE', async () => {
  const limited = await createOrgsOnShared({ env: { RATE_LIMIT_INVITE: '3/3600' } })
  const ask = (who: Person, id: number, email = createAddress()) =>
    limited.call(who, 'POST', `/${id}/invites`, { json: { email } })

  test('limits an account across organizations, including revoked invites', async () => {
    const mails = async () =>
      Number((await query(`select count(*) from job where name = 'accounts.invite'`))[0]!.count)
    const before = await mails()
    const { id, owner, admin } = await limited.org()
    const second = await limited.create(owner)
    const email = createAddress()
    const first = await ask(owner, id, email)
    assert.equal(first.status, 201)
    assert.equal((await limited.call(owner, 'DELETE', `/${id}/invites/${first.json.id}`)).status, 204)
    assert.equal((await ask(owner, id, email)).status, 201)
    assert.equal((await ask(owner, second)).status, 201)
    const refused = await ask(owner, id)
    assert.equal(refused.status, 429)
    const seconds = Number(refused.headers['retry-after'])
    assert.ok(seconds > 3000 && seconds <= 3600)
    assert.equal((await ask(admin, id)).status, 201, 'others of the same address are not held up')
    assert.equal((await mails()) - before, 4)
  })

  test('counts resends as invites', async () => {
    const { id, owner } = await limited.org()
    const made = await ask(owner, id)
    const again = () => limited.call(owner, 'POST', `/${id}/invites/${made.json.id}/resend`)
    assert.deepEqual([(await again()).status, (await again()).status], [200, 200])
    assert.equal((await again()).status, 429)
    assert.equal((await ask(owner, id)).status, 429)
  })

  test('does not apply to admins, or to other accounts if 0', async () => {
    const id = await limited.create(root)
    for (let i = 0; i < 5; i++) assert.equal((await ask(root, id)).status, 201)
    assert.equal((await limited.call(root, 'DELETE', `/${id}`)).status, 204)
    const free = await org()
    for (let i = 0; i < 21; i++)
      assert.equal((await invite(free.owner, free.id, createAddress())).status, 201)
  })
})
