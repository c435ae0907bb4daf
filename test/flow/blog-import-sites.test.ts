import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertCounted, createCaller, importFile } from '../edge/blog-help.ts'
import { type Answered, startEdgeAndDatabase } from '../edge/harness.ts'
import { launchProcess } from '../service.ts'
import { createZip } from '../zip.ts'

/** Imports files of other generators over HTTP: none becomes public against its author's will, and none is lost. */

const { api, url, query } = await startEdgeAndDatabase({ env: { AUTH_LEVEL: 'none' } })
const call = createCaller(api)
const worker = await launchProcess('worker', url, {
  PROJECT_NAME: 'sites',
  WORKER_QUEUES: 'blog',
  WORKER_THREADS: '1',
})
after(() => worker.kill())

const send = async (name: string, bytes: string | Uint8Array, options = ''): Promise<Answered['json']> => {
  const answer = await importFile(api, null, name, bytes, { query: options })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const sendZip = (files: Readonly<Record<string, string>>, options = '') =>
  send('site.zip', createZip(Object.entries(files)), options)
const clear = () => query('delete from blog_post; delete from blog_tag')
const list = async (path: string): Promise<Answered['json'][]> =>
  (await call(null, 'GET', path, { query: { page_size: 100 } })).json.posts
const readPost = async (): Promise<Answered['json']> => (await list('/admin/posts'))[0]

const HIDDEN = 'title: Secret plan\ndraft: true\n'
const FORMS: Readonly<Record<string, string>> = {
  'a blank line': `\n---\n${HIDDEN}---\nText`,
  'blank lines with spaces, of Windows': `  \r\n\r\n---\r\ntitle: Secret plan\r\ndraft: true\r\n---\r\nText`,
  'a mark and a blank line': `\uFEFF\n---\n${HIDDEN}---\nText`,
  'a comment': `<!-- vim: set tw=80 -->\n---\n${HIDDEN}---\nText`,
  'comments of several lines': `<!--\nCopyright\n-->\n\n<!-- x -->\n---\n${HIDDEN}---\nText`,
  'a comment of MDX': `{/* x */}\n---\n${HIDDEN}---\nText`,
  'a comment before TOML': '<!-- x -->\n+++\ntitle = "Secret plan"\ndraft = true\n+++\nText',
  'a comment before JSON': '<!-- x -->\n{"title": "Secret plan", "draft": true}\nText',
  'a blank line before JSON': '\n{"title": "Secret plan", "draft": true}\nText',
  'indented fences': '  ---\n  title: Secret plan\n  draft: true\n  ---\nText',
  'long fences': `-----\n${HIDDEN}-----\nText`,
  'a comment after the fence': `--- # yaml\n${HIDDEN}---\nText`,
  'JSON of Middleman': ';;;\n"title": "Secret plan",\n"draft": true\n;;;\nText',
  'JSON with braces': ';;;\n{"title": "Secret plan", "draft": true}\n;;;\nText',
  'JSON of Hexo': '"title": "Secret plan",\n"draft": true\n;;;\nText',
  'a merged key': '---\nbase: &base\n  draft: true\n<<: *base\ntitle: Secret plan\n---\nText',
  'merged lists': '---\na: &a {draft: true}\nb: &b {x: 1}\n<<: [*a, *b]\ntitle: Secret plan\n---\nText',
  'an alias': '---\nx: &x yes\ndraft: *x\ntitle: Secret plan\n---\nText',
  'line ends of old Macs': `---\n${HIDDEN}---\nText`.replaceAll('\n', '\r'),
}

test('front matter is found in every form, and a draft stays one', async () => {
  for (const [form, text] of Object.entries(FORMS)) {
    await clear()
    assert.equal((await send('plan.md', text)).created, 1, form)
    const { title, status, content } = await readPost()
    assert.deepEqual([title, status, content], ['Secret plan', 'draft', 'Text'], form)
  }
})

test('a post that may have front matter in an unknown form is not public', async () => {
  for (const text of [
    `A line\n---\n${HIDDEN}---\nText`,
    `\`\`\`yaml\n${HIDDEN}\`\`\`\nText`,
    '<!--\n.. title: Secret plan\n.. status: draft\n-->\nText',
    `<!--\n---\n${HIDDEN}---\n-->\nText`,
    'export const metadata = {\n  title: "Secret plan",\n}\n\nText',
    '%%%\ntitle = "Secret plan"\n%%%\nText',
    '#+TITLE: Secret plan\n#+DRAFT: true\nText',
    `---\n\n---\n---\n${HIDDEN}---\nText`,
    `---\n# A comment\n${HIDDEN}\nText without an end`,
  ]) {
    await clear()
    const { created, failed } = await send('plan.md', text)
    assert.equal(created + failed, 1, text)
    assert.deepEqual(await list('/posts'), [], text)
  }
  await clear()
  await send('plain.md', 'Just text.\n\n---\n\nMore: text\n')
  assert.equal((await list('/posts')).length, 1, 'a thematic break hides nothing')
})

test('every key that hides a post hides it', async () => {
  for (const line of [
    'draft: "true"',
    'draft: yes',
    'draft: y',
    'draft: 1',
    'draft: maybe',
    'isDraft: true',
    'published: false',
    'published: "no"',
    'publish: false',
    'private: true',
    'unlisted: true',
    'hidden: true',
    'password: secret',
    'permalink: false',
    'visibility: members',
    'build: {render: never}',
    '_build:\n  list: never',
    'expiryDate: 2020-01-01',
    'unpublishdate: 2020-01-01',
    'expires: soon',
    'status: private',
    'status: pending',
    'status: future',
    'status: scheduled',
    'status: Trash',
    'post_status: draft',
  ]) {
    await clear()
    assert.equal((await send('x.md', `---\ntitle: x\n${line}\n---\nText`)).created, 1, line)
    assert.equal((await readPost()).status, 'draft', line)
    assert.equal((await call(null, 'GET', '/posts/x')).status, 404, line)
  }
  for (const line of ['publish: true', 'private: false', 'expiryDate: 2999-01-01', 'visibility: public']) {
    await clear()
    await send('x.md', `---\ntitle: x\n${line}\n---\nText`)
    assert.equal((await call(null, 'GET', '/posts/x')).status, 200, line)
  }
})

test('a post with a time to come is not public before it', async () => {
  await clear()
  await send('old.md', '---\ntags: [a]\n---\nText')
  const texts = [
    'date: 2031-01-01',
    'date: 2031-01-01 10:00:00 +0900 JST',
    'publishDate: 2031-01-01T00:00:00-08:00',
    'date: 2020-01-01\npublishDate: 2031-01-01',
    'pubDatetime: 2031-01-01',
    'published: 2031-01-01',
    'published_at: 2031-01-01',
    'status: published\ndate: 2031-01-01',
    'status: scheduled\ndate: 2031-01-01',
  ]
  const files = texts.map((text, i) => [`new-${i}.md`, `---\ntags: [a]\n${text}\n---\nText`])
  const { created } = await sendZip({ ...Object.fromEntries(files), '2031-01-01-named.md': 'Text' })
  assert.equal(created, texts.length + 1)
  for (const query of [{}, { tag: 'a' }] as const) {
    const { posts, total } = (await call(null, 'GET', '/posts', { query })).json
    assert.deepEqual([posts.map(({ slug }: { slug: string }) => slug), total], [['old'], 1])
  }
  for (const slug of ['new-0', 'named']) assert.equal((await call(null, 'GET', `/posts/${slug}`)).status, 404)
  await assertCounted(query)
  const before = (await call(null, 'GET', '/export', { query: { format: 'json' } })).text
  await clear()
  await send('blog.json', before)
  assert.equal((await call(null, 'GET', '/export', { query: { format: 'json' } })).text, before)
  await query(`update blog_post set published_at = now() - interval '1 second' where slug = 'new-0'`)
  assert.deepEqual(
    (await list('/posts')).map(({ slug }) => slug).sort(),
    ['new-0', 'old'],
    'it is public from then on',
  )
})

test('posts with one name in different folders all stay, under the same slugs each time', async () => {
  await clear()
  const files = {
    '2023/intro/index.md': 'one',
    '2024/intro/index.md': 'two',
    'en/hello.md': 'three',
    'de/hello.md': 'four',
    'a/😀.md': 'five',
    'b/🎉.mdx': 'six',
    'hello-2.md': 'seven',
    'c.md': '---\npermalink: /2020/intro/\n---\neight',
  }
  assert.equal((await sendZip(files)).created, 8)
  const first = (await list('/admin/posts')).map(({ slug, content }) => `${slug} ${content}`).sort()
  const again = await sendZip(files)
  assert.deepEqual([again.skipped, again.errors.length], [8, 8])
  assert.deepEqual(
    again.errors.map(({ file }: { file: string }) => file),
    Object.keys(files),
  )
  const over = await sendZip(files, '?on_conflict=overwrite')
  assert.deepEqual([over.updated, over.skipped], [8, 0])
  assert.deepEqual(
    (await list('/admin/posts')).map(({ slug, content }) => `${slug} ${content}`).sort(),
    first,
  )
})

test('files of a site that are no posts are named and not imported', async () => {
  await clear()
  const NO_POSTS = [
    'README.md',
    'docs/readme.de.md',
    'LICENSE.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    '.github/PULL_REQUEST_TEMPLATE.md',
    'SECURITY.md',
    'content/_index.md',
    'content/posts/_index.en.md',
    'node_modules/x/CHANGELOG.md',
    'site/node_modules/x/index.md',
    '.obsidian/plugins/notes.md',
    'blog/.trash/old.md',
    'blog/__MACOSX/b.md',
    'archetypes/default.md',
    'themes/x/exampleSite/content/a.md',
    '_layouts/page.md',
    'src/content/_partial.mdx',
    'picture.png',
    'package.json',
  ]
  const posts = [
    'content/posts/a.md',
    '_posts/2020-01-02-b.markdown',
    'src/content/blog/c.mdx',
    'content/themes/d.md',
  ]
  const answer = await sendZip(
    Object.fromEntries([...NO_POSTS, ...posts].map((path) => [path, '---\ntitle: x\n---\n'])),
  )
  const { created, updated, skipped, failed, errors } = answer
  assert.deepEqual([created, updated, skipped, failed], [posts.length, 0, NO_POSTS.length, 0])
  assert.deepEqual(
    errors.map(({ file }: { file: string }) => file),
    NO_POSTS,
  )
  assert.deepEqual((await list('/admin/posts')).map(({ slug }) => slug).sort(), ['a', 'b', 'c', 'd'])
  const none = await sendZip({ 'a.txt': 'x' })
  assert.deepEqual([none.skipped, none.errors[0].message], [1, 'No post was found in the archive'])
})

test("keys of the generators' starters and themes are read", async () => {
  for (const [text, expected] of [
    [
      'pubDate: "Jul 08 2022"\nupdatedDate: "Aug 09 2022"\nheroImage: "/hero.jpg"',
      { published_at: '2022-07-08', updated_at: '2022-08-09', hero_image_url: '/hero.jpg' },
    ],
    [
      'pubDatetime: 2022-09-23T15:22:00Z\nmodDatetime: 2023-12-21T09:12:47Z',
      { published_at: '2022-09-23T15:22:00.000Z', updated_at: '2023-12-21T09:12:47.000Z' },
    ],
    [
      'tags: [{label: Release, permalink: /release}]\nlast_update: {date: 2022-02-02, author: x}',
      { updated_at: '2022-02-02', tags: ['Release'] },
    ],
    [
      'last_modified_at: 2022-02-02\nheader: {teaser: /a.jpg}',
      { updated_at: '2022-02-02', hero_image_url: '/a.jpg' },
    ],
    [
      'images: [/a.jpg, /b.jpg]\ncategory: Machine Learning',
      { hero_image_url: '/a.jpg', tags: ['Machine Learning'] },
    ],
    [
      'thumbnail: https://x.example/a.jpg\ntag: one',
      { hero_image_url: 'https://x.example/a.jpg', tags: ['one'] },
    ],
    ['image: //cdn.example.com/x.png\ncover: {src: /ok.png}', { hero_image_url: '/ok.png' }],
    ['image: ftp://example.com/x.png', { hero_image_url: null }],
    ['taxonomy: {category: [blog], tag: [a b]}', { tags: ['a b', 'blog'] }],
  ] as const) {
    await clear()
    assert.equal((await send('x.md', `---\ntitle: x\n${text}\n---\nText`)).created, 1, text)
    const post = await readPost()
    for (const [key, value] of Object.entries(expected)) {
      const found = key === 'tags' ? post.tags.map(({ name }: { name: string }) => name) : post[key]
      if (typeof value === 'string') assert.ok(found.startsWith(value), `${text}: ${found}`)
      else assert.deepEqual(found, value, text)
    }
  }
})

test('without a title, the first heading is the title', async () => {
  for (const [text, title] of [
    ['Hello\n=====\n\nText', 'Hello'],
    ['# [Hello](/x)\n\nText', 'Hello'],
    ['  # **Hello** `world` #\n', 'Hello world'],
    ['<h1 class="a">Hello &amp; <em>world</em></h1>\n\nText', 'Hello & world'],
    ['```sh\n# no title\n```\n\n# Hello\n', 'Hello'],
    ['# Hello ![a](/b.png) {#id}\n', 'Hello a'],
    ['## Hello\n\nText', 'Hello'],
    ['# snake_case_name \\* 2\n', 'snake_case_name * 2'],
    ['Text\n\n## Part\n', 'File name'],
  ] as const) {
    await clear()
    await send('file-name.md', text)
    assert.equal((await readPost()).title, title, text)
  }
})

test('names of tags survive an export and an import', async () => {
  await clear()
  for (const [name, slug] of [
    ['Machine Learning', 'ml'],
    ['C#', 'c-sharp'],
    ['日本語', 'nihongo'],
  ])
    await call(null, 'POST', '/tags', { json: { name, slug } })
  for (const title of ['readme', 'license', 'index'])
    await call(null, 'POST', '/posts', { json: { title, tag_slugs: ['ml', 'c-sharp', 'nihongo'] } })
  const exported = (await call(null, 'GET', '/export', { query: { format: 'json' } })).text
  assert.deepEqual(JSON.parse(exported)[0].tags[1], { name: 'Machine Learning', slug: 'ml' })
  const zip = (await call(null, 'GET', '/export')).bytes
  for (const [name, bytes] of [
    ['blog.json', exported],
    ['blog.zip', zip],
  ] as const) {
    await clear()
    assert.deepEqual(await send(name, bytes), { created: 3, updated: 0, skipped: 0, failed: 0, errors: [] })
    assert.equal((await call(null, 'GET', '/export', { query: { format: 'json' } })).text, exported)
  }
})
