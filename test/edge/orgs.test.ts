import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runPurge } from '../purge.ts'
import { assertRefused, createOrgs, NOT_MEMBER, ORG_MISSING, OWNERS_ONLY, RANK_TOO_LOW } from './orgs-help.ts'

const { people, call, create, org, roles, trail, last, query, db } = await createOrgs()
const [root] = await people(1, 'admin')
const [moderator] = await people(1, 'moderator')
const ORG_FIELDS = ['created_at', 'description', 'id', 'is_active', 'name', 'slug', 'updated_at']
const namesOf = (answer: { json: { name: string }[] }) => answer.json.map(({ name }) => name)

describe('POST /orgs', () => {
  test('makes the caller the owner', async () => {
    const [owner] = await people(1)
    const answer = await call(owner!, 'POST', '', {
      json: { name: ' Acme, Inc. ', slug: 'acme', description: ' Anvils ', is_active: false },
    })
    assert.equal(answer.status, 201)
    const { id, created_at, ...fields } = answer.json
    assert.deepEqual(Object.keys(answer.json).sort(), ORG_FIELDS)
    assert.deepEqual(fields, {
      name: 'Acme, Inc.',
      slug: 'acme',
      description: 'Anvils',
      is_active: false,
      updated_at: null,
    })
    assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.deepEqual(await roles(id), { [owner!.id]: 'owner' })
    assert.deepEqual(await trail(id), [
      {
        kind: 'organization.created',
        actor_id: owner!.id,
        account_id: null,
        data: { slug: 'acme', name: 'Acme, Inc.' },
      },
    ])
  })

  test('only name and slug are required', async () => {
    const [owner] = await people(1)
    for (const more of [{}, { description: null }, { description: '' }]) {
      const slug = `only-${Object.keys(more).length}${JSON.stringify(more).length}`
      const answer = await call(owner!, 'POST', '', { json: { name: 'A', slug, ...more } })
      assert.deepEqual([answer.status, answer.json.description, answer.json.is_active], [201, null, true])
    }
  })

  test('accepts valid slugs', async () => {
    const [owner] = await people(1)
    for (const slug of ['a', '0', 'a-b', 'a--b', '1-2-3', 'all', 'z'.repeat(63)]) {
      const answer = await call(owner!, 'POST', '', { json: { name: 'A', slug } })
      assert.deepEqual([answer.status, answer.json.slug], [201, slug])
    }
  })

  test('rejects an invalid slug with 400', async () => {
    const [owner] = await people(1)
    const bad = [
      '',
      '-',
      '-a',
      'a-',
      'A',
      'Acme',
      'a b',
      ' a',
      'a ',
      'a_b',
      'a.b',
      'ä',
      'a\n',
      '日本',
      'z'.repeat(64),
    ]
    for (const slug of bad) {
      const answer = await call(owner!, 'POST', '', { json: { name: 'A', slug } })
      assertRefused(answer, 400, /^The slug must be 1 to 63 lowercase letters/)
    }
  })

  test('rejects a taken slug with 400, also under concurrent requests', async () => {
    const some = await people(10)
    const json = { name: 'A', slug: 'wanted' }
    const answers = await Promise.all(some.map((one) => call(one, 'POST', '', { json })))
    const made = answers.filter(({ status }) => status === 201)
    assert.equal(made.length, 1)
    for (const answer of answers.filter((one) => !made.includes(one)))
      assertRefused(answer, 400, 'An organization with this slug already exists')
    const [{ n }] = (await query(
      `select count(*)::int as n from organization_member where user_id = any($1)`,
      [some.map(({ id }) => id)],
    )) as [{ n: number }]
    assert.equal(n, 1, 'failed requests make no owner')
  })

  test('rejects invalid input with 422 and anonymous callers with 401', async () => {
    const [owner] = await people(1)
    const valid = { name: 'A', slug: 'valid' }
    const bad: object[] = [
      {},
      { name: 'A' },
      { slug: 'valid' },
      { ...valid, name: '  ' },
      { ...valid, name: 'n'.repeat(201) },
      { ...valid, name: 7 },
      { ...valid, slug: 7 },
      { ...valid, description: 'd'.repeat(2001) },
      { ...valid, is_active: 'yes' },
      { ...valid, owner_id: 1 },
    ]
    for (const json of bad) assertRefused(await call(owner!, 'POST', '', { json }), 422)
    assertRefused(await call(null, 'POST', '', { json: valid }), 401, 'Not authenticated')
    assert.equal((await call(owner!, 'POST', '', { json: valid })).status, 201)
  })

  test('takes effect once per Idempotency-Key', async () => {
    const [owner] = await people(1)
    const request = { json: { name: 'Once', slug: 'once' }, headers: { 'idempotency-key': 'k1' } }
    const [one, two] = [await call(owner!, 'POST', '', request), await call(owner!, 'POST', '', request)]
    assert.deepEqual([one.status, two.status, two.json], [201, 201, one.json])
  })
})

