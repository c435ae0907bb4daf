import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  assertRefused,
  type Call,
  LAST_OWNER,
  LOW,
  MISSING,
  NOT_MEMBER,
  orgsWorld,
  type Person,
  RANK,
  ROLE,
} from './orgs-help.ts'

const { people, call, org, roles, trail, last, query } = await orgsWorld()
const [root] = await people(1, 'admin')
const add = (who: Person, id: number, user_id: number, role?: string) =>
  call(who, 'POST', `/${id}/members`, { query: { user_id, ...(role === undefined ? {} : { role }) } })
const bulk = (who: Person, id: number, user_ids: unknown, role?: unknown) =>
  call(who, 'POST', `/${id}/members/bulk`, { json: { user_ids, role } })
const promote = (who: Person, id: number, user: number, role: string) =>
  call(who, 'PATCH', `/${id}/members/${user}`, { query: { role } })
const remove = (who: Person, id: number, user: number | 'me') => call(who, 'DELETE', `/${id}/members/${user}`)

describe('lists of members', () => {
  test('GET members: every member sees all, as they joined', async () => {
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

  test('GET members/details: with addresses and names', async () => {
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

  test('of 1100 members, 1000 are on the first page', async () => {
    const { id, owner } = await org()
    await query(
      `with new as (insert into account (email, password_hash) select 'many' || n || '@example.com', 'x' from generate_series(1, 1097) n returning id)
       insert into organization_member (organization_id, user_id, role) select $1, id, 'member' from new`,
      [id],
    )
    for (const path of ['members', 'members/details']) {
      assert.equal((await call(owner, 'GET', `/${id}/${path}`)).json.length, 1000)
      assert.equal((await call(owner, 'GET', `/${id}/${path}`, { query: { page: 2 } })).json.length, 100)
    }
  })

  test('are for members', async () => {
    const { id, outsider } = await org()
    for (const path of ['members', 'members/details']) {
      assertRefused(await call(outsider, 'GET', `/999999/${path}`), 404, MISSING)
      for (const who of [outsider, root!])
        assertRefused(await call(who, 'GET', `/${id}/${path}`), 403, NOT_MEMBER)
      assertRefused(await call(null, 'GET', `/${id}/${path}`), 401)
    }
  })
})

describe('POST /orgs/{org_id}/members', () => {
  test('adds a user, as a member unless another role is asked for', async () => {
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

  test('a member is 400, an unknown user 404, an unknown role 400, no user 422', async () => {
    const { id, owner, member, outsider } = await org()
    assertRefused(await add(owner, id, member.id), 400, 'The user is already a member')
    assertRefused(await add(owner, id, 999_999), 404, 'User not found')
    for (const role of ['root', '', 'Owner', 'moderator'])
      assertRefused(await add(owner, id, outsider.id, role), 400, ROLE)
    assertRefused(await call(owner, 'POST', `/${id}/members`), 422)
    assertRefused(await call(owner, 'POST', `/${id}/members`, { query: { user_id: 'x' } }), 422)
    assert.equal((await trail(id)).length, 1)
  })

  test('nobody grants a role above the own one', async () => {
    const { id, admin, outsider } = await org()
    assertRefused(await add(admin, id, outsider.id, 'owner'), 403, RANK)
    assert.equal((await add(admin, id, outsider.id, 'admin')).status, 201)
  })

  test('the same user twenty times at once is added once', async () => {
    const { id, owner, admin, outsider } = await org()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => add(i % 2 ? owner : admin, id, outsider.id)),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, ...Array(19).fill(400)])
    assert.equal((await trail(id)).length, 2)
  })
})

describe('POST /orgs/{org_id}/members/bulk', () => {
  test('adds those who are no members yet, and answers them', async () => {
    const { id, owner, admin, member, outsider } = await org()
    const [one, two] = await people(2)
    const given = [two!.id, member.id, one!.id, outsider.id, two!.id, owner.id]
    const answer = await bulk(admin, id, given, 'admin')
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
    const again = await bulk(owner, id, given)
    assert.deepEqual([again.status, again.json], [201, []])
    assert.deepEqual((await bulk(owner, id, [])).json, [])
    assert.equal((await trail(id)).length, 4)
  })

  test('unknown ids are 400 that names them, and nobody is added', async () => {
    const { id, owner, outsider } = await org()
    const answer = await bulk(owner, id, [999_998, outsider.id, 888_888, 999_998])
    assertRefused(answer, 400, 'No users have these ids: 888888, 999998')
    assert.equal((await roles(id))[outsider.id], undefined)
    assert.equal((await trail(id)).length, 1)
  })

  test('an unknown role is 400, one above the own 403, what is no list of at most 1000 ids 422', async () => {
    const { id, owner, admin, outsider } = await org()
    assertRefused(await bulk(owner, id, [outsider.id], 'root'), 400, ROLE)
    assertRefused(await bulk(admin, id, [outsider.id], 'owner'), 403, RANK)
    const bad = [undefined, outsider.id, ['x'], [0], [1.5], [2 ** 31], Array(1001).fill(outsider.id)]
    for (const ids of bad) assertRefused(await bulk(owner, id, ids), 422)
    assertRefused(await bulk(owner, id, [outsider.id], 7), 422)
    const most = await bulk(owner, id, Array(1000).fill(outsider.id))
    assert.deepEqual([most.status, most.json.length], [201, 1])
  })

  test('overlapping lists at once add everybody once', async () => {
    const { id, owner, admin } = await org()
    const ids = (await people(30)).map((person) => person.id)
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => bulk(i % 2 ? owner : admin, id, ids.slice(i, i + 20))),
    )
    const added = answers.flatMap(({ json }) => json.map((row: { user_id: number }) => row.user_id))
    assert.deepEqual(
      added.sort((a, b) => a - b),
      ids.slice(0, 29),
    )
  })
})

describe('PATCH /orgs/{org_id}/members/{user_id}', () => {
  test('changes a role, up to the own one', async () => {
    const { id, owner, admin, member } = await org()
    const answer = await promote(admin, id, member.id, 'admin')
    assert.deepEqual([answer.status, answer.json.user_id, answer.json.role], [200, member.id, 'admin'])
    assert.deepEqual(await last(id), {
      kind: 'member.role_changed',
      actor_id: admin.id,
      account_id: member.id,
      data: { from: 'member', to: 'admin' },
    })
    assert.equal((await promote(admin, id, member.id, 'member')).json.role, 'member', 'admins touch admins')
    assert.equal((await promote(owner, id, member.id, 'owner')).json.role, 'owner', 'there may be two')
    assert.equal((await promote(owner, id, member.id, 'admin')).json.role, 'admin', 'owners touch owners')
    assert.equal((await promote(admin, id, admin.id, 'member')).json.role, 'member', 'also oneself')
  })

  test('to the role that it is, it changes nothing', async () => {
    const { id, owner } = await org()
    const answer = await promote(owner, id, owner.id, 'owner')
    assert.deepEqual([answer.status, answer.json.role], [200, 'owner'])
    assert.equal((await trail(id)).length, 1)
  })

  test('an unknown member is 404, an unknown role 400, none 422', async () => {
    const { id, owner, member, outsider } = await org()
    for (const user of [outsider.id, 999_999])
      assertRefused(await promote(owner, id, user, 'admin'), 404, 'Member not found')
    assertRefused(await promote(owner, id, member.id, 'root'), 400, ROLE)
    assertRefused(await call(owner, 'PATCH', `/${id}/members/${member.id}`), 422)
    assertRefused(await call(owner, 'PATCH', `/${id}/members/x`, { query: { role: 'admin' } }), 422)
  })

  test('admins make no owner, and touch none', async () => {
    const { id, owner, admin, member } = await org()
    assertRefused(await promote(admin, id, member.id, 'owner'), 403, RANK)
    assertRefused(await promote(admin, id, admin.id, 'owner'), 403, RANK)
    for (const role of ['owner', 'admin', 'member'])
      assertRefused(await promote(admin, id, owner.id, role), 403, RANK)
  })

  test('the last owner stays one; with a co-owner either may step down, and only one of them', async () => {
    const { id, owner, admin } = await org()
    for (const role of ['admin', 'member'])
      assertRefused(await promote(owner, id, owner.id, role), 403, LAST_OWNER)
    assert.equal((await trail(id)).length, 1)
    await promote(owner, id, admin.id, 'owner')
    const answers = await Promise.all([
      promote(owner, id, owner.id, 'member'),
      promote(admin, id, admin.id, 'member'),
    ])
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 403])
    assert.equal(Object.values(await roles(id)).filter((role) => role === 'owner').length, 1)
  })

  test('who was demoted a moment ago has no more to say', async () => {
    for (let round = 0; round < 10; round++) {
      const { id, owner, admin, member } = await org()
      const [demoted, granted] = await Promise.all([
        promote(owner, id, admin.id, 'member'),
        promote(admin, id, member.id, 'admin'),
      ])
      assert.equal(demoted.status, 200)
      const kinds = (await trail(id)).slice(1).map(({ actor_id }) => actor_id)
      // Whichever came first: after the demotion nothing of the admin's is done.
      assert.deepEqual(kinds, granted.status === 200 ? [admin.id, owner.id] : [owner.id])
    }
  })
})

