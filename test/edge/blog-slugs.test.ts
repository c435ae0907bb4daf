import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertField, blogWorld } from './blog-help.ts'
import { assertRefused } from './orgs-help.ts'

const { call, editor, write, publish, query } = await blogWorld()

test('titles in any script give readable slugs, and equal ones are told apart by numbers', async () => {
  const slugs: Readonly<Record<string, string>> = {
    'Ünïcödé Straße': 'unicode-strasse',
    'Привет, мир': 'privet-mir',
    北京的春天: 'bei-jing-de-chun-tian',
    'Tiếng Việt': 'tieng-viet',
    "It's C++ & C#": 'its-c-plus-plus-and-c-sharp',
  }
  for (const [title, slug] of Object.entries(slugs)) assert.equal((await write({ title })).slug, slug, title)
  for (const title of ['🎉', '🎈', '...']) assert.match((await write({ title })).slug, /^post(-\d+)?$/)
  const same = []
  for (let i = 0; i < 4; i++) same.push((await write({ title: 'Same' })).slug)
  assert.deepEqual(same, ['same', 'same-2', 'same-3', 'same-4'])
  await call(
    editor,
    'DELETE',
    `/posts/${(await query(`select id from blog_post where slug = 'same-3'`))[0]!.id}`,
  )
  assert.equal((await write({ title: 'Same' })).slug, 'same-3')
  const long = 'word '.repeat(40)
  const [one, two] = [await write({ title: long }), await write({ title: long })]
  assert.ok(one.slug.length <= 220 && two.slug === `${one.slug}-2`, two.slug)
})

test('the same title twenty times at once gives twenty slugs', async () => {
  const posts = await Promise.all(Array.from({ length: 20 }, () => write({ title: 'At once' })))
  const slugs = new Set(posts.map(({ slug }) => slug))
  assert.deepEqual(
    [...slugs].sort(),
    ['at-once', ...Array.from({ length: 19 }, (_, i) => `at-once-${i + 2}`)].sort(),
  )
})

test('a slug that is asked for and taken is 409, of many at once one gets it', async () => {
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

test('a slug of which nothing is left is 422', async () => {
  const { id } = await write()
  for (const slug of ['', '!!!', '🎉', '題'.repeat(220)]) {
    assertField(await call(editor, 'POST', '/posts', { json: { title: 'T', slug } }), 'slug')
    assertField(await call(editor, 'PUT', `/posts/${id}`, { json: { slug } }), 'slug')
  }
})

test('a published post is read by its slug, which changes with it', async () => {
  const post = await publish({ title: 'Read me', content: 'x'.repeat(3000) })
  const answer = await call(null, 'GET', '/posts/read-me')
  assert.deepEqual([answer.status, answer.json], [200, post])
  await call(editor, 'PUT', `/posts/${post.id}`, { json: { slug: 'read-me-now' } })
  assertRefused(await call(null, 'GET', '/posts/read-me'), 404, 'Post not found')
  assert.equal((await call(null, 'GET', '/posts/read-me-now')).status, 200)
})