describe('organization lists', () => {
  test("GET /orgs returns the caller's organizations, newest first", async () => {
    const [one, other] = await people(2)
    const ids = [await create(one!, { name: 'first' }), await create(one!, { name: 'second' })]
    await create(other!, { name: 'not mine' })
    await query(
      `insert into organization_member (organization_id, user_id, role) values ($1, $2, 'member')`,
      [await create(other!, { name: 'joined' }), one!.id],
    )
    const answer = await call(one!, 'GET', '')
    assert.equal(answer.status, 200)
    assert.deepEqual(namesOf(answer), ['joined', 'second', 'first'])
    assert.deepEqual(answer.json[2], (await call(one!, 'GET', `/${ids[0]}`)).json)
    const page = await call(one!, 'GET', '', { query: { page: 2, page_size: 1 } })
    assert.deepEqual(namesOf(page), ['second'])
    assert.deepEqual((await call((await people(1))[0]!, 'GET', '')).json, [])
    assertRefused(await call(null, 'GET', ''), 401)
  })

  test('GET /orgs/all and /orgs/memberships are limited to system admins', async () => {
    const { id, owner, admin, member } = await org()
    const all = await call(root!, 'GET', '/all')
    assert.equal(all.status, 200)
    assert.equal(all.json[0].id, id, 'newest first')
    assert.deepEqual(Object.keys(all.json[0]).sort(), ORG_FIELDS)
    const memberships = await call(root!, 'GET', '/memberships')
    assert.equal(memberships.status, 200)
    const { slug, name } = all.json[0]
    const here = memberships.json.filter((row: { org_slug: string }) => row.org_slug === slug)
    assert.deepEqual(here, [
      { user_id: owner.id, org_name: name, org_slug: slug, role: 'owner' },
      { user_id: admin.id, org_name: name, org_slug: slug, role: 'admin' },
      { user_id: member.id, org_name: name, org_slug: slug, role: 'member' },
    ])
    const users = memberships.json.map((row: { user_id: number }) => row.user_id)
    assert.deepEqual(
      users,
      [...users].sort((a, b) => a - b),
      'by user',
    )
    for (const path of ['/all', '/memberships']) {
      for (const who of [owner, moderator!])
        assertRefused(await call(who, 'GET', path), 403, 'This requires the role admin')
      assertRefused(await call(null, 'GET', path), 401)
    }
  })

  test('page sizes range from 1 to 1000', async () => {
    const { id, owner } = await org()
    for (const path of ['', `/${id}/members`, `/${id}/members/details`, `/${id}/invites`]) {
      for (const query of [{ page: 0 }, { page_size: 0 }, { page_size: 1001 }, { page: 'x' }] as const)
        assertRefused(await call(owner, 'GET', path, { query: { ...query } }), 422)
      assert.deepEqual((await call(owner, 'GET', path, { query: { page: 11, page_size: 1000 } })).json, [])
    }
  })
})