describe('DELETE /orgs/{org_id}/members/{user_id}', () => {
  test('removes members and admins, also oneself', async () => {
    const { id, owner, admin, member } = await org()
    const answer = await remove(admin, id, member.id)
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assert.deepEqual(await last(id), {
      kind: 'member.removed',
      actor_id: admin.id,
      account_id: member.id,
      data: { role: 'member' },
    })
    assertRefused(await call(member, 'GET', `/${id}`), 403, NOT_MEMBER)
    assertRefused(await remove(admin, id, member.id), 404, 'Member not found')
    assert.equal((await remove(admin, id, admin.id)).status, 204)
    assert.deepEqual(await roles(id), { [owner.id]: 'owner' })
  })

  test('an owner is never removed, also by an owner, and also with co-owners', async () => {
    const { id, owner, admin, member } = await org()
    const detail = 'The owner cannot be removed; ownership must be transferred first'
    await promote(owner, id, member.id, 'owner')
    for (const who of [owner, admin, member])
      for (const target of [owner, member]) assertRefused(await remove(who, id, target.id), 403, detail)
    await promote(owner, id, member.id, 'admin')
    assert.equal((await remove(owner, id, member.id)).status, 204)
  })

  test('an unknown member is 404', async () => {
    const { id, owner, outsider } = await org()
    for (const user of [outsider.id, 999_999])
      assertRefused(await remove(owner, id, user), 404, 'Member not found')
    assert.equal((await call(owner, 'DELETE', `/${id}/members/details`)).status, 405)
    assertRefused(await call(owner, 'DELETE', `/${id}/members/x`), 422)
  })
})

