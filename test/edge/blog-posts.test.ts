import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deletePost } from '../../sql/blog/posts.ts'
import { waitForLock } from '../database.ts'
import { assertCounted, assertField, createSharedBlog } from './blog-help.ts'
import { assertRefused, createSlug } from './orgs-help.ts'

const { call, editor, write, tag, db, query, people } = await createSharedBlog()
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

test('a new post is a draft with all its fields', async () => {
  const answer = await call(editor, 'POST', '/posts', { json: { title: ' Hello, World! ' } })
  assert.equal(answer.status, 201)
  const { id, created_at, updated_at, ...rest } = answer.json
  assert.deepEqual(rest, {
    title: 'Hello, World!',
    slug: 'hello-world',
    excerpt: null,
    content: '',
    status: 'draft',
    author_id: editor.id,
    author_name: `N ${editor.email}`,
    published_at: null,
    seo_title: null,
    seo_description: null,
    hero_image_url: null,
    tags: [],
  })
  assert.ok(id > 0)
  for (const at of [created_at, updated_at]) assert.match(at, TIMESTAMP)
})

test('given fields are stored unchanged, and null counts as not given', async () => {
  await tag('Given')
  const fields = {
    content: '# Title\r\n\r\n\ttext \u{1F600} "quoted" \\ \u2028',
    excerpt: ' short ',
    seo_title: 'SEO',
    seo_description: '',
    hero_image_url: 'https://example.com/a.png',
  }
  const post = await write({ ...fields, title: 'Given', slug: 'My  Slug!', tag_slugs: ['given'] })
  for (const [name, value] of Object.entries(fields)) assert.equal(post[name], value, name)
  assert.deepEqual([post.slug, post.tags.map(({ slug }: { slug: string }) => slug)], ['my-slug', ['given']])
  const nulls = Object.fromEntries(
    Object.keys({ ...fields, slug: 0, tag_slugs: 0 }).map((key) => [key, null]),
  )
  const empty = await write({ ...nulls, title: 'All null' })
  assert.deepEqual([empty.content, empty.excerpt, empty.slug, empty.tags], ['', null, 'all-null', []])
})

test('the author appears by name, never by address, and stays when the account is deleted', async () => {
  const named = async (full_name: string | null) => {
    const [author] = await people(1, 'moderator')
    await query('update account set full_name = $2 where id = $1', [author!.id, full_name])
    const answer = await call(author!, 'POST', '/posts', { json: { title: `By ${author!.id}` } })
    const published = await call(author!, 'POST', `/posts/${answer.json.id}/publish`)
    assert.deepEqual([published.status, published.json.author_id], [200, author!.id])
    await query('delete from account where id = $1', [author!.id])
    const { json } = await call(null, 'GET', `/posts/${answer.json.slug}`)
    assert.equal(json.author_id, null)
    return json.author_name
  }
  assert.equal(await named('Ann Miller'), 'Ann Miller')
  for (const name of [null, '', 'ann@example.com', ' ann@example.com ']) assert.equal(await named(name), null)
})

test('an image is an http or https URL or a path of the same site', async () => {
  const { id } = await write()
  const put = (hero_image_url: string) => call(editor, 'PUT', `/posts/${id}`, { json: { hero_image_url } })
  for (const address of ['https://x.example/a.png', 'HTTP://x.example', '/', '/a b.png', '/a?b=c://d'])
    assert.equal((await put(address)).json.hero_image_url, address)
  const bad = ['', 'a.png', './a.png', ' /a.png', '//evil.example', '/\\evil.example', '/\t/evil.example']
  bad.push(
    'javascript:alert(1)',
    'data:image/png;base64,AA',
    'ftp://x.example/a',
    'http:/a',
    'https://',
    'http:\\\\x',
  )
  for (const address of bad) {
    assertField(await put(address), 'hero_image_url')
    const json = { title: 'Picture', hero_image_url: address }
    assertField(await call(editor, 'POST', '/posts', { json }), 'hero_image_url')
  }
})

const MAX_LENGTHS = {
  title: 200,
  slug: 220,
  excerpt: 500,
  seo_title: 200,
  seo_description: 320,
  hero_image_url: 1024,
  // This test must be the last one, because all later answers would include this content.
  content: 1_000_000,
}

