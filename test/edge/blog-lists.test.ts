import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertCounted, createBlog } from './blog-help.ts'
import { assertRefused } from './orgs-help.ts'

const { call, editor, write, publish, tag, query } = await createBlog()

interface ListedPost {
  readonly id: number
  readonly title: string
  readonly status: string
  readonly tags: readonly { readonly slug: string }[]
}

const list = async (path: string, given: Record<string, string | number> = {}) => {
  const answer = await call(path === '/posts' ? null : editor, 'GET', path, { query: given })
  assert.equal(answer.status, 200, answer.text)
  return answer.json as {
    posts: ListedPost[]
    total: number
    total_is_exact: boolean
    page: number
    page_size: number
  }
}
const titlesOf = ({ posts }: { posts: readonly ListedPost[] }) => posts.map(({ title }) => title)

test('an empty blog has empty lists', async () => {
  const none = { total: 0, total_is_exact: true, page: 1, next: null }
  const empty = { ...none, posts: [], page_size: 20 }
  assert.deepEqual(await list('/posts'), empty)
  assert.deepEqual(await list('/admin/posts'), empty)
  assert.deepEqual((await call(null, 'GET', '/tags')).json, { ...none, tags: [], page_size: 1000 })
})

test('published posts are sorted by publication, all posts by creation', async () => {
  for (const name of ['Red', 'Blue']) await tag(name)
  const posts: ListedPost[] = []
  for (let i = 1; i <= 5; i++)
    posts.push(await write({ title: `P${i}`, tag_slugs: i % 2 ? ['red', 'blue'] : ['blue'] }))
  for (const i of [3, 1, 4]) await call(editor, 'POST', `/posts/${posts[i - 1]!.id}/publish`)
  await call(editor, 'POST', `/posts/${posts[4]!.id}/archive`)
  assert.deepEqual(titlesOf(await list('/posts')), ['P4', 'P1', 'P3'])
  assert.deepEqual(titlesOf(await list('/admin/posts')), ['P5', 'P4', 'P3', 'P2', 'P1'])
  assert.equal((await list('/posts')).total, 3)
  assert.equal((await list('/admin/posts')).total, 5)
  const [first] = (await list('/posts')).posts
  assert.deepEqual(first, (await call(null, 'GET', '/posts/p4')).json, 'as the post by itself')
})

test('lists filter by status and tag', async () => {
  const of = async (path: string, given: Record<string, string>) => {
    const found = await list(path, given)
    assert.equal(found.total, found.posts.length)
    return titlesOf(found)
  }
  assert.deepEqual(await of('/posts', { tag: 'red' }), ['P1', 'P3'])
  assert.deepEqual(await of('/posts', { tag: 'blue' }), ['P4', 'P1', 'P3'])
  assert.deepEqual(await of('/posts', { tag: 'nowhere' }), [])
  assert.deepEqual(await of('/admin/posts', { status: 'draft' }), ['P2'])
  assert.deepEqual(await of('/admin/posts', { status: 'archived' }), ['P5'])
  assert.deepEqual(await of('/admin/posts', { status: 'published' }), ['P4', 'P3', 'P1'])
  assert.deepEqual(await of('/admin/posts', { tag: 'red' }), ['P5', 'P3', 'P1'])
  assert.deepEqual(await of('/admin/posts', { tag: 'red', status: 'archived' }), ['P5'])
  assert.deepEqual(await of('/admin/posts', { tag: 'blue', status: 'draft' }), ['P2'])
})

test('lists have pages', async () => {
  for (const [path, all] of [
    ['/posts', ['P4', 'P1', 'P3']],
    ['/admin/posts', ['P5', 'P4', 'P3', 'P2', 'P1']],
  ] as const) {
    for (let page = 1; page <= 4; page++) {
      const found = await list(path, { page, page_size: 2 })
      assert.deepEqual(titlesOf(found), all.slice(2 * page - 2, 2 * page))
      assert.deepEqual(
        [found.total, found.total_is_exact, found.page, found.page_size],
        [all.length, true, page, 2],
      )
    }
    assert.equal((await list(path, { page_size: 100 })).page_size, 100)
    assert.deepEqual(titlesOf(await list(path, { page: 101, page_size: 100 })), [])
  }
})

test('numbers out of range and unknown statuses are 422', async () => {
  for (const path of ['/posts', '/admin/posts']) {
    for (const given of [
      { page: 0 },
      { page: -1 },
      { page: 'x' },
      { page_size: 0 },
      { page_size: 101 },
      { page: 1_000_001 },
      { tag: 'x'.repeat(101) },
    ])
      assertRefused(await call(editor, 'GET', path, { query: given as Record<string, string> }), 422)
  }
  assertRefused(await call(editor, 'GET', '/admin/posts', { query: { status: 'gone' } }), 422)
})

