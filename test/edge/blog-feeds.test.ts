import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { parseAtomFeed, parseJsonFeed, parseRssFeed } from 'feedsmith'
import { createBlog } from './blog-help.ts'
import { startEdge } from './harness.ts'
import { assertRefused } from './orgs-help.ts'

/** Feeds and the sitemap show the newest public posts, in formats that other programs parse. */

const SITE = 'https://blog.example.com'
const { call, editor, write, publish, tag, query, url, api } = await createBlog({
  env: { BLOG_TITLE: 'Mill & <Wheel>', BLOG_POST_URL: `${SITE}/articles/{slug}?a=1&b=2` },
})
const plain = await startEdge(url)

const PATHS = ['/feed.xml', '/atom.xml', '/feed.json', '/sitemap.xml'] as const
const TYPES = {
  '/feed.xml': 'application/rss+xml; charset=utf-8',
  '/atom.xml': 'application/atom+xml; charset=utf-8',
  '/feed.json': 'application/feed+json; charset=utf-8',
  '/sitemap.xml': 'application/xml; charset=utf-8',
} as const

async function read(path: (typeof PATHS)[number], params: Record<string, string> = {}): Promise<string> {
  const answer = await call(null, 'GET', path, { query: params })
  assert.deepEqual([answer.status, answer.headers['content-type']], [200, TYPES[path]], answer.text)
  if (path !== '/feed.json') assert.equal(XMLValidator.validate(answer.text), true, answer.text)
  return answer.text
}
const readFeeds = async (params: Record<string, string> = {}) => ({
  rss: parseRssFeed(await read('/feed.xml', params)),
  atom: parseAtomFeed(await read('/atom.xml', params)),
  json: parseJsonFeed(await read('/feed.json', params)),
})
/** Returns the titles of the three feeds, which are equal. */
async function readTitles(params: Record<string, string> = {}): Promise<readonly unknown[]> {
  const { rss, atom, json } = await readFeeds(params)
  const titles = (items: readonly { readonly title?: unknown }[] = []) =>
    items.map(({ title }) => (typeof title === 'object' ? (title as { value: string }).value : title))
  const all = [titles(rss.items), titles(atom.entries), titles(json.items)]
  assert.deepEqual([all[1], all[2]], [all[0], all[0]])
  return all[0]!
}
const readSitemapUrls = async (): Promise<readonly { loc: string; lastmod: string }[]> => {
  const { urlset } = new XMLParser({ processEntities: true }).parse(await read('/sitemap.xml'))
  return [urlset.url ?? []].flat()
}

