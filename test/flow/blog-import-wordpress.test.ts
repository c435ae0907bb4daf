import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createCaller, importFile } from '../edge/blog-help.ts'
import { startEdgeAndDatabase } from '../edge/harness.ts'
import { launchProcess } from '../service.ts'

/** Imports an export of WordPress over HTTP. */

const { api, url } = await startEdgeAndDatabase({ env: { AUTH_LEVEL: 'none' } })
const call = createCaller(api)
const worker = await launchProcess('worker', url, {
  PROJECT_NAME: 'wordpress',
  WORKER_QUEUES: 'blog',
  WORKER_THREADS: '1',
})
after(() => worker.kill())

const createItem = (id: number, fields: Readonly<Record<string, string>> = {}, more = ''): string => {
  const all = {
    title: `Post ${id}`,
    'dc:creator': 'ann',
    'content:encoded': `<p>Text ${id}</p>`,
    'excerpt:encoded': '',
    'wp:post_id': String(id),
    'wp:post_date_gmt': '2020-01-02 03:04:05',
    'wp:post_modified_gmt': '2020-01-03 00:00:00',
    'wp:post_name': `post-${id}`,
    'wp:status': 'publish',
    'wp:post_type': 'post',
    'wp:post_password': '',
    ...fields,
  }
  const elements = Object.entries(all).map(([name, text]) => `<${name}><![CDATA[${text}]]></${name}>`)
  return `<item>${elements.join('\n')}${more}</item>`
}

const EXPORT = `<?xml version="1.0" encoding="UTF-8" ?>
<!-- generator="WordPress/6.4" -->
<rss version="2.0" xmlns:wp="http://wordpress.org/export/1.2/">
<channel><title>Site</title>
<wp:author><wp:author_login><![CDATA[ann]]></wp:author_login><wp:author_display_name><![CDATA[Ann B.]]></wp:author_display_name></wp:author>
${[
  createItem(
    1,
    {
      'content:encoded': '<!-- wp:paragraph {"a":1} -->\n<p>Text & <b>more</b></p>\n<!-- /wp:paragraph -->',
      'excerpt:encoded': 'Short',
    },
    `<category domain="category" nicename="ml"><![CDATA[Machine Learning]]></category>
     <category domain="post_tag" nicename="c-sharp"><![CDATA[C#]]></category>
     <category domain="post_format" nicename="post-format-aside"><![CDATA[Aside]]></category>
     <wp:postmeta><wp:meta_key><![CDATA[_thumbnail_id]]></wp:meta_key><wp:meta_value><![CDATA[9]]></wp:meta_value></wp:postmeta>
     <wp:comment><wp:comment_content><![CDATA[Hi]]></wp:comment_content></wp:comment>`,
  ),
  createItem(2, { 'wp:status': 'draft', 'wp:post_name': '', 'wp:post_date_gmt': '0000-00-00 00:00:00' }),
  createItem(3, { 'wp:status': 'future', 'wp:post_date_gmt': '2031-01-01 00:00:00' }),
  createItem(4, { 'wp:status': 'private' }),
  createItem(5, { 'wp:post_password': 'x' }),
  createItem(6, { 'wp:post_type': 'page' }),
  createItem(7, { 'wp:post_name': '%e6%97%a5%e6%9c%ac' }),
  createItem(9, { 'wp:post_type': 'attachment', 'wp:attachment_url': 'https://x.example/a.png' }),
].join('\n')}
</channel></rss>`

test('an export of WordPress is imported as it is', async () => {
  const answer = await importFile(api, null, 'site.WordPress.2020-01-02.xml', EXPORT)
  assert.equal(answer.status, 200, answer.text)
  const { errors, ...counts } = answer.json
  assert.deepEqual(counts, { created: 6, updated: 0, skipped: 2, failed: 0 })
  assert.deepEqual(
    errors.map(({ message }: { message: string }) => message),
    [6, 8].map((n) => `Item ${n}: Not a post: it is a page or an attachment`),
  )
  const { json } = await call(null, 'GET', '/export', { query: { format: 'json' } })
  assert.deepEqual(
    json.map(({ slug, status }: { slug: string; status: string }) => `${slug} ${status}`),
    [
      'post-1 published',
      'post-2 draft',
      'post-3 published',
      'post-4 draft',
      'post-5 draft',
      'ri-ben published',
    ],
  )
  assert.deepEqual(json[0], {
    title: 'Post 1',
    slug: 'post-1',
    excerpt: 'Short',
    content: '<p>Text & <b>more</b></p>\n',
    status: 'published',
    author_name: 'Ann B.',
    created_at: '2020-01-02T03:04:05.000Z',
    updated_at: '2020-01-03T00:00:00.000Z',
    published_at: '2020-01-02T03:04:05.000Z',
    seo_title: null,
    seo_description: null,
    hero_image_url: 'https://x.example/a.png',
    tag_slugs: ['c-sharp', 'ml'],
    tags: [
      { name: 'C#', slug: 'c-sharp' },
      { name: 'Machine Learning', slug: 'ml' },
    ],
  })
  const { posts } = (await call(null, 'GET', '/posts')).json
  assert.deepEqual(posts.map(({ slug }: { slug: string }) => slug).sort(), ['post-1', 'ri-ben'])
})

test('other XML is refused', async () => {
  for (const xml of ['', '<rss/>', '<html><wp:x/></html>', EXPORT.replaceAll('wp:', 'x:')])
    assert.equal((await importFile(api, null, 'x.xml', xml)).status, 400, xml.slice(0, 50))
})