describe('a single organization', () => {
  test('GET requires membership, even for system admins', async () => {
    const { id, owner, admin, member, outsider } = await org()
    for (const who of [owner, admin, member]) {
      const answer = await call(who, 'GET', `/${id}`)
      assert.deepEqual([answer.status, answer.json.id], [200, id])
    }
    for (const who of [outsider, root!, moderator!])
      assertRefused(await call(who, 'GET', `/${id}`), 403, NOT_MEMBER)
    assertRefused(await call(owner, 'GET', '/999999'), 404, ORG_MISSING)
    assertRefused(await call(null, 'GET', `/${id}`), 401)
  })

  test('PATCH by admins and owners changes name and description', async () => {
    const { id, owner, admin } = await org()
    const renamed = await call(admin, 'PATCH', `/${id}`, { query: { name: ' New ' } })
    assert.deepEqual([renamed.status, renamed.json.name, renamed.json.description], [200, 'New', null])
    assert.match(renamed.json.updated_at, /Z$/)
    assert.deepEqual(await last(id), {
      kind: 'organization.updated',
      actor_id: admin.id,
      account_id: null,
      data: { name: 'New' },
    })
    const described = await call(owner, 'PATCH', `/${id}`, { query: { description: 'D' } })
    assert.deepEqual([described.json.name, described.json.description], ['New', 'D'])
    const both = await call(owner, 'PATCH', `/${id}`, { query: { name: 'B', description: '' } })
    assert.deepEqual([both.json.name, both.json.description], ['B', null])
    assert.deepEqual((await last(id))!.data, { name: 'B', description: null })
  })

  test('PATCH without fields is 400, and with invalid values 422', async () => {
    const { id, owner } = await org()
    assertRefused(await call(owner, 'PATCH', `/${id}`), 400, 'No fields to update')
    assertRefused(await call(owner, 'PATCH', `/${id}`, { query: { is_active: 'false' } }), 422)
    for (const query of [{ name: '' }, { name: 'n'.repeat(201) }, { description: 'd'.repeat(2001) }])
      assertRefused(await call(owner, 'PATCH', `/${id}`, { query: query as Record<string, string> }), 422)
    assert.equal((await trail(id)).length, 1)
  })

  test('PATCH by owners only changes the slug and frees the previous one', async () => {
    const { id, owner, admin, member } = await org()
    const to = (slug: string, more = {}) => ({ query: { slug, ...more } })
    for (const who of [admin, member])
      assertRefused(await call(who, 'PATCH', `/${id}`, to('theirs', { name: 'N' })), 403, OWNERS_ONLY)
    const before = (await call(owner, 'GET', `/${id}`)).json
    const moved = await call(owner, 'PATCH', `/${id}`, to('moved'))
    assert.equal(moved.status, 200)
    assert.deepEqual({ ...moved.json, updated_at: null }, { ...before, slug: 'moved' })
    assert.deepEqual(await last(id), {
      kind: 'organization.updated',
      actor_id: owner.id,
      account_id: null,
      data: { slug: 'moved' },
    })
    assert.equal((await call(owner, 'PATCH', `/${id}`, to('moved', { name: 'Same slug' }))).status, 200)
    await create(member, { slug: before.slug })
  })

  test('PATCH rejects invalid and taken slugs, also under concurrent requests', async () => {
    const some = await Promise.all(Array.from({ length: 8 }, () => org()))
    const [{ id, owner }] = some as [(typeof some)[0]]
    for (const slug of ['', '-a', 'a-', 'Acme', 'a b', 'a\n', 'z'.repeat(64)])
      assertRefused(
        await call(owner, 'PATCH', `/${id}`, { query: { slug, name: 'Not either' } }),
        400,
        /^The slug must be 1 to 63 lowercase letters/,
      )
    assertRefused(await call(owner, 'PATCH', `/${id}`, { query: { slug: 'z'.repeat(1001) } }), 422)
    const query = { slug: 'sought' }
    const answers = await Promise.all(some.map((one) => call(one.owner, 'PATCH', `/${one.id}`, { query })))
    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    for (const answer of answers.filter(({ status }) => status !== 200))
      assertRefused(answer, 400, 'An organization with this slug already exists')
    assert.equal(
      (await call(owner, 'GET', `/${id}`)).json.name,
      'Acme',
      'nothing of a refused change is done',
    )
  })

  test('two organizations that swap slugs concurrently are both rejected without a deadlock', async () => {
    const [one, two] = [await org(), await org()]
    const slugs = await Promise.all(
      [one, two].map(async (at) => (await call(at.owner, 'GET', `/${at.id}`)).json.slug),
    )
    const answers = await Promise.all([
      call(one.owner, 'PATCH', `/${one.id}`, { query: { slug: slugs[1] } }),
      call(two.owner, 'PATCH', `/${two.id}`, { query: { slug: slugs[0] } }),
    ])
    for (const answer of answers) assertRefused(answer, 400, 'An organization with this slug already exists')
  })

  test('DELETE by owners removes memberships and invites, too', async () => {
    const { id, owner } = await org()
    await call(owner, 'POST', `/${id}/invites`, { json: { email: 'gone@example.com' } })
    const answer = await call(owner, 'DELETE', `/${id}`)
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assertRefused(await call(owner, 'GET', `/${id}`), 404, ORG_MISSING)
    assertRefused(await call(owner, 'DELETE', `/${id}`), 404, ORG_MISSING)
    await runPurge(db)
    assert.deepEqual(await roles(id), {})
    assert.deepEqual(await query('select id from organization_invite where organization_id = $1', [id]), [])
    assert.equal((await last(id))!.kind, 'organization.deleted')
  })

  test('checks for an unknown organization, membership and rank, in this order', async () => {
    const { id, admin, member, outsider, owner } = await org()
    const routes = [
      ['PATCH', '', RANK_TOO_LOW, { query: { name: 'x' } }],
      ['DELETE', '', OWNERS_ONLY, {}],
      ['POST', '/transfer-ownership', OWNERS_ONLY, { json: { user_id: admin.id } }],
    ] as const
    for (const [method, path, low, request] of routes) {
      assertRefused(await call(outsider, method, `/999999${path}`, request), 404, ORG_MISSING)
      assertRefused(await call(outsider, method, `/${id}${path}`, request), 403, NOT_MEMBER)
      assertRefused(await call(root!, method, `/999999${path}`, request), 404, ORG_MISSING)
      assertRefused(await call(member, method, `/${id}${path}`, request), 403, low)
      if (low === OWNERS_ONLY) assertRefused(await call(admin, method, `/${id}${path}`, request), 403, low)
      assertRefused(await call(null, method, `/${id}${path}`, request), 401)
      for (const bad of ['0', '-1', 'x', '99999999999'])
        assertRefused(await call(owner, method, `/${bad}${path}`, request), 422)
    }
    assert.equal((await trail(id)).length, 1, 'nothing was done')
  })
})

