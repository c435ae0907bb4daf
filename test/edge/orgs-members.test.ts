import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createEmail } from './harness.ts'
import {
  assertRefused,
  createSharedOrgs,
  NOT_MEMBER,
  ORG_MISSING,
  type Person,
  RANK_EXCEEDED,
  ROLE_INVALID,
} from './orgs-help.ts'

const { people, call, org, roles, trail, last, query, root } = await createSharedOrgs()
const add = (who: Person, id: number, user_id: number, role?: string) =>
  call(who, 'POST', `/${id}/members`, { query: { user_id, ...(role === undefined ? {} : { role }) } })
const addMembers = (who: Person, id: number, user_ids: unknown, role?: unknown) =>
  call(who, 'POST', `/${id}/members/bulk`, { json: { user_ids, role } })

describe('member lists', () => {
  test('GET members: every member sees all, in joining order', async () => {
    const { id, owner, admin, member } = await org()
    for (const who of [owner, admin, member]) {
      const answer = await call(who, 'GET', `/${id}/members`)
      assert.equal(answer.status, 200)
      const rows = answer.json.map(({ id: row, joined_at, ...rest }: Record<string, unknown>) => {
        assert.ok(Number.isInteger(row))
        assert.match(String(joined_at), /^\d{4}-.*Z$/)
        return rest
      })
      assert.deepEqual(rows, [
        { organization_id: id, user_id: owner.id, role: 'owner' },
        { organization_id: id, user_id: admin.id, role: 'admin' },
        { organization_id: id, user_id: member.id, role: 'member' },
      ])
    }
    const page = await call(owner, 'GET', `/${id}/members`, { query: { page: 3, page_size: 1 } })
    assert.deepEqual(
      page.json.map((row: { user_id: number }) => row.user_id),
      [member.id],
    )
  })

  test('GET members/details: includes addresses and names', async () => {
    const { id, owner, admin, member } = await org()
    const answer = await call(member, 'GET', `/${id}/members/details`)
    assert.equal(answer.status, 200)
    const rows = answer.json.map(({ joined_at, ...rest }: Record<string, unknown>) => {
      assert.match(String(joined_at), /^\d{4}-.*Z$/)
      return rest
    })
    const [o, a, m] = [owner, admin, member].map(({ email }) => ({ email, full_name: `N ${email}` }))
    assert.deepEqual(rows, [
      { user_id: owner.id, ...o, role: 'owner' },
      { user_id: admin.id, ...a, role: 'admin' },
      { user_id: member.id, ...m, role: 'member' },
    ])
    await query('update account set full_name = null where id = $1', [member.id])
    const again = await call(owner, 'GET', `/${id}/members/details`, { query: { page: 3, page_size: 1 } })
    assert.deepEqual([again.json[0].user_id, again.json[0].full_name], [member.id, null])
  })

  test('show 1000 of 1100 members on the first page', async () => {
    const { id, owner } = await org()
    await query(
      `with new as (insert into account (email, password_hash) select n || $2, 'x' from generate_series(1, 1097) n returning id)
       insert into organization_member (organization_id, user_id, role) select $1, id, 'member' from new`,
      [id, createEmail('many')],
    )
    for (const path of ['members', 'members/details']) {
      assert.equal((await call(owner, 'GET', `/${id}/${path}`)).json.length, 1000)
      assert.equal((await call(owner, 'GET', `/${id}/${path}`, { query: { page: 2 } })).json.length, 100)
    }
  })

  test('are readable by members only', async () => {
    const { id, outsider } = await org()
    for (const path of ['members', 'members/details']) {
      assertRefused(await call(outsider, 'GET', `/999999/${path}`), 404, ORG_MISSING)
      for (const who of [outsider, root])
        assertRefused(await call(who, 'GET', `/${id}/${path}`), 403, NOT_MEMBER)
      assertRefused(await call(null, 'GET', `/${id}/${path}`), 401)
    }
  })
})