describe('DELETE /orgs/{org_id}/members/me', () => {
  test('whoever is a member may leave', async () => {
    const { id, owner, admin, member } = await org()
    for (const [who, role] of [
      [admin, 'admin'],
      [member, 'member'],
    ] as const) {
      const answer = await remove(who, id, 'me')
      assert.deepEqual([answer.status, answer.text], [204, ''])
      assert.deepEqual(await last(id), {
        kind: 'member.left',
        actor_id: who.id,
        account_id: who.id,
        data: { role },
      })
      assertRefused(await remove(who, id, 'me'), 403, NOT_MEMBER)
    }
    assert.deepEqual(await roles(id), { [owner.id]: 'owner' })
  })

  test('an owner may when another one stays; of two at once one may', async () => {
    const { id, owner, admin } = await org()
    assertRefused(await remove(owner, id, 'me'), 403, LAST_OWNER)
    await promote(owner, id, admin.id, 'owner')
    const answers = await Promise.all([remove(owner, id, 'me'), remove(admin, id, 'me')])
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 403])
    assertRefused(answers.find(({ status }) => status === 403)!, 403, LAST_OWNER)
  })

  test('is 404 of nothing, 401 of nobody', async () => {
    const { id, owner } = await org()
    assertRefused(await call(owner, 'DELETE', '/999999/members/me'), 404, MISSING)
    assertRefused(await call(null, 'DELETE', `/${id}/members/me`), 401)
  })
})

test('refusals come in order: unknown, not a member, too low; then what is wrong with the request', async () => {
  const { id, owner, member, outsider, admin } = await org()
  const routes: readonly [method: string, path: string, request: Call][] = [
    ['POST', '/members', { query: { user_id: outsider.id, role: 'root' } }],
    ['POST', '/members/bulk', { json: { user_ids: [999_999], role: 'root' } }],
    ['PATCH', `/members/${owner.id}`, { query: { role: 'root' } }],
    ['DELETE', `/members/${owner.id}`, {}],
    ['DELETE', `/members/${admin.id}`, {}],
  ]
  for (const [method, path, request] of routes) {
    assertRefused(await call(outsider, method, `/999999${path}`, request), 404, MISSING)
    for (const who of [outsider, root!])
      assertRefused(await call(who, method, `/${id}${path}`, request), 403, NOT_MEMBER)
    assertRefused(await call(member, method, `/${id}${path}`, request), 403, LOW)
    assertRefused(await call(null, method, `/${id}${path}`, request), 401)
  }
  assert.equal((await trail(id)).length, 1, 'nothing was done')
})
