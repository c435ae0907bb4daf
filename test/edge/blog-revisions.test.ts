import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBlog, importFile } from './blog-help.ts'
import { assertRefused } from './orgs-help.ts'
import { startOwnWorker } from './own-worker.ts'

/** Changes of posts keep the versions that they replace, which can be read and restored. */

const MAX_REVISIONS = 5

const { api, call, editor, write, publish, tag, query, url, people } = await createBlog({
  env: { BLOG_MAX_REVISIONS: `${MAX_REVISIONS}` },
})
await startOwnWorker(url, 'blog', { BLOG_MAX_REVISIONS: `${MAX_REVISIONS}` })

const put = async (id: number, json: object, who = editor) => {
  const answer = await call(who, 'PUT', `/posts/${id}`, { json })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const list = (id: number, query = {}) => call(editor, 'GET', `/posts/${id}/revisions`, { query })
const listTitles = async (id: number): Promise<string[]> =>
  (await list(id)).json.revisions.map(({ title }: { title: string }) => title)
const read = (id: number, revision: number) => call(editor, 'GET', `/posts/${id}/revisions/${revision}`)
const restore = (id: number, revision: number) =>
  call(editor, 'POST', `/posts/${id}/revisions/${revision}/restore`)

test('a change keeps the version that it replaces, with its editor and both times', async () => {
  await tag('Kept')
  const fields = {
    excerpt: 'e',
    seo_title: 's',
    seo_description: 'd',
    hero_image_url: '/h',
    content: 'First',
  }
  const post = await write({ ...fields, title: 'First', slug: 'kept-first', tag_slugs: ['kept'] })
  assert.deepEqual((await list(post.id)).json, {
    ...{ revisions: [], total: 0, total_is_exact: true, page: 1, page_size: 20, next: null },
  })
  const [other] = await people(1, 'moderator')
  const changed = await put(post.id, { title: 'Second', slug: 'kept-second', excerpt: null }, other)
  const [item, ...more] = (await list(post.id)).json.revisions
  assert.deepEqual(
    [more, item],
    [
      [],
      {
        ...{ id: item.id, title: 'First', slug: 'kept-first', updated_at: post.updated_at },
        ...{ replaced_at: changed.updated_at, replaced_by: 'update' },
        ...{ editor_id: other!.id, editor_name: `N ${other!.email}` },
      },
    ],
  )
  const { json } = await read(post.id, item.id)
  assert.deepEqual(json, { ...item, ...fields, tags: post.tags })
  await query('delete from account where id = $1', [other!.id])
  const [kept] = (await list(post.id)).json.revisions
  assert.deepEqual([kept.editor_id, kept.editor_name], [null, `N ${other!.email}`])
})

test('a change without an effect keeps nothing, and a change of tags does', async () => {
  for (const name of ['Rev one', 'Rev two']) await tag(name)
  const { id } = await write({ title: 'Same', excerpt: 'e', tag_slugs: ['rev-one', 'rev-two'] })
  for (const json of [{}, { title: 'Same' }, { excerpt: 'e', tag_slugs: ['rev-two', 'rev-one', 'rev-two'] }])
    await put(id, json)
  assert.equal((await list(id)).json.total, 0)
  await put(id, { tag_slugs: ['rev-one'] })
  await put(id, { excerpt: null })
  await call(editor, 'POST', `/posts/${id}/publish`)
  const { revisions } = (await list(id)).json
  assert.equal(revisions.length, 2)
  const tags = (await read(id, revisions[1].id)).json.tags as { slug: string }[]
  assert.deepEqual(
    tags.map(({ slug }) => slug),
    ['rev-one', 'rev-two'],
  )
})

test('a post keeps its last versions, in pages', async () => {
  const { id } = await write({ title: 'V0' })
  for (let n = 1; n <= MAX_REVISIONS + 2; n++) await put(id, { title: `V${n}` })
  assert.deepEqual(await listTitles(id), ['V6', 'V5', 'V4', 'V3', 'V2'])
  const first = (await list(id, { limit: 2 })).json
  const next = (await list(id, { limit: 2, cursor: first.next })).json
  const third = (await list(id, { page: 3, page_size: 2 })).json
  const titles = [first, next, third].map(({ revisions }) =>
    revisions.map((one: { title: string }) => one.title),
  )
  assert.deepEqual(titles, [['V6', 'V5'], ['V4', 'V3'], ['V2']])
  assert.deepEqual([first.total, third.next], [MAX_REVISIONS, null])
})

test('a restored version has its texts, slug and remaining tags, and replaces a version itself', async () => {
  await tag('Stays')
  const gone = await tag('Goes')
  const post = await publish({
    title: 'Good',
    slug: 'good',
    content: 'Text',
    excerpt: 'e',
    tag_slugs: ['stays', 'goes'],
  })
  await put(post.id, { title: 'Bad', slug: 'bad', content: '', excerpt: null, tag_slugs: [] })
  const [good] = (await list(post.id)).json.revisions
  await call(editor, 'DELETE', `/tags/${gone.id}`)
  const restored = await restore(post.id, good.id)
  assert.equal(restored.status, 200, restored.text)
  const stays = post.tags.filter(({ slug }: { slug: string }) => slug === 'stays')
  assert.deepEqual(restored.json, { ...post, updated_at: restored.json.updated_at, tags: stays })
  assert.ok(restored.json.updated_at > post.updated_at)
  assert.deepEqual(await listTitles(post.id), ['Bad', 'Good'])
  assert.equal((await list(post.id)).json.revisions[0].replaced_by, 'restore')
  const old = await call(null, 'GET', '/posts/bad')
  assert.deepEqual([old.status, old.json], [301, { slug: 'good' }])
  assert.deepEqual((await restore(post.id, good.id)).json.tags, stays)
  assert.equal((await list(post.id)).json.total, 2, 'restoring the current version keeps nothing')
})

test('a version whose slug another post has taken is not restored', async () => {
  const { id } = await write({ title: 'Mine', slug: 'mine' })
  await put(id, { slug: 'moved-on', title: 'Moved' })
  await write({ slug: 'mine' })
  const [mine] = (await list(id)).json.revisions
  assertRefused(await restore(id, mine.id), 409, 'A post with this slug already exists')
  assert.deepEqual(await listTitles(id), ['Mine'])
})

test('an import that overwrites a post keeps its version', async () => {
  const { id } = await write({ title: 'Before', slug: 'over-me', content: 'Text' })
  const upload = (text: string) =>
    importFile(api, editor, 'over-me.md', text, { query: '?on_conflict=overwrite' })
  const text = '---\ntitle: After\ntags: [imported]\n---\nText'
  for (let n = 0; n < 2; n++) assert.equal((await upload(text)).json.updated, 1)
  const { revisions } = (await list(id)).json
  assert.deepEqual(
    revisions.map((one: Record<string, unknown>) => [one.title, one.replaced_by, one.editor_id]),
    [['Before', 'import', editor.id]],
  )
})

test('unknown posts, revisions and those of another post are 404', async () => {
  const [one, other] = [await write({ title: 'One' }), await write({ title: 'Other' })]
  await put(one.id, { title: 'One more' })
  const [revision] = (await list(one.id)).json.revisions
  assertRefused(await list(999_999_999), 404, 'Post not found')
  assertRefused(await restore(999_999_999, revision.id), 404, 'Post not found')
  for (const act of [read, restore]) {
    assertRefused(await act(other.id, revision.id), 404, 'Revision not found')
    assertRefused(await act(one.id, 999_999_999), 404, 'Revision not found')
  }
  for (const path of ['x', '0', '-1'])
    assertRefused(await call(editor, 'GET', `/posts/${one.id}/revisions/${path}`), 422)
  await call(editor, 'DELETE', `/posts/${one.id}`)
  assertRefused(await list(one.id), 404, 'Post not found')
  assert.deepEqual(await query('select from blog_revision where post_id = $1', [one.id]), [])
})

test('concurrent changes keep each version once', async () => {
  const { id } = await write({ title: 'C' })
  await Promise.all([1, 2, 3, 4].map((n) => put(id, { title: `C${n}` })))
  const titles = [...(await listTitles(id)), (await put(id, {})).title]
  assert.deepEqual(titles.sort(), ['C', 'C1', 'C2', 'C3', 'C4'])
})