describe('feeds', () => {
  test('of an empty blog are valid', async () => {
    assert.deepEqual(await readTitles(), [])
    assert.deepEqual(await readSitemapUrls(), [])
    for (const path of PATHS) {
      const { headers } = await call(null, 'GET', path)
      assert.match(String(headers.etag), /^W\/"[\w-]{22}"$/)
    }
  })

  test('show a post with its address, times, author, tags and content', async () => {
    const { id: red } = await tag('Red & <blue>', 'red')
    assert.ok(red > 0)
    const post = await publish({
      ...{ title: 'Q&A: <b>1 < 2</b> "ok"', slug: 'q-and-a', excerpt: 'An <i>excerpt</i> & more' },
      ...{ content: '# Head\n\n[home](/x) ![p](../p.png) **bold** ]]> & &amp;', tag_slugs: ['red'] },
      hero_image_url: '/hero.png',
    })
    const address = `${SITE}/articles/q-and-a?a=1&b=2`
    const html = `<h1>Head</h1>
<p><a href="${SITE}/x">home</a> <img src="${SITE}/p.png" alt="p"> <strong>bold</strong> ]]&gt; &amp; &amp;</p>
`
    const { rss, atom, json } = await readFeeds()
    const [item] = rss.items!
    assert.deepEqual([rss.title, rss.link], ['Mill & <Wheel>', `${SITE}/`])
    assert.deepEqual([item!.title, item!.link, item!.description], [post.title, address, post.excerpt])
    assert.deepEqual(
      [
        Date.parse(String(item!.pubDate)),
        item!.content?.encoded?.trim(),
        item!.categories?.map(({ name }) => name),
      ],
      [Math.floor(Date.parse(post.published_at) / 1000) * 1000, html.trim(), ['Red & <blue>']],
    )
    const guid = `tag:blog.example.com,2026:blog-post-${post.id}`
    assert.equal(item!.guid?.value, guid)
    const [entry] = atom.entries!
    assert.deepEqual(
      [entry!.id, entry!.links?.[0]?.href, entry!.published],
      [guid, address, post.published_at],
    )
    assert.equal(entry!.authors?.[0]?.name, post.author_name)
    const [one] = json.items!
    assert.deepEqual(one, {
      ...{ id: guid, url: address, title: post.title, content_html: html.trim(), summary: post.excerpt },
      ...{ image: `${SITE}/hero.png`, date_published: post.published_at, date_modified: post.updated_at },
      ...{ authors: [{ name: post.author_name }], tags: ['Red & <blue>'] },
    })
    assert.deepEqual(await readSitemapUrls(), [{ loc: address, lastmod: post.updated_at }])
  })

  test('show markup and scripts of the Markdown as text, without control characters', async () => {
    const { slug } = await publish({
      title: 'Bad \u0001\u0008\ufffe\u{1F600} title',
      content: '<script>alert(1)</script> [x](javascript:alert(1)) <img src=x onerror=alert(1)>\u0002',
    })
    const { rss, json } = await readFeeds()
    assert.equal(rss.items![0]!.title, 'Bad \u{1F600} title')
    for (const html of [rss.items![0]!.content?.encoded, json.items![0]!.content_html]) {
      assert.ok(html?.includes('&lt;script&gt;'), html)
      assert.doesNotMatch(String(html), /<script|<img|href="javascript/)
    }
    await call(editor, 'DELETE', `/posts/${(await call(null, 'GET', `/posts/${slug}`)).json.id}`)
  })

  test('show only public posts, of one tag if asked, the newest 20 first', async () => {
    await write({ title: 'A draft' })
    const { id } = await write({ title: 'Scheduled' })
    await call(editor, 'POST', `/posts/${id}/publish`, { json: { published_at: '2100-01-01T00:00:00Z' } })
    const { id: archived } = await publish({ title: 'Archived' })
    await call(editor, 'POST', `/posts/${archived}/archive`)
    await tag('Green', 'green')
    for (let n = 1; n <= 21; n++)
      await publish({ title: `P${n}`, ...(n < 3 ? { tag_slugs: ['green'] } : {}) })
    assert.deepEqual(
      await readTitles(),
      Array.from({ length: 20 }, (_, n) => `P${21 - n}`),
    )
    assert.deepEqual(await readTitles({ tag: 'green' }), ['P2', 'P1'])
    assert.deepEqual(await readTitles({ tag: 'nowhere' }), [])
    assert.equal((await readSitemapUrls()).length, 22)
    const { rss } = await readFeeds({ tag: 'green' })
    assert.ok(rss.atom?.links?.some(({ href }) => String(href).endsWith('/api/v1/blog/feed.xml?tag=green')))
    for (const path of PATHS.slice(0, 3))
      assertRefused(await call(null, 'GET', path, { query: { tag: 'x'.repeat(101) } }), 422)
    assertRefused(await call(null, 'GET', '/sitemap.xml', { query: { tag: 'green' } }), 422)
  })

  test('leave out a long content, and keep its excerpt', async () => {
    await publish({ title: 'Long', content: 'x'.repeat(30_001), excerpt: 'short' })
    const { rss, json } = await readFeeds()
    assert.deepEqual([rss.items![0]!.content, rss.items![0]!.description], [undefined, 'short'])
    assert.deepEqual([json.items![0]!.content_html, json.items![0]!.content_text], [undefined, 'short'])
  })

  test('keep the id of a post whose slug changes', async () => {
    const { id } = await publish({ title: 'Moving', slug: 'moving-from' })
    const idOf = async () => (await readFeeds()).json.items!.find(({ title }) => title === 'Moving')
    const before = await idOf()
    await call(editor, 'PUT', `/posts/${id}`, { json: { slug: 'moving-to' } })
    const after = await idOf()
    assert.equal(after!.id, before!.id)
    assert.ok(after!.url!.includes('/articles/moving-to?'))
  })

  test('answer 304 for a known version, and another one after each change', async () => {
    for (const path of PATHS) {
      const get = (headers: Record<string, string>) => call(null, 'GET', path, { headers })
      const { headers } = await get({})
      const etag = String(headers.etag)
      for (const known of [etag, `"x", ${etag}`]) {
        const answer = await get({ 'if-none-match': known })
        assert.deepEqual([answer.status, answer.text, answer.headers.etag], [304, '', etag])
      }
      assert.equal((await get({ 'if-none-match': '"x"' })).status, 200)
      // The time of the newest post does not identify a version: it stays the same if an older post is archived.
      assert.equal(headers['last-modified'], undefined)
      assert.equal((await get({ 'if-modified-since': 'Thu, 01 Jan 2099 00:00:00 GMT' })).status, 200)
      const { id } = await publish({ title: 'Another' })
      assert.equal((await get({ 'if-none-match': etag })).status, 200)
      await call(editor, 'DELETE', `/posts/${id}`)
      assert.equal((await get({ 'if-none-match': etag })).status, 304)
      const head = await api.call('HEAD', `/api/v1/blog${path}`)
      assert.deepEqual([head.status, head.text, head.headers['content-type']], [200, '', TYPES[path]])
      const packed = await get({ 'accept-encoding': 'gzip' })
      assert.equal(packed.headers['content-encoding'], 'gzip')
    }
  })

  test('have the addresses of this API and the name of the project by default', async () => {
    const { text } = await plain.get('/api/v1/blog/feed.json')
    const feed = JSON.parse(text)
    assert.equal(feed.title, 'millrace')
    const { url: address, id } = feed.items[0]
    assert.equal(new URL(address).origin, new URL(feed.feed_url).origin)
    assert.match(address, /\/api\/v1\/blog\/posts\/[\w-]+$/)
    assert.match(id, /^tag:[\w.-]+,2026:blog-post-\d+$/)
  })
})

test('a sitemap has at most 50,000 addresses', async () => {
  await query(
    `insert into blog_post (title, slug, status, published_at, announced_at)
     select 'Many', 'many-' || n, 'published', now() - n * interval '1 hour', now() from generate_series(1, 50000) n`,
  )
  const text = await read('/sitemap.xml')
  assert.equal(text.match(/<url>/g)!.length, 50_000)
  assert.equal((await call(null, 'GET', '/posts', { query: { page_size: 1 } })).json.total > 50_000, true)
})
