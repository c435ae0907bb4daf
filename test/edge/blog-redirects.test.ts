import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBlog, importFile } from './blog-help.ts'
import { assertRefused, createSlug } from './orgs-help.ts'
import { startOwnWorker } from './own-worker.ts'

/** Former slugs of posts that have been public redirect to the current ones. */

const { api, call, editor, write, publish, query, url } = await createBlog()
await startOwnWorker(url, 'blog', {})

const rename = async (id: number, slug: string) => {
  const answer = await call(editor, 'PUT', `/posts/${id}`, { json: { slug } })
  assert.equal(answer.status, 200, answer.text)
}
const read = (slug: string) => call(null, 'GET', `/posts/${slug}`)
async function assertRedirect(from: string, to: string): Promise<void> {
  const answer = await read(from)
  assert.deepEqual(
    [answer.status, answer.headers.location, answer.headers['cache-control'], answer.json],
    [301, `/api/v1/blog/posts/${to}`, 'no-cache', { slug: to }],
  )
}
const assertMissing = async (slug: string) => assertRefused(await read(slug), 404, 'Post not found')
const slugs = (count: number): string[] => Array.from({ length: count }, () => createSlug('moved'))

test('a renamed post is found by all its former slugs, each with one redirect', async () => {
  const [a, b, c] = slugs(3) as [string, string, string]
  const { id } = await publish({ slug: a })
  await rename(id, b)
  await assertRedirect(a, b)
  await rename(id, c)
  await assertRedirect(a, c)
  await assertRedirect(b, c)
  const head = await api.call('HEAD', `/api/v1/blog/posts/${a}`)
  assert.deepEqual([head.status, head.headers.location], [301, `/api/v1/blog/posts/${c}`])
  await rename(id, a)
  assert.equal((await read(a)).json.id, id)
  await assertRedirect(b, a)
  await assertRedirect(c, a)
})

test('a post that has not been public leaves no redirect', async () => {
  const [a, b, c] = slugs(3) as [string, string, string]
  const { id } = await write({ slug: a })
  await rename(id, b)
  await call(editor, 'POST', `/posts/${id}/publish`, { json: { published_at: '2100-01-01T00:00:00Z' } })
  await rename(id, c)
  await call(editor, 'POST', `/posts/${id}/publish`)
  for (const slug of [a, b]) await assertMissing(slug)
  assert.equal((await read(c)).status, 200)
})

test('only a public post is the target of a redirect', async () => {
  const [a, b] = slugs(2) as [string, string]
  const { id } = await publish({ slug: a })
  await call(editor, 'POST', `/posts/${id}/archive`)
  await rename(id, b)
  await assertMissing(a)
  await call(editor, 'POST', `/posts/${id}/publish`)
  await assertRedirect(a, b)
  await call(editor, 'DELETE', `/posts/${id}`)
  for (const slug of [a, b]) await assertMissing(slug)
  assert.deepEqual(await query('select from blog_redirect where slug = any($1)', [[a, b]]), [])
})

test('another post may take a former slug, which ends the redirect', async () => {
  const [a, b, c, d] = slugs(4) as [string, string, string, string]
  const { id } = await publish({ slug: a })
  await rename(id, b)
  await rename(id, c)
  const other = await write({ slug: a })
  await assertMissing(a)
  await assertRedirect(b, c)
  await rename(other.id, b)
  await assertMissing(b)
  await rename(id, d)
  const text = `---\ntitle: Imported\nslug: ${c}\ndate: 2020-01-01\n---\nText`
  assert.equal((await importFile(api, editor, 'post.md', text)).json.created, 1)
  assert.equal((await read(c)).json.title, 'Imported')
  assert.equal((await call(editor, 'PUT', `/posts/${id}`, { json: { slug: c } })).status, 409)
  assert.deepEqual(await query('select from blog_redirect where post_id = $1', [id]), [])
})

test('concurrent renames of a post and takers of its slug leave no slug with two meanings', async () => {
  const [a, b] = slugs(2) as [string, string]
  const { id } = await publish({ slug: a })
  await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      n % 3 === 2
        ? call(editor, 'POST', '/posts', { json: { title: 'Taker', slug: a } })
        : call(editor, 'PUT', `/posts/${id}`, { json: { slug: n % 2 ? a : b } }),
    ),
  )
  assert.deepEqual(await query('select p.slug from blog_post p join blog_redirect r on r.slug = p.slug'), [])
  const [{ slug }] = (await query('select slug from blog_post where id = $1', [id])) as [{ slug: string }]
  assert.equal((await read(slug)).json.id, id)
})
