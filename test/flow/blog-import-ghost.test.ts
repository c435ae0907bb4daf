import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createCaller, importFile } from '../edge/blog-help.ts'
import { startEdgeAndDatabase } from '../edge/harness.ts'
import { launchProcess } from '../service.ts'

/** Imports an export of Ghost over HTTP. */

const { api, url, query } = await startEdgeAndDatabase({ env: { AUTH_LEVEL: 'none' } })
const call = createCaller(api)
const worker = await launchProcess('worker', url, {
  PROJECT_NAME: 'ghost',
  WORKER_QUEUES: 'blog',
  WORKER_THREADS: '1',
})
after(() => worker.kill())

const createPost = (id: string, more: object = {}) => ({
  id,
  title: `Post ${id}`,
  slug: `post-${id}`,
  html: `<p>Text ${id}</p>`,
  type: 'post',
  status: 'published',
  visibility: 'public',
  created_at: '2020-01-01T00:00:00.000Z',
  updated_at: '2020-01-03T00:00:00.000Z',
  published_at: '2020-01-02T00:00:00.000Z',
  ...more,
})
const card = (markdown: string): string =>
  JSON.stringify({ version: '0.3.1', cards: [['markdown', { markdown }]], sections: [[10, 0]] })

const DATA = {
  posts: [
    createPost('1', {
      html: '<p><img src="__GHOST_URL__/content/images/b.png"></p>',
      custom_excerpt: 'Short',
      feature_image: '__GHOST_URL__/content/images/a.png',
      lexical: '{"root":{}}',
    }),
    createPost('2', { status: 'draft', published_at: null, mobiledoc: card('*Markdown*') }),
    createPost('3', { status: 'scheduled', published_at: '2031-01-01T00:00:00.000Z' }),
    createPost('4', { visibility: 'members' }),
    createPost('5', { status: 'sent' }),
    createPost('6', { type: 'page' }),
    createPost('7', { status: 'unknown' }),
    createPost('8', { slug: 'post-1' }),
  ],
  posts_meta: [{ post_id: '1', meta_title: 'Meta', meta_description: 'Of it' }],
  tags: [
    { id: 't1', name: 'Machine Learning', slug: 'ml' },
    { id: 't2', name: '#internal', slug: 'hash-internal', visibility: 'internal' },
    { id: 't3', name: 'News', slug: 'news' },
  ],
  posts_tags: [
    { post_id: '1', tag_id: 't3', sort_order: 1 },
    { post_id: '1', tag_id: 't1', sort_order: 0 },
    { post_id: '1', tag_id: 't2', sort_order: 2 },
    { post_id: '1', tag_id: 'missing', sort_order: 3 },
  ],
  users: [
    { id: 'u1', name: 'Ann', slug: 'ann', email: 'ann@example.com' },
    { id: 'u2', name: 'Bob', slug: 'bob' },
  ],
  posts_authors: [
    { post_id: '1', author_id: 'u2', sort_order: 1 },
    { post_id: '1', author_id: 'u1', sort_order: 0 },
  ],
}

test('an export of Ghost is imported as it is, with tags, authors and pictures', async () => {
  for (const root of [{ db: [{ meta: { version: '5.0.0' }, data: DATA }] }, { meta: {}, data: DATA }]) {
    await query('delete from blog_post; delete from blog_tag')
    const answer = await importFile(api, null, 'ghost.json', JSON.stringify(root))
    assert.equal(answer.status, 200, answer.text)
    const { errors, ...counts } = answer.json
    assert.deepEqual(counts, { created: 5, updated: 0, skipped: 2, failed: 1 })
    assert.deepEqual(
      errors.map(({ slug, message }: { slug: string | null; message: string }) => [slug, message]),
      [
        [null, 'Item 6: Not a post: it is a page or an attachment'],
        ['post-7', 'Item 7: status: must be draft, published or archived'],
        ['post-1', 'Another post of this import has the same slug'],
      ],
    )
    const { json } = await call(null, 'GET', '/export', { query: { format: 'json' } })
    assert.deepEqual(
      json.map(({ slug, status }: { slug: string; status: string }) => `${slug} ${status}`),
      ['post-1 published', 'post-2 draft', 'post-3 published', 'post-4 draft', 'post-5 draft'],
    )
    assert.deepEqual(json[0], {
      title: 'Post 1',
      slug: 'post-1',
      excerpt: 'Short',
      content: '<p><img src="/content/images/b.png"></p>',
      status: 'published',
      author_name: 'Ann, Bob',
      created_at: '2020-01-01T00:00:00.000Z',
      updated_at: '2020-01-03T00:00:00.000Z',
      published_at: '2020-01-02T00:00:00.000Z',
      seo_title: 'Meta',
      seo_description: 'Of it',
      hero_image_url: '/content/images/a.png',
      tag_slugs: ['ml', 'news'],
      tags: [
        { name: 'Machine Learning', slug: 'ml' },
        { name: 'News', slug: 'news' },
      ],
    })
    assert.equal(json[1].content, '*Markdown*')
    const { posts } = (await call(null, 'GET', '/posts')).json
    assert.deepEqual(
      posts.map(({ slug }: { slug: string }) => slug),
      ['post-1'],
    )
  }
})

test('other JSON objects are refused', async () => {
  for (const value of [{}, { db: [] }, { db: [{ data: {} }] }, { data: { posts: {} } }, { db: 'x' }])
    assert.equal((await importFile(api, null, 'x.json', JSON.stringify(value))).status, 400)
  const odd = {
    data: { posts: [createPost('9', { html: 5 })], tags: 'x', posts_tags: [1, { post_id: '9' }] },
  }
  assert.equal((await importFile(api, null, 'x.json', JSON.stringify(odd))).json.created, 1)
})
