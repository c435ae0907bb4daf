import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCast } from './accounts-help.ts'
import { startEdgeAndDatabase } from './harness.ts'

/** Searches accounts by part of the email address or name, role, state and creation time. */

const { api, query } = await startEdgeAndDatabase()
const { admin, moderator } = await createCast(api)
const people = {
  zoe: ['zoe.lopez@example.com', 'Zoë López'],
  jo: ['jo@x.io', 'Jo'],
  per: ['so_sure@example.com', 'Per 100%_Cent'],
  ann: ['ann.o-neil@example.org', "Ann O'Neil"],
  nameless: ['nameless@example.org', null],
} as const
for (const [email, name] of Object.values(people)) {
  const { id, token } = await api.register(email)
  if (name !== null)
    await api.call('PATCH', `/api/v1/auth/users/${id}?full_name=${encodeURIComponent(name)}`, { token })
}

const listEmails = async (search: string, token = moderator.token): Promise<string[]> => {
  const { status, json, text } = await api.get(`/api/v1/auth/users?${search}`, { token })
  assert.equal(status, 200, text)
  return json.map(({ email }: { email: string }) => email)
}
const searchEmails = (search: string): Promise<string[]> => listEmails(`search=${encodeURIComponent(search)}`)

test('finds a part of the address or name, ignoring case and accents', async () => {
  for (const [search, ...who] of [
    ['lopez', 'zoe'],
    ['LÓPEZ', 'zoe'],
    ['oe lop', 'zoe'],
    ['zoë.lop', 'zoe'],
    ['jo@', 'jo'],
    ['@x.io', 'jo'],
    [' jo@x.io ', 'jo'],
    ["o'ne", 'ann'],
    ['o-ne', 'ann'],
    ['.org', 'nameless', 'ann'],
    ['nil'],
  ] as const)
    assert.deepEqual(
      await searchEmails(search),
      who.map((one) => people[one][0]),
      search,
    )
})

test('treats wildcard characters literally', async () => {
  assert.deepEqual(await searchEmails('100%_C'), [people.per[0]])
  for (const search of ['pe%ce', 'j_@x.io', 'ann%neil', 'lo\\pez', 'jo@x.io\\', '％00'])
    assert.deepEqual(await searchEmails(search), [], search)
})

test('does not match across the end of an address and the start of a name', async () => {
  for (const search of ['comzoe', 'com zoe', 'com Zoë'])
    assert.deepEqual(await searchEmails(search), [], search)
})

test('requires three characters, two of them adjacent letters or digits', async () => {
  for (const search of ['', '  ', 'ab', ' ab ', '...', 'a.b', '%%%', 'x'.repeat(201)]) {
    const { status, json } = await api.get(`/api/v1/auth/users?search=${encodeURIComponent(search)}`, {
      token: admin.token,
    })
    assert.deepEqual([status, json.errors?.[0].loc], [422, ['query', 'search']], search)
  }
})

test('filters by role and state, also combined with a search', async () => {
  assert.deepEqual(await listEmails('role=moderator'), ['moderator@example.com'])
  assert.deepEqual(await listEmails('role=admin&is_active=true'), ['admin@example.com'])
  assert.deepEqual(await listEmails('role=admin&search=org'), [])
  const [ann] = await query('select id from account where email = $1', [people.ann[0]])
  await api.call('PATCH', `/api/v1/auth/users/${ann!.id}/deactivate`, { token: admin.token })
  assert.deepEqual(await listEmails('is_active=false'), [people.ann[0]])
  assert.deepEqual(await listEmails('is_active=false&role=moderator'), [])
  assert.deepEqual(await listEmails('is_active=false&search=neil&sort=email'), [people.ann[0]])
  assert.deepEqual(await listEmails('is_active=true&search=.org'), [people.nameless[0]])
  for (const [search, field] of [
    ['role=owner', 'role'],
    ['role=', 'role'],
    ['is_active=perhaps', 'is_active'],
  ] as const) {
    const { status, json } = await api.get(`/api/v1/auth/users?${search}`, { token: admin.token })
    assert.deepEqual([status, json.errors[0].loc], [422, ['query', field]], search)
  }
})

test('finds the new name after a change, and not the old one', async () => {
  const [{ id }] = (await query('select id from account where email = $1', [people.jo[0]])) as [
    { id: number },
  ]
  const rename = (name: string) =>
    api.call('PATCH', `/api/v1/auth/users/${id}?full_name=${encodeURIComponent(name)}`, {
      token: admin.token,
    })
  await rename('Josephine Renamed')
  assert.deepEqual(
    [await searchEmails('renamed'), await searchEmails('josephine r')],
    [[people.jo[0]], [people.jo[0]]],
  )
  await rename('')
  assert.deepEqual([await searchEmails('renamed'), await searchEmails('jo@')], [[], [people.jo[0]]])
})

test('never finds deleted accounts', async () => {
  const { id } = await api.register('leaver@example.com')
  assert.deepEqual(await searchEmails('leaver'), ['leaver@example.com'])
  await api.call('DELETE', `/api/v1/auth/users/${id}`, { token: admin.token })
  assert.equal((await query('select from account where id = $1 and deleted_at is not null', [id])).length, 1)
  assert.deepEqual(await searchEmails('leaver'), [])
  const everybody = await query('select email from account where deleted_at is null order by id desc')
  for (const search of ['', 'sort=-created_at', 'sort=email', 'sort=last_login', 'sort=-last_login']) {
    const emails = await listEmails(search)
    assert.deepEqual(new Set(emails), new Set(everybody.map(({ email }) => email)), search)
  }
  assert.ok(!(await listEmails('is_active=false')).some((email) => email === null))
})

test('sorts accounts that never signed in as if they had signed in first', async () => {
  await query('update account set last_login = now() where deleted_at is null')
  await query('update account set last_login = null where email = any($1)', [[people.per[0], people.zoe[0]]])
  const order = await listEmails('sort=-last_login')
  assert.deepEqual(order.slice(-2), [people.per[0], people.zoe[0]])
  assert.deepEqual(await listEmails('sort=last_login'), order.toReversed())
})
