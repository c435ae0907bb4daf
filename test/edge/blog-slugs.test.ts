import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertField, createSharedBlog } from './blog-help.ts'
import { assertRefused } from './orgs-help.ts'

const { call, editor, write, publish, tag } = await createSharedBlog()

test('titles in any script give readable slugs', async () => {
  const slugs: Readonly<Record<string, string>> = {
    'Ünïcödé Straße': 'unicode-strasse',
    'Привет, мир': 'privet-mir',
    北京的春天: 'bei-jing-de-chun-tian',
    'Tiếng Việt': 'tieng-viet',
    "It's C++ & C#": 'its-c-plus-plus-and-c-sharp',
    '🎉': 'post',
  }
  for (const [title, slug] of Object.entries(slugs)) assert.equal((await write({ title })).slug, slug, title)
  const { slug } = await write({ title: 'word '.repeat(40) })
  assert.ok(slug.length <= 220)
})

test('a taken slug derived from a title is 409 for posts and tags until it is free again', async () => {
  const refused = 'A post with this slug already exists'
  const first = await write({ title: 'Same' })
  for (const title of ['Same', ' same! ', 'Şame'])
    assertRefused(await call(editor, 'POST', '/posts', { json: { title } }), 409, refused)
  assertRefused(await call(editor, 'POST', '/posts', { json: { title: '🎈' } }), 409, refused)
  assert.equal((await write({ title: 'Same', slug: 'another' })).slug, 'another')
  await call(editor, 'DELETE', `/posts/${first.id}`)
  assert.equal((await write({ title: 'Same' })).slug, 'same')
  assert.equal((await tag('🎉')).slug, 'tag')
  assertRefused(await call(editor, 'POST', '/tags', { json: { name: '🎈' } }), 409)
})

test('one of ten concurrent posts with the same title is created', async () => {
  const json = { title: 'At once' }
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => call(editor, 'POST', '/posts', { json })),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, ...Array(9).fill(409)])
})

test('a requested slug that is taken is 409, and one of many concurrent requests gets it', async () => {
  const first = await write({ slug: 'taken' })
  const second = await write()
  assertRefused(
    await call(editor, 'POST', '/posts', { json: { title: 'T', slug: 'TAKEN' } }),
    409,
    'A post with this slug already exists',
  )
  assertRefused(await call(editor, 'PUT', `/posts/${second.id}`, { json: { slug: 'taken' } }), 409)
  assert.equal((await call(editor, 'PUT', `/posts/${first.id}`, { json: { slug: 'taken' } })).status, 200)
  const json = { title: 'T', slug: 'wanted' }
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => call(editor, 'POST', '/posts', { json })),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, ...Array(9).fill(409)])
})

test('a slug without any usable characters is 422', async () => {
  const { id } = await write()
  for (const slug of ['', '!!!', '🎉', '題'.repeat(220)]) {
    assertField(await call(editor, 'POST', '/posts', { json: { title: 'T', slug } }), 'slug')
    assertField(await call(editor, 'PUT', `/posts/${id}`, { json: { slug } }), 'slug')
  }
})

test('a published post can be read by its current slug, to which the former one leads', async () => {
  const post = await publish({ title: 'Read me', content: 'x'.repeat(3000) })
  const answer = await call(null, 'GET', '/posts/read-me')
  assert.deepEqual([answer.status, answer.json], [200, post])
  await call(editor, 'PUT', `/posts/${post.id}`, { json: { slug: 'read-me-now' } })
  assert.equal((await call(null, 'GET', '/posts/read-me')).headers.location, '/api/v1/blog/posts/read-me-now')
  assert.equal((await call(null, 'GET', '/posts/read-me-now')).status, 200)
})