describe('POST /orgs/{org_id}/members', () => {
  test('adds a user, by default as a member', async () => {
    const { id, owner, admin, outsider } = await org()
    const answer = await add(admin, id, outsider.id)
    assert.equal(answer.status, 201)
    const { id: row, joined_at, ...fields } = answer.json
    assert.ok(Number.isInteger(row) && joined_at.endsWith('Z'))
    assert.deepEqual(fields, { organization_id: id, user_id: outsider.id, role: 'member' })
    assert.deepEqual(await last(id), {
      kind: 'member.added',
      actor_id: admin.id,
      account_id: outsider.id,
      data: { role: 'member' },
    })
    for (const role of ['member', 'admin', 'owner']) {
      const [one] = await people(1)
      const added = await add(owner, id, one!.id, role)
      assert.deepEqual([added.status, added.json.role], [201, role])
    }
  })

  test('rejects a member with 400, an unknown user with 404, an unknown role with 400, a missing user with 422', async () => {
    const { id, owner, member, outsider } = await org()
    assertRefused(await add(owner, id, member.id), 400, 'The user is already a member')
    assertRefused(await add(owner, id, 999_999), 404, 'User not found')
    for (const role of ['root', '', 'Owner', 'moderator'])
      assertRefused(await add(owner, id, outsider.id, role), 400, ROLE_INVALID)
    assertRefused(await call(owner, 'POST', `/${id}/members`), 422)
    assertRefused(await call(owner, 'POST', `/${id}/members`, { query: { user_id: 'x' } }), 422)
    assert.equal((await trail(id)).length, 1)
  })

  test("rejects roles above the caller's own", async () => {
    const { id, admin, outsider } = await org()
    assertRefused(await add(admin, id, outsider.id, 'owner'), 403, RANK_EXCEEDED)
    assert.equal((await add(admin, id, outsider.id, 'admin')).status, 201)
  })

  test('twenty concurrent requests for one user add it once', async () => {
    const { id, owner, admin, outsider } = await org()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => add(i % 2 ? owner : admin, id, outsider.id)),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, ...Array(19).fill(400)])
    assert.equal((await trail(id)).length, 2)
  })
})

describe('POST /orgs/{org_id}/members/bulk', () => {
  test('adds and returns users who are not members yet', async () => {
    const { id, owner, admin, member, outsider } = await org()
    const [one, two] = await people(2)
    const given = [two!.id, member.id, one!.id, outsider.id, two!.id, owner.id]
    const answer = await addMembers(admin, id, given, 'admin')
    assert.equal(answer.status, 201)
    assert.deepEqual(
      answer.json.map((row: { user_id: number; role: string }) => [row.user_id, row.role]),
      [outsider, one!, two!].map((person) => [person.id, 'admin']),
    )
    assert.equal((await roles(id))[member.id], 'member', 'who is a member stays as it was')
    const events = (await trail(id)).slice(1)
    assert.deepEqual(
      events.map(({ kind, account_id, data }) => [kind, account_id, data]),
      [outsider, one!, two!].map((person) => ['member.added', person.id, { role: 'admin' }]),
    )
    const again = await addMembers(owner, id, given)
    assert.deepEqual([again.status, again.json], [201, []])
    assert.deepEqual((await addMembers(owner, id, [])).json, [])
    assert.equal((await trail(id)).length, 4)
  })

  test('rejects unknown ids with 400, names them, and adds no users', async () => {
    const { id, owner, outsider } = await org()
    const answer = await addMembers(owner, id, [999_998, outsider.id, 888_888, 999_998])
    assertRefused(answer, 400, 'Unknown user ids: 888888, 999998')
    assert.equal((await roles(id))[outsider.id], undefined)
    assert.equal((await trail(id)).length, 1)
  })

  test('rejects an unknown role with 400, a higher one with 403, and an invalid list with 422', async () => {
    const { id, owner, admin, outsider } = await org()
    assertRefused(await addMembers(owner, id, [outsider.id], 'root'), 400, ROLE_INVALID)
    assertRefused(await addMembers(admin, id, [outsider.id], 'owner'), 403, RANK_EXCEEDED)
    const bad = [undefined, outsider.id, ['x'], [0], [1.5], [2 ** 31], Array(1001).fill(outsider.id)]
    for (const ids of bad) assertRefused(await addMembers(owner, id, ids), 422)
    assertRefused(await addMembers(owner, id, [outsider.id], 7), 422)
    const max = await addMembers(owner, id, Array(1000).fill(outsider.id))
    assert.deepEqual([max.status, max.json.length], [201, 1])
  })

  test('overlapping concurrent lists add each user once', async () => {
    const { id, owner, admin } = await org()
    const ids = (await people(30)).map((person) => person.id)
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => addMembers(i % 2 ? owner : admin, id, ids.slice(i, i + 20))),
    )
    const added = answers.flatMap(({ json }) => json.map((row: { user_id: number }) => row.user_id))
    assert.deepEqual(
      added.sort((a, b) => a - b),
      ids.slice(0, 29),
    )
  })
})
