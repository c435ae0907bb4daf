import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { createBlog, importFile } from './blog-help.ts'
import { assertRefused } from './orgs-help.ts'
import { startOwnWorker } from './own-worker.ts'

/** Searches of posts find words as searches of documents do, and never show what is not public. */

const { api, call, editor, write, publish, tag, query, url } = await createBlog()
await startOwnWorker(url, 'blog', {})

type Options = Readonly<Record<string, string | number>>
const find = async (search: string, options: Options = {}) => {
  const answer = await call(null, 'GET', '/posts', { query: { search, ...options } })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const findAll = async (search: string, options: Options = {}) =>
  (await call(editor, 'GET', '/admin/posts', { query: { search, ...options } })).json
const titlesOf = ({ posts }: { posts: { title: string }[] }) => posts.map(({ title }) => title)
const assertFound = async (search: string, titles: readonly string[], options: Options = {}) =>
  assert.deepEqual(titlesOf(await find(search, options)), titles, search)

describe('a search of posts', () => {
  before(async () => {
    for (const name of ['Grain', 'Water']) await tag(name)
    const posts = [
      { title: 'Grinding wheat', content: 'A miller grinds grain between *stones*.', tag_slugs: ['grain'] },
      { title: 'The river', content: 'Water drives the wheel. The wheat waits.', tag_slugs: ['water'] },
      { title: 'Prices', excerpt: 'Costs of flour', content: 'A sack is 1,284.50 EUR since 2026-03-14.' },
      { title: 'Café Müller', content: 'Brot und Kuchen, straße, readFileSync()' },
      { title: '製粉所の水車', content: '水車は川の水で動く。' },
    ]
    for (const post of posts) await publish(post)
    await write({ title: 'A draft of wheat', tag_slugs: ['grain'] })
    const { id } = await write({ title: 'Scheduled wheat' })
    await call(editor, 'POST', `/posts/${id}/publish`, { json: { published_at: '2100-01-01T00:00:00Z' } })
    const { id: archived } = await publish({ title: 'Archived wheat', tag_slugs: ['water'] })
    await call(editor, 'POST', `/posts/${archived}/archive`)
  })

  test('finds words in titles, excerpts and contents, the best match first', async () => {
    await assertFound('wheat', ['Grinding wheat', 'The river'])
    await assertFound('flour', ['Prices'])
    await assertFound('STONES', ['Grinding wheat'])
    await assertFound('wheat water', ['The river'])
    await assertFound('nowhere', [])
  })

  test('finds prefixes, other endings, parts, misspellings, accents, numbers, dates and scripts without spaces', async () => {
    for (const [search, title] of [
      ['grindi', 'Grinding wheat'],
      ['grind', 'Grinding wheat'],
      ['stone', 'Grinding wheat'],
      ['driving', 'The river'],
      ['ileSyn', 'Café Müller'],
      ['kucken', 'Café Müller'],
      ['cafe muller', 'Café Müller'],
      ['strasse', 'Café Müller'],
      ['1284.50', 'Prices'],
      ['"14 March 2026"', 'Prices'],
      ['水車', '製粉所の水車'],
      ['川の水', '製粉所の水車'],
    ] as const)
      await assertFound(search, [title])
  })

  test('understands phrases and exclusions', async () => {
    await assertFound('"wheat waits"', ['The river'])
    await assertFound('"waits wheat"', [])
    await assertFound('wheat -river', ['Grinding wheat'])
    await assertFound('wheat -"wheat waits"', ['Grinding wheat'])
    await assertFound('-wheat', [])
    await assertFound('"unclosed (& | ! <-> :*', [])
  })

  test('shows each post with a snippet', async () => {
    const { posts } = await find('grain')
    const { snippet, ...post } = posts[0]
    assert.equal(snippet, 'A miller grinds grain between *stones*.')
    assert.deepEqual(post, (await call(null, 'GET', '/posts/grinding-wheat')).json)
    assert.equal((await find('grinding')).posts[0].snippet, 'A miller grinds grain between *stones*.')
    const listed = (await call(null, 'GET', '/posts')).json
    assert.ok(listed.posts.every((one: object) => !('snippet' in one)))
  })

  test('combines with a tag and, for editors, a status', async () => {
    await assertFound('wheat', ['The river'], { tag: 'water' })
    await assertFound('wheat', [], { tag: 'nowhere' })
    const all = await findAll('wheat')
    assert.equal(all.total, 5)
    for (const [options, titles] of [
      [{ status: 'draft' }, ['A draft of wheat']],
      [{ status: 'archived' }, ['Archived wheat']],
      [{ tag: 'grain', status: 'draft' }, ['A draft of wheat']],
      [{ tag: 'water', status: 'draft' }, []],
    ] as const)
      assert.deepEqual(titlesOf(await findAll('wheat', options)), titles)
    assert.deepEqual(titlesOf(await findAll('wheat', { tag: 'grain' })).sort(), [
      'A draft of wheat',
      'Grinding wheat',
    ])
    assertRefused(await call(null, 'GET', '/admin/posts', { query: { search: 'wheat' } }), 401)
  })

  test('has pages, and a blank search lists all', async () => {
    const first = await findAll('wheat', { limit: 2 })
    const second = await findAll('wheat', { limit: 2, cursor: first.next })
    const third = await findAll('wheat', { page: 3, page_size: 2 })
    const titles = [first, second, third].flatMap(titlesOf)
    assert.deepEqual([new Set(titles).size, titles.length, third.next], [5, 5, null])
    assert.deepEqual([first.total, first.total_is_exact], [5, true])
    assert.equal((await find('   ')).total, 5)
    const cursor = (await call(null, 'GET', '/posts', { query: { limit: 1 } })).json.next
    for (const options of [{ search: 'wheat', cursor }, { search: 'x'.repeat(501) }, { cursor: first.next }])
      assertRefused(await call(null, 'GET', '/posts', { query: options }), 422)
  })

  test('follows changes, restores, imports and deletions', async () => {
    const { id, slug } = await publish({ title: 'Changing', content: 'zebra' })
    await call(editor, 'PUT', `/posts/${id}`, { json: { content: 'giraffes', excerpt: 'okapi' } })
    await assertFound('zebra', [])
    for (const search of ['giraffe', 'okapi']) await assertFound(search, ['Changing'])
    const [{ id: revision }] = (await call(editor, 'GET', `/posts/${id}/revisions`)).json.revisions
    await call(editor, 'POST', `/posts/${id}/revisions/${revision}/restore`)
    await assertFound('zebra', ['Changing'])
    const text = `---\ntitle: Imported\nslug: ${slug}\n---\nelephants`
    await importFile(api, editor, 'a.md', text, { query: '?on_conflict=overwrite' })
    await assertFound('zebra', [])
    await assertFound('elephant', ['Imported'])
    await call(editor, 'DELETE', `/posts/${id}`)
    await assertFound('elephants', [])
  })

  test('reaches the end of a long post', async () => {
    const { id } = await publish({
      title: 'Long',
      content: `${'lorem ipsum '.repeat(80_000)}quagga at the end`,
    })
    const { posts } = await find('quagga')
    assert.deepEqual([titlesOf({ posts }), posts[0].snippet.includes('quagga at the end')], [['Long'], true])
    await assertFound('quagga ipsum -wheat', ['Long'])
    await call(editor, 'DELETE', `/posts/${id}`)
  })
})

test('a frequent word finds the newest posts, and a rare one narrows it', async () => {
  await query(
    `insert into blog_post (title, slug, content, status, created_at, published_at, announced_at)
     select 'Many ' || n, 'many-' || n, 'common words' || case n when 900 then ' rarely' else '' end, 'published',
       now() - n * interval '1 hour', now() - n * interval '1 hour', now() from generate_series(1, 1500) n`,
  )
  const { posts, total_is_exact } = await find('common')
  assert.deepEqual([posts.length, total_is_exact], [20, false])
  await assertFound('common rarely', ['Many 900'])
})
