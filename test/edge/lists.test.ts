import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEdgeAndDatabase } from './harness.ts'

const { api } = await startEdgeAndDatabase()
const admin = await api.register('admin@example.com')
for (const name of ['ann', 'bob', 'cyd', 'dan']) await api.register(`${name}@example.com`)

const get = (path: string) => api.get(`/api/v1/auth${path}`, { token: admin.token })

test('an array has the next page in a header until the last page', async () => {
  const emails: string[] = []
  let path: string | undefined = '/api/v1/auth/users?page_size=2&page=1'
  while (path !== undefined) {
    const answer = await api.get(path, { token: admin.token })
    assert.equal(answer.status, 200, answer.text)
    emails.push(...answer.json.map(({ email }: { email: string }) => email))
    path = /^<(.+)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1]
    assert.doesNotMatch(path ?? '', /[?&]page=/)
  }
  assert.deepEqual(
    emails,
    ['dan', 'cyd', 'bob', 'ann', 'admin'].map((name) => `${name}@example.com`),
  )
})

test('other lists have the next page in a field', async () => {
  const ids: number[] = []
  let next: string | null = ''
  while (next !== null) {
    const { json } = await get(`/audit?page_size=2&kind=account.registered${next && `&cursor=${next}`}`)
    assert.equal(json.total, 5)
    ids.push(...json.events.map(({ id }: { id: number }) => id))
    next = json.next
  }
  assert.equal(ids.length, 5)
  assert.deepEqual(
    ids,
    ids.toSorted((a, b) => b - a),
  )
})

test('`limit` is another name of `page_size`', async () => {
  const all = (await get('/audit')).json
  assert.equal(all.page_size, 50)
  for (const search of ['limit=2', 'page_size=2', 'limit=2&page_size=2', 'page_size=2&limit=2']) {
    const { status, json } = await get(`/audit?${search}&page=2`)
    assert.deepEqual([status, json.page, json.page_size], [200, 2, 2], search)
    assert.deepEqual(json.events, all.events.slice(2, 4), search)
  }
  // Both parameters together are rejected, even if one equals the default.
  for (const search of ['limit=50&page_size=2', 'limit=2&page_size=50']) {
    const { status, json } = await get(`/audit?${search}`)
    assert.deepEqual([status, json.errors[0].loc], [422, ['query', 'limit']], search)
  }
  for (const limit of ['0', '201', 'x', '']) assert.equal((await get(`/audit?limit=${limit}`)).status, 422)
  const first = await get('/users?limit=2')
  const [, next] = /^<(.+)>; rel="next"$/.exec(String(first.headers.link))!
  const second = await api.get(next!, { token: admin.token })
  assert.deepEqual(
    second.json.map(({ email }: { email: string }) => email),
    ['bob@example.com', 'ann@example.com'],
  )
})

const encodeCursor = (value: string): string => Buffer.from(value).toString('base64url')
for (const [what, cursor] of [
  ['nothing', ''],
  ['no base64url', '!!'],
  ['no JSON', encodeCursor('[1')],
  ['no array', encodeCursor('{"length":1,"0":1}')],
  ['too many values', encodeCursor('["2026-01-01T00:00:00Z",1,2]')],
  ['a value of another type', encodeCursor('["2026-01-01T00:00:00Z","5"]')],
  ['a time that no database has', encodeCursor('["0000-01-01T00:00:00Z",5]')],
  ['a time of a zone that no database has', encodeCursor('["2026-01-01T00:00:00+23:00",5]')],
  ['a number that is too large', encodeCursor('["2026-01-01T00:00:00Z",1e300]')],
  ['a very long one', encodeCursor(`[${'1'.repeat(2000)}]`)],
])
  test(`a cursor of ${what} is rejected`, async () => {
    const { status, json } = await get(`/audit?cursor=${cursor}`)
    assert.equal(status, 422)
    assert.deepEqual(json.errors[0].loc, ['query', 'cursor'])
  })

for (const [what, path, cursor, expected] of [
  ['NUL', 'blog/tags?', '["\\u0000","a"]', 422],
  ['half a character', 'blog/tags?', '["a","\\ud800"]', 422],
  ['a rank that is too large', 'documents?search=a&', '[1e300,1]', 422],
  ['a rank that is too small', 'documents?search=a&', '[1e-300,1]', 422],
  ['a part that the list does not have', 'jobs?', '[1e15,"2026-01-01T00:00:00Z",1]', 200],
] as const)
  test(`a cursor of ${what} causes no server error`, async () => {
    const { status } = await api.get(`/api/v1/${path}cursor=${encodeCursor(cursor)}`, { token: admin.token })
    assert.equal(status, expected)
  })

test('page numbers end at the count limit, and cursors go beyond it', async () => {
  assert.equal((await get('/audit?page=51&page_size=200')).status, 200)
  const { status, json } = await get('/audit?page=52&page_size=200')
  assert.equal(status, 422)
  assert.match(json.detail, /follow `next`/)
  const { next } = (await get('/audit?page_size=1')).json
  assert.equal((await get(`/audit?page=2&page_size=1&cursor=${next}`)).json.events.length, 1)
})
