import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RETAG_BATCH_SIZE } from '../../sql/blog/posts.ts'
import { until } from '../until.ts'
import { createBlog } from './blog-help.ts'
import { assertRefused } from './orgs-help.ts'
import { startOwnWorker } from './own-worker.ts'

/** Tests tags with more posts than one transaction changes. */

const POST_COUNT = RETAG_BATCH_SIZE + 300

const { call, editor, tag, query, url } = await createBlog()
let count = 0

/** Creates a tag with many published posts. */
async function createBigTag(): Promise<{ id: number; slug: string; name: string }> {
  const made = await tag(`Big ${++count}`)
  await query(
    `with made as (insert into blog_post (title, slug, status, published_at)
       select 'P', $2 || '-' || n, 'published', now() from generate_series(1, $3) n returning id)
     insert into blog_post_tag (post_id, tag_id) select id, $1 from made`,
    [made.id, made.slug, POST_COUNT],
  )
  return made
}
const countPostsShowing = async (name: string): Promise<number> =>
  (await query(`select 1 from blog_post where tags like $1`, [`%"${name}"%`])).length
const readRetagJobs = () =>
  query(`select status, owner_id, queue from job where name = 'blog.retag' order by id`)

test('a renamed tag changes immediately in its first posts, and a job updates the others', async () => {
  const { id, name, slug } = await createBigTag()
  const put = await call(editor, 'PUT', `/tags/${id}`, { json: { name: 'Renamed', slug: 'renamed' } })
  assert.deepEqual([put.status, put.json.name, put.json.slug], [200, 'Renamed', 'renamed'])
  assert.equal((await call(null, 'GET', '/posts', { query: { tag: 'renamed' } })).json.total, POST_COUNT)
  assert.equal((await call(null, 'GET', '/posts', { query: { tag: slug } })).json.total, 0)
  assert.deepEqual(
    [await countPostsShowing('Renamed'), await countPostsShowing(name)],
    [RETAG_BATCH_SIZE, POST_COUNT - RETAG_BATCH_SIZE],
  )
  assert.deepEqual(await readRetagJobs(), [{ status: 'available', owner_id: null, queue: 'system' }])
})

test('a deleted tag disappears immediately, frees its names and leaves its first posts', async () => {
  const { id, name, slug } = await createBigTag()
  assert.equal((await call(editor, 'DELETE', `/tags/${id}`)).status, 204)
  assertRefused(await call(editor, 'DELETE', `/tags/${id}`), 404, 'Tag not found')
  assertRefused(await call(editor, 'PUT', `/tags/${id}`, { json: { name: 'Back' } }), 404, 'Tag not found')
  const { tags, total } = (await call(null, 'GET', '/tags')).json
  assert.deepEqual([tags.some((one: { id: number }) => one.id === id), total], [false, tags.length])
  assert.equal((await call(null, 'GET', '/posts', { query: { tag: slug } })).json.total, 0)
  assert.equal(await countPostsShowing(name), POST_COUNT - RETAG_BATCH_SIZE)
  const exported = (await call(editor, 'GET', '/export', { query: { format: 'json' } })).json
  assert.ok(!exported.some((post: { tag_slugs: string[] }) => post.tag_slugs.includes(slug)))
  assert.notEqual((await tag(name, slug)).id, id)
})

test('a tag with few posts needs no job', async () => {
  const before = await readRetagJobs()
  const { id } = await tag('Few')
  await query(
    `insert into blog_post_tag (post_id, tag_id) select id, $1 from blog_post order by id desc limit $2`,
    [id, RETAG_BATCH_SIZE - 1],
  )
  await call(editor, 'PUT', `/tags/${id}`, { json: { name: 'A few' } })
  assert.deepEqual(
    [await countPostsShowing('Few'), await countPostsShowing('A few')],
    [0, RETAG_BATCH_SIZE - 1],
  )
  await call(editor, 'DELETE', `/tags/${id}`)
  assert.equal(await countPostsShowing('A few'), 0)
  assert.deepEqual(await readRetagJobs(), before)
})

test('the jobs complete the changes of the requests', async () => {
  await startOwnWorker(url, 'system', {})
  await until('the jobs are done', async () =>
    (await readRetagJobs()).every(({ status }) => status === 'done'),
  )
  assert.equal(await countPostsShowing('Renamed'), POST_COUNT)
  assert.equal(await countPostsShowing('Big 2'), 0)
  assert.deepEqual(await query('select 1 from blog_tag where applied_to is not null'), [])
})
