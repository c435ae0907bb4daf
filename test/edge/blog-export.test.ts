import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { fromBufferPromise } from 'yauzl'
import { createArchive } from '../../tasks/formats/archive.ts'
import { until } from '../until.ts'
import { BLOG_PATH, createBlog } from './blog-help.ts'
import { assertRefused } from './orgs-help.ts'

const { api, call, editor, write, publish, tag, query } = await createBlog()

async function unpackFiles(bytes: Buffer): Promise<Record<string, string>> {
  const zip = await fromBufferPromise(bytes, { lazyEntries: true })
  const files: Record<string, string> = {}
  for await (const entry of zip.eachEntry()) {
    const chunks: Buffer[] = []
    for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer)
    files[entry.fileName] = Buffer.concat(chunks).toString()
  }
  return files
}

test('exports an empty blog', async () => {
  const json = await call(editor, 'GET', '/export', { query: { format: 'json' } })
  assert.deepEqual([json.status, json.text], [200, '[]'])
  assert.deepEqual(await unpackFiles((await call(editor, 'GET', '/export')).bytes), {})
})

test('writes one Markdown file per post, named by its slug', async () => {
  await tag('Tag One')
  const post = await publish({
    title: 'Hello: "World"',
    content: '\n# Text\r\n',
    excerpt: 'e',
    tag_slugs: ['tag-one'],
    seo_title: 'two\nlines',
  })
  await write({ title: 'Draft' })
  const answer = await call(editor, 'GET', '/export')
  assert.equal(answer.headers['content-type'], 'application/zip')
  assert.equal(answer.headers['content-disposition'], 'attachment; filename="blog.zip"')
  const files = await unpackFiles(answer.bytes)
  assert.deepEqual(Object.keys(files), ['hello-world.md', 'draft.md'])
  assert.equal(
    files['hello-world.md'],
    `---
title: "Hello: \\"World\\""
slug: hello-world
excerpt: e
status: published
author_name: N ${editor.email}
created_at: ${post.created_at}
updated_at: ${post.updated_at}
published_at: ${post.published_at}
seo_title: "two\\nlines"
seo_description: null
hero_image_url: null
tag_slugs:
  - tag-one
tags:
  - name: Tag One
    slug: tag-one
---

# Text\r
`,
  )
})

test('writes one JSON array of posts', async () => {
  const answer = await call(editor, 'GET', '/export', { query: { format: 'json' } })
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
  assert.equal(answer.headers['content-disposition'], 'attachment; filename="blog.json"')
  assert.deepEqual(Object.keys(answer.json[0]), [
    'title',
    'slug',
    'excerpt',
    'content',
    'status',
    'author_name',
    'created_at',
    'updated_at',
    'published_at',
    'seo_title',
    'seo_description',
    'hero_image_url',
    'tag_slugs',
    'tags',
  ])
  assert.deepEqual(
    answer.json.map(({ slug, tag_slugs }: { slug: string; tag_slugs: string[] }) => [slug, tag_slugs]),
    [
      ['hello-world', ['tag-one']],
      ['draft', []],
    ],
  )
})

test('exports only posts of the requested status', async () => {
  for (const [status_filter, slugs] of [
    ['published', ['hello-world']],
    ['draft', ['draft']],
    ['archived', []],
  ] as const) {
    const json = await call(editor, 'GET', '/export', { query: { format: 'json', status_filter } })
    assert.deepEqual(
      json.json.map(({ slug }: { slug: string }) => slug),
      slugs,
    )
    const zip = await call(editor, 'GET', '/export', { query: { status_filter } })
    assert.deepEqual(
      Object.keys(await unpackFiles(zip.bytes)),
      slugs.map((slug) => `${slug}.md`),
    )
  }
})

test('rejects another format or status with 422', async () => {
  for (const query of [{ format: 'xml' }, { status_filter: 'gone' }, { format: '' }])
    assertRefused(await call(editor, 'GET', '/export', { query: query as Record<string, string> }), 422)
})

test('HEAD has the headers and no body', async () => {
  const answer = await call(editor, 'HEAD', '/export')
  assert.deepEqual(
    [answer.status, answer.headers['content-type'], answer.bytes.length],
    [200, 'application/zip', 0],
  )
})

test('exports many posts of any size completely and in order, whatever the batch size', async () => {
  await query(
    `insert into blog_post (title, slug, content) select 'n', 'n-' || lpad(n::text, 4, '0'), repeat('x', case when n % 97 = 0 then 900000 else n end) from generate_series(1, 1200) n`,
  )
  const { json } = await call(editor, 'GET', '/export', { query: { format: 'json' } })
  const rows = await query('select slug, length(content) as length from blog_post order by id')
  assert.deepEqual(
    json.map(({ slug, content }: { slug: string; content: string }) => ({ slug, length: content.length })),
    rows,
  )
  const files = await unpackFiles((await call(editor, 'GET', '/export')).bytes)
  assert.deepEqual(
    Object.keys(files),
    rows.map(({ slug }) => `${slug}.md`),
  )
})

test('a client that disconnects ends the export, and the edge keeps serving', async () => {
  for (const format of ['json', 'markdown']) {
    const abort = new AbortController()
    const response = await fetch(`http://127.0.0.1:${api.port}${BLOG_PATH}/export?format=${format}`, {
      headers: { authorization: `Bearer ${editor.token}` },
      signal: abort.signal,
    })
    const reader = response.body!.getReader()
    await reader.read()
    abort.abort()
    await assert.rejects(async () => {
      for (;;) if ((await reader.read()).done) return
    })
  }
  assert.equal((await call(editor, 'GET', '/admin/posts')).status, 200)
  await until('no export is running', () => api.serving.edge.db.usage().active === 0)
})

test('an archive keeps no file in memory, however many it contains', async () => {
  const FILES = 40
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const held = (): number => {
    // Collect twice: the first collection may leave work to a background thread, and the second waits for it.
    collect()
    collect()
    return process.memoryUsage().arrayBuffers
  }
  const seen: number[] = []
  const files = async function* () {
    for (let i = 0; i < FILES; i++) {
      if (i % 10 === 5) seen.push(held())
      yield { name: `${i}.md`, content: `${i} `.repeat(300_000), modifiedAt: new Date() }
    }
  }
  for await (const _ of createArchive(files()));
  assert.equal(seen.length, 4)
  const grown = seen.at(-1)! - seen[0]!
  assert.ok(grown < 15_000_000, `${grown} bytes of buffers more, after 27 MB`)
})