test('tags can be created, listed by name, renamed and deleted, which updates their posts', async () => {
  const made = await tag('Zebra & Lion')
  const { id, created_at, ...rest } = made
  assert.deepEqual(rest, { name: 'Zebra & Lion', slug: 'zebra-and-lion' })
  assert.match(created_at, /Z$/)
  await tag('apple', 'Der Apfel')
  const listed = (await call(null, 'GET', '/tags')).json
  assert.deepEqual(
    listed.tags.map(({ name }: { name: string }) => name),
    ['apple', 'Blue', 'Red', 'Zebra & Lion'],
  )
  assert.equal(listed.total, 4)
  assert.equal(listed.tags[0].slug, 'der-apfel')
  const post = await publish({ tag_slugs: ['der-apfel', 'zebra-and-lion'] })
  const put = await call(editor, 'PUT', `/tags/${id}`, { json: { name: 'Ape', slug: 'Ape House' } })
  assert.deepEqual([put.status, put.json], [200, { ...made, name: 'Ape', slug: 'ape-house' }])
  for (const json of [{}, { name: null, slug: null }])
    assert.deepEqual((await call(editor, 'PUT', `/tags/${id}`, { json })).json, put.json)
  const tagsOf = async () => (await call(null, 'GET', `/posts/${post.slug}`)).json.tags
  assert.deepEqual(
    (await tagsOf()).map(({ slug }: { slug: string }) => slug),
    ['ape-house', 'der-apfel'],
  )
  assert.deepEqual((await tagsOf())[0], put.json)
  const gone = await call(editor, 'DELETE', `/tags/${id}`)
  assert.deepEqual([gone.status, gone.text], [204, ''])
  assert.deepEqual(
    (await tagsOf()).map(({ slug }: { slug: string }) => slug),
    ['der-apfel'],
  )
  for (const [method, json] of [
    ['DELETE', undefined],
    ['PUT', { name: 'x' }],
  ] as const)
    assertRefused(await call(editor, method, `/tags/${id}`, { json }), 404, 'Tag not found')
})

test('tag names and slugs are unique', async () => {
  const one = await tag('Once', 'once-only')
  const two = await tag('Twice')
  for (const json of [{ name: 'Once' }, { name: 'Once', slug: 'free' }])
    assertRefused(await call(editor, 'POST', '/tags', { json }), 409, 'A tag with this name already exists')
  for (const json of [{ name: 'Other', slug: 'once only' }, { name: 'Once only' }])
    assertRefused(await call(editor, 'POST', '/tags', { json }), 409, 'A tag with this slug already exists')
  assertRefused(await call(editor, 'PUT', `/tags/${two.id}`, { json: { name: 'Once' } }), 409)
  assertRefused(await call(editor, 'PUT', `/tags/${two.id}`, { json: { slug: 'once-only' } }), 409)
  assert.equal(
    (await call(editor, 'PUT', `/tags/${one.id}`, { json: { name: 'Once', slug: 'once-only' } })).status,
    200,
  )
})

test('tag names and slugs of maximum length are accepted and longer ones are 422', async () => {
  const { id } = await tag('Long')
  const max = { name: 80, slug: 100 }
  for (const [field, length] of Object.entries(max)) {
    const given = (n: number) => ({ name: `N${field}`, [field]: 'x'.repeat(n) })
    assert.equal((await call(editor, 'POST', '/tags', { json: given(length) })).status, 201)
    assertRefused(await call(editor, 'POST', '/tags', { json: given(length + 1) }), 422)
    assertRefused(await call(editor, 'PUT', `/tags/${id}`, { json: given(length + 1) }), 422)
  }
  const wide = (await call(editor, 'POST', '/tags', { json: { name: '\u{1F600}題'.repeat(40) } })).json
  assert.ok(wide.slug.length <= 100)
  for (const json of [
    {},
    { name: '' },
    { name: ' ' },
    { name: null },
    { name: 1 },
    { name: 'a\0' },
    { name: 'a', colour: 1 },
    { name: 'a', slug: '!' },
  ])
    assertRefused(await call(editor, 'POST', '/tags', { json }), 422)
  for (const json of [{ name: '' }, { slug: '' }, { slug: '!' }])
    assertRefused(await call(editor, 'PUT', `/tags/${id}`, { json }), 422)
  for (const path of ['/tags/0', '/tags/x']) assertRefused(await call(editor, 'DELETE', path), 422)
})

test('the list of tags is limited, but its total counts all', async () => {
  await query(
    `insert into blog_tag (name, slug) select 'many ' || n, 'many-' || n from generate_series(1, 1000) n`,
  )
  const { tags, total } = (await call(null, 'GET', '/tags')).json
  assert.equal(tags.length, 1000)
  assert.ok(total > 1000)
})

test('list counts equal the rows after concurrent changes', async () => {
  const ids: number[] = []
  const one = async (i: number): Promise<void> => {
    const { id } = await write({ title: `At once ${i}` })
    ids.push(id)
    if (i % 2) await call(editor, 'POST', `/posts/${id}/publish`)
    if (i % 3 === 0) await call(editor, 'POST', `/posts/${id}/archive`)
    if (i % 5 === 0) await call(editor, 'DELETE', `/posts/${id}`)
  }
  await Promise.all(Array.from({ length: 60 }, (_, i) => one(i)))
  await assertCounted(query)
  await query('begin; delete from blog_post; rollback').catch(() => [])
  await assertCounted(query)
  // A single write merges all remaining count rows of each status.
  const { id } = await publish({ title: 'Alone' })
  await call(editor, 'POST', `/posts/${id}/archive`)
  await assertCounted(query)
  const left = await query('select status from blog_post_count order by status')
  assert.deepEqual(left, [{ status: 'archived' }, { status: 'draft' }, { status: 'published' }])
})

test('a tag renamed while posts get it appears under its new name', async () => {
  const { id } = await tag('Moving')
  const posts = await Promise.all(Array.from({ length: 5 }, () => write()))
  await Promise.all([
    ...posts.map((post) => call(editor, 'PUT', `/posts/${post.id}`, { json: { tag_slugs: ['moving'] } })),
    ...[1, 2, 3].map((n) => call(editor, 'PUT', `/tags/${id}`, { json: { name: `Moving ${n}` } })),
  ])
  const [row] = await query('select name from blog_tag where id = $1', [id])
  for (const post of posts) {
    const { tags } = (await call(editor, 'PUT', `/posts/${post.id}`, { json: {} })).json
    assert.deepEqual(
      tags.map(({ name }: { name: string }) => name),
      [row!.name],
    )
  }
})