test('fields of maximum length are accepted, and longer ones are 422 with their location', async () => {
  const { id } = await write()
  const written = [id]
  for (const [name, max] of Object.entries(MAX_LENGTHS)) {
    for (const character of name === 'slug'
      ? ['x']
      : name === 'content'
        ? ['\u{1F600}']
        : ['x', '題', '\u{1F600}']) {
      const longest = name === 'hero_image_url' ? `/${character.repeat(max - 1)}` : character.repeat(max)
      const path = `/posts/${id}`
      const taken = await call(editor, 'PUT', path, { json: { [name]: longest } })
      assert.equal(taken.status, 200, `${name}: ${taken.text.slice(0, 200)}`)
      assert.equal(taken.json[name], longest)
      assertField(await call(editor, 'PUT', path, { json: { [name]: `${longest}x` } }), name)
      const json = { title: 'T', [name]: `${longest}x` }
      assertField(await call(editor, 'POST', '/posts', { json }), name)
      const made = await write({
        title: `Longest ${name} ${character}`,
        // A title without letters gives the slug `post`, which another test file needs.
        ...(name === 'title' && character === '\u{1F600}' ? { slug: createSlug() } : {}),
        [name]: name === 'slug' ? 'y'.repeat(max) : longest,
      })
      assert.equal(made[name].length, longest.length)
      written.push(made.id)
    }
  }
  // Delete these posts, which would otherwise appear in the exports of other test files.
  for (const post of written) assert.equal((await call(editor, 'DELETE', `/posts/${post}`)).status, 204)
})

test('values that are not text, unpaired surrogates, NUL and unknown fields are 422', async () => {
  const { id } = await write()
  for (const name of Object.keys(MAX_LENGTHS)) {
    for (const value of [1, true, [], {}, 'a\0b', 'a\ud800b']) {
      assertField(await call(editor, 'PUT', `/posts/${id}`, { json: { [name]: value } }), name)
    }
  }
  assertRefused(await call(editor, 'PUT', `/posts/${id}`, { json: { colour: 'red' } }), 422)
  for (const json of [undefined, [], 'text', null, { title: null }, {}, { title: '' }, { title: '   ' }])
    assertRefused(await call(editor, 'POST', '/posts', { json }), 422)
  for (const title of ['', ' '])
    assertField(await call(editor, 'PUT', `/posts/${id}`, { json: { title } }), 'title')
})

test('unknown tags are 422, and nothing is stored', async () => {
  await tag('Known')
  const { id } = await write()
  const before = await query('select count(*) from blog_post')
  for (const tag_slugs of [['known', 'nowhere'], [''], ['Known']]) {
    assertField(await call(editor, 'POST', '/posts', { json: { title: 'T', tag_slugs } }), 'tag_slugs')
    assertField(
      await call(editor, 'PUT', `/posts/${id}`, { json: { tag_slugs, title: 'Changed' } }),
      'tag_slugs',
    )
  }
  for (const tag_slugs of ['known', [1], {}])
    assertRefused(await call(editor, 'PUT', `/posts/${id}`, { json: { tag_slugs } }), 422)
  assertRefused(
    await call(editor, 'PUT', `/posts/${id}`, { json: { tag_slugs: Array(101).fill('known') } }),
    422,
  )
  assert.deepEqual(await query('select count(*) from blog_post'), before)
  assert.deepEqual(await query(`select 1 from blog_post where title = 'Changed'`), [])
})

test('a change affects only the given fields and replaces tags as a whole', async () => {
  for (const name of ['One', 'Two', 'Three']) await tag(name)
  const fields = { excerpt: 'e', seo_title: 's', seo_description: 'd', hero_image_url: '/h', content: 'c' }
  const post = await write({ ...fields, title: 'Change me', tag_slugs: ['one', 'two'] })
  const put = async (json: object) => (await call(editor, 'PUT', `/posts/${post.id}`, { json })).json
  const nothing = await put({})
  assert.deepEqual(nothing, post)
  const retitled = await put({ title: 'Changed' })
  assert.deepEqual(retitled, { ...post, title: 'Changed', updated_at: retitled.updated_at })
  assert.ok(retitled.updated_at > post.updated_at)
  const nulls = await put({
    title: null,
    slug: null,
    content: null,
    tag_slugs: null,
    ...Object.fromEntries(Object.keys(fields).map((key) => [key, null])),
  })
  assert.deepEqual(
    [nulls.title, nulls.slug, nulls.content, nulls.tags.length],
    ['Changed', post.slug, 'c', 2],
    'null leaves these',
  )
  for (const key of ['excerpt', 'seo_title', 'seo_description', 'hero_image_url'])
    assert.equal(nulls[key], null, key)
  const slugsOf = ({ tags }: { tags: { slug: string }[] }) => tags.map(({ slug }) => slug)
  assert.deepEqual(slugsOf(await put({ tag_slugs: ['three', 'two', 'three'] })), ['three', 'two'])
  assert.deepEqual(slugsOf(await put({ tag_slugs: [] })), [])
})