describe('POST /orgs/{org_id}/transfer-ownership', () => {
  test('makes the caller an admin and the target an owner', async () => {
    const { id, owner, admin, member } = await org()
    const answer = await call(owner, 'POST', `/${id}/transfer-ownership`, { json: { user_id: member.id } })
    assert.deepEqual([answer.status, answer.json], [200, { detail: 'The ownership has been transferred' }])
    assert.deepEqual(await roles(id), { [owner.id]: 'admin', [admin.id]: 'admin', [member.id]: 'owner' })
    assert.deepEqual(await last(id), {
      kind: 'organization.ownership_transferred',
      actor_id: owner.id,
      account_id: member.id,
      data: { from: 'member', to: 'owner', former_owners: [owner.id] },
    })
    assertRefused(
      await call(owner, 'POST', `/${id}/transfer-ownership`, { json: { user_id: admin.id } }),
      403,
      OWNERS_ONLY,
    )
  })

  test('to a co-owner leaves other roles unchanged', async () => {
    const { id, owner, admin, member } = await org()
    for (const one of [admin, member])
      await call(owner, 'PATCH', `/${id}/members/${one.id}`, { query: { role: 'owner' } })
    const answer = await call(owner, 'POST', `/${id}/transfer-ownership`, { json: { user_id: member.id } })
    assert.equal(answer.status, 200)
    assert.deepEqual(await roles(id), { [owner.id]: 'admin', [admin.id]: 'owner', [member.id]: 'owner' })
  })

  test('to oneself, an outsider or a missing user is 400', async () => {
    const { id, owner, outsider } = await org()
    const to = (user_id: unknown) => call(owner, 'POST', `/${id}/transfer-ownership`, { json: { user_id } })
    assertRefused(await to(owner.id), 400, 'You cannot transfer ownership to yourself')
    for (const target of [outsider.id, 999_999])
      assertRefused(await to(target), 400, 'Ownership can only be transferred to a member')
    for (const target of ['1', 0, 1.5, null, 2 ** 31]) assertRefused(await to(target), 422)
    assert.equal((await roles(id))[owner.id], 'owner')
  })
})