test('concurrent tag changes of a post leave one of the requested sets, and its JSON agrees', async () => {
  const names = ['a1', 'a2', 'a3', 'a4', 'a5']
  for (const name of names) await tag(name)
  const { id } = await write()
  await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      call(editor, 'PUT', `/posts/${id}`, { json: { tag_slugs: [names[i % 5]] } }),
    ),
  )
  const [row] = await query(
    `select p.tags::json as shown, (select json_agg(t.slug) from blog_post_tag pt join blog_tag t on t.id = pt.tag_id where post_id = p.id) as tags
     from blog_post p where id = $1`,
    [id],
  )
  assert.deepEqual(
    (row!.shown as { slug: string }[]).map(({ slug }) => slug),
    row!.tags,
  )
  assert.equal((row!.tags as string[]).length, 1)
})

test('every transition between draft, published and archived works and keeps the first publication time', async () => {
  const { id, slug } = await write()
  const go = async (to: string) => (await call(editor, 'POST', `/posts/${id}/${to}`)).json
  const seen = async () => (await call(null, 'GET', `/posts/${slug}`)).status
  assert.equal(await seen(), 404)
  const published = await go('publish')
  assert.deepEqual([published.status, await seen()], ['published', 200])
  assert.match(published.published_at, TIMESTAMP)
  assert.deepEqual(await go('publish'), published, 'a repeat changes nothing')
  const archived = await go('archive')
  assert.deepEqual(
    [archived.status, archived.published_at, await seen()],
    ['archived', published.published_at, 404],
  )
  assert.deepEqual(await go('archive'), archived)
  const again = await go('publish')
  assert.deepEqual(
    [again.status, again.published_at, await seen()],
    ['published', published.published_at, 200],
  )
  const draft = await write()
  const shelved = (await call(editor, 'POST', `/posts/${draft.id}/archive`)).json
  assert.deepEqual([shelved.status, shelved.published_at], ['archived', null])
  const late = (await call(editor, 'POST', `/posts/${draft.id}/publish`)).json
  assert.deepEqual([late.status, typeof late.published_at], ['published', 'string'])
  await assertCounted(query)
})

test('a post can be deleted from every status, along with its tag assignments', async () => {
  await tag('Gone')
  for (const to of [null, 'publish', 'archive']) {
    const { id } = await write({ tag_slugs: ['gone'] })
    if (to !== null) await call(editor, 'POST', `/posts/${id}/${to}`)
    const answer = await call(editor, 'DELETE', `/posts/${id}`)
    assert.deepEqual([answer.status, answer.text], [204, ''])
    assert.deepEqual(await query('select 1 from blog_post_tag where post_id = $1', [id]), [])
    assertRefused(await call(editor, 'DELETE', `/posts/${id}`), 404)
  }
  await assertCounted(query)
})

test('a missing post is 404 and an invalid id 422', async () => {
  for (const [method, path, json] of [
    ['PUT', '/posts/999999', { title: 'T' }],
    ['PUT', '/posts/999999', {}],
    ['POST', '/posts/999999/publish', undefined],
    ['POST', '/posts/999999/archive', undefined],
    ['DELETE', '/posts/999999', undefined],
  ] as const) {
    assertRefused(await call(editor, method, path, { json }), 404, 'Post not found')
    assertRefused(await call(editor, method, path.replace('999999', '9007199254740991'), { json }), 404)
    for (const id of ['0', 'x', '9007199254740992', '-1'])
      assertRefused(await call(editor, method, path.replace('999999', id), { json }), 422)
  }
  assertRefused(await call(null, 'GET', '/posts/nowhere'), 404)
  assertRefused(await call(null, 'GET', `/posts/${'x'.repeat(221)}`), 422)
})

test('one Idempotency-Key creates one post', async () => {
  const options = { json: { title: 'Only once' }, headers: { 'idempotency-key': 'k1' } }
  const [one, two] = [
    await call(editor, 'POST', '/posts', options),
    await call(editor, 'POST', '/posts', options),
  ]
  assert.deepEqual([one.status, two.status, two.json], [201, 201, one.json])
  const other = { ...options, json: { title: 'Another' } }
  assert.equal((await call(editor, 'POST', '/posts', other)).status, 422)
})

test('publishing, archiving or changing a post during its deletion is 404', async () => {
  for (const [method, path, json] of [
    ['POST', '/publish', undefined],
    ['POST', '/archive', undefined],
    ['PUT', '', { title: 'Other' }],
  ] as const) {
    const { id } = await write()
    const { answer } = await db.transaction(async (tx) => {
      await tx.run(deletePost(id))
      const answer = call(editor, method, `/posts/${id}${path}`, { json })
      await waitForLock(query)
      return { answer }
    })
    assertRefused(await answer, 404, 'Post not found')
  }
})
