import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { IMAGE_ADDRESS_RULE } from '../../tasks/blog/public.ts'
import { createTestDatabase } from '../database.ts'
import { createZip } from '../zip.ts'
import { createImports } from './import-help.ts'

const database = await createTestDatabase()
const { query } = database
const { send, exported, clear } = createImports(database)
const [account] = await query(
  `insert into account (email, password_hash, full_name) values ('ann@example.com', 'x', 'Ann') returning id`,
)
const ann = account!.id as number
const NONE = { created: 0, updated: 0, skipped: 0, failed: 0, errors: [] }

const json = (...posts: readonly unknown[]): string => JSON.stringify(posts)
const createItem = (slug: string, more: object = {}) => ({
  title: slug.toUpperCase(),
  slug,
  content: slug,
  ...more,
})
const readContents = async () =>
  Object.fromEntries((await exported()).map(({ slug, content }) => [slug, content]))

describe('items of JSON', () => {
  test('every field of an export is used', async () => {
    await clear()
    const post = {
      title: 'T',
      slug: 's',
      excerpt: '',
      content: ' c ',
      status: 'archived',
      author_name: 'Someone',
      created_at: '2020-01-01T00:00:00.001Z',
      updated_at: '2020-01-02T00:00:00.002Z',
      published_at: '2020-01-03T00:00:00.003Z',
      seo_title: ' s ',
      seo_description: '',
      hero_image_url: 'https://x.example/a.png',
      tag_slugs: ['a', 'b'],
      tags: [
        { name: ' A b', slug: 'a' },
        { name: 'C#', slug: 'b' },
      ],
    }
    const none = {
      ...post,
      slug: 'n',
      author_name: null,
      published_at: null,
      excerpt: null,
      hero_image_url: null,
      tag_slugs: [],
      tags: [],
    }
    assert.deepEqual((await send('x.json', `\uFEFF${json(post, none)}`, { ownerId: ann })).result, {
      ...NONE,
      created: 2,
    })
    assert.deepEqual(await exported(), [post, none])
    assert.deepEqual(await query('select author_id from blog_post'), [
      { author_id: null },
      { author_id: null },
    ])
  })
  test('an address is never used as a name', async () => {
    await clear()
    await query(`update account set full_name = null where id = $1`, [ann])
    const given = ['Ann', 'ann@example.com', null].map((author_name, i) =>
      createItem(`i${i}`, { author_name }),
    )
    await send('x.json', json(...given, createItem('i3')), { ownerId: ann })
    const front = 'author: [ann@example.com, Bob]'
    await send('i4.md', `---\n${front}\n---\n`, { ownerId: ann })
    await send('i5.md', '---\nauthor: ann@example.com\n---\n', { ownerId: ann })
    const names = (await exported()).map(({ slug, author_name }) => [slug, author_name])
    assert.deepEqual(names.sort(), [
      ['i0', 'Ann'],
      ['i1', null],
      ['i2', null],
      ['i3', null],
      ['i4', 'Bob'],
      ['i5', null],
    ])
    await query(`update account set full_name = 'Ann' where id = $1`, [ann])
  })
  test('missing fields default to a draft of the importing account, created now', async () => {
    await clear()
    await send('x.json', json({ title: 'Only' }), { ownerId: ann })
    const [{ created_at, updated_at, ...post }] = await exported()
    assert.deepEqual(post, {
      title: 'Only',
      slug: 'only',
      excerpt: null,
      content: '',
      status: 'draft',
      author_name: 'Ann',
      published_at: null,
      seo_title: null,
      seo_description: null,
      hero_image_url: null,
      tag_slugs: [],
      tags: [],
    })
    assert.equal(created_at, updated_at)
    assert.deepEqual(await query('select author_id from blog_post'), [{ author_id: ann }])
  })
  test('a published item without a date is published at its creation time', async () => {
    await clear()
    await send('x.json', json({ title: 'P', status: 'published', created_at: '2020-01-01' }))
    assert.equal((await exported())[0].published_at, '2020-01-01T00:00:00.000Z')
  })
  test('invalid items are counted and reported, and do not stop the others', async () => {
    await clear()
    const wrong: readonly [unknown, string | null, string][] = [
      [1, null, 'it is not an object'],
      [null, null, 'it is not an object'],
      [[], null, 'it is not an object'],
      [{ slug: 'no-title' }, 'no-title', 'title: is required'],
      [{ title: 'x'.repeat(201), slug: 'a' }, 'a', 'title: must have at most 200 characters'],
      [{ title: 'x', slug: 's'.repeat(221) }, null, 'slug: must have at most 220 characters'],
      [createItem('b', { excerpt: 'x'.repeat(501) }), 'b', 'excerpt: must have at most 500 characters'],
      [createItem('c', { seo_title: 'x'.repeat(201) }), 'c', 'seo_title: must have at most 200 characters'],
      [
        createItem('d', { seo_description: 'x'.repeat(321) }),
        'd',
        'seo_description: must have at most 320 characters',
      ],
      [
        createItem('e', { hero_image_url: `/${'x'.repeat(1024)}` }),
        'e',
        'hero_image_url: must have at most 1024 characters',
      ],
      [
        createItem('f', { content: 'x'.repeat(1_000_001) }),
        'f',
        'content: must have at most 1000000 characters',
      ],
      [createItem('g', { content: 5 }), null, 'content: must be a string'],
      [createItem('h', { status: 'gone' }), 'h', 'status: must be draft, published or archived'],
      [createItem('i', { created_at: 'soon' }), 'i', 'createdat: is not a recognized date'],
      [createItem('j', { content: 'a\0b' }), 'j', 'content: must not contain a NUL character'],
      [createItem('k', { content: 'a\ud800' }), 'k', 'content: must not contain a lone surrogate'],
      [createItem('m', { hero_image_url: 'x.png' }), 'm', `hero_image_url: ${IMAGE_ADDRESS_RULE}`],
      [
        createItem('l', { author_name: 'x'.repeat(321) }),
        'l',
        'author_name: must have at most 320 characters',
      ],
    ]
    const { result } = await send(
      'x.json',
      json(createItem('first'), ...wrong.map(([post]) => post), createItem('last')),
    )
    assert.deepEqual([result!.created, result!.failed], [2, wrong.length])
    assert.deepEqual(
      result!.errors,
      wrong.map(([, slug, message], i) => ({ slug, file: 'x.json', message: `Item ${i + 2}: ${message}` })),
    )
    assert.deepEqual(Object.keys(await readContents()), ['first', 'last'])
  })
  test('ten thousand errors at most are reported, but all are counted', async () => {
    const { result } = await send('x.json', json(...Array(10_500).fill(1)))
    assert.deepEqual([result!.failed, result!.errors.length], [10_500, 10_000])
  })
  test('an empty list imports nothing', async () =>
    assert.deepEqual((await send('x.json', '[]')).result, NONE))
  test('a value that is not a list is rejected', async () => {
    for (const [text, reason] of [
      ['{}', 'it is not a JSON array'],
      ['"x"', 'it is not a JSON array'],
      ['', 'it is not valid JSON'],
      ['[1', 'it is not valid JSON'],
      ['['.repeat(1_000_000), 'it is nested too deeply'],
    ] as const) {
      const { error } = await send('x.json', text)
      assert.deepEqual(
        [error.code, error.detail],
        ['import.refused', `The file cannot be imported: ${reason}`],
      )
    }
  })
  test('text that is not UTF-8 is rejected', async () => {
    for (const name of ['x.json', 'x.md'])
      assert.equal((await send(name, Buffer.from([0x5b, 0xff, 0x5d]))).error.code, 'import.encoding')
  })
})

describe('tags', () => {
  const readTags = async () =>
    (await query('select name, slug from blog_tag order by id')).map(({ name, slug }) => `${name} (${slug})`)

  test('are created when missing, by their first name', async () => {
    await clear()
    await query(`insert into blog_tag (name, slug) values ('The Web', 'web'), ('Taken', 'other')`)
    await send(
      'x.zip',
      createZip([
        ['a.md', '---\ntags: [Web, Machine Learning, machine-learning, Taken]\n---\n'],
        ['b.md', '---\ntags: [MACHINE LEARNING]\n---\n'],
      ]),
    )
    assert.deepEqual(await readTags(), [
      'The Web (web)',
      'Taken (other)',
      'Machine Learning (machine-learning)',
      'taken (taken)',
    ])
    assert.deepEqual(
      (await exported()).map(({ tag_slugs }) => tag_slugs),
      [['machine-learning', 'taken', 'web'], ['machine-learning']],
    )
  })
  test('get another name if theirs is taken', async () => {
    await clear()
    await query(`insert into blog_tag (name, slug) values ('a', 'x'), ('b', 'y')`)
    await send('x.json', json(createItem('p', { tag_slugs: ['a', 'b', 'c'.repeat(100)] })))
    const made = await readTags()
    assert.deepEqual(made.slice(2).sort(), ['a 2 (a)', 'b 2 (b)', `${'c'.repeat(80)} (${'c'.repeat(100)})`])
  })
  test('stay distinct if they differ only after the 80th character of their slugs', async () => {
    await clear()
    await send('x.json', json(createItem('p', { tag_slugs: [`${'d'.repeat(90)}`, `${'d'.repeat(91)}`] })))
    assert.equal((await exported())[0].tag_slugs.length, 2)
  })
  test('get another name if a new tag in the same import takes theirs', async () => {
    await clear()
    await send(
      'x.zip',
      createZip([
        ['a.md', '---\ntag_slugs: [one]\ntags: [two]\n---\n'],
        ['b.md', '---\ntag_slugs: [two]\ntags: ["one!"]\n---\n'],
      ]),
    )
    assert.deepEqual(
      (await exported()).map(({ tag_slugs }) => tag_slugs),
      [
        ['one', 'two'],
        ['one', 'two'],
      ],
    )
  })
  test('are shown in the posts', async () => {
    const rows = await query(
      `select p.tags::json as shown, (select json_agg(t.slug order by lower(t.name)) from blog_post_tag pt join blog_tag t on t.id = tag_id where post_id = p.id) as slugs from blog_post p`,
    )
    for (const { shown, slugs } of rows)
      assert.deepEqual(
        (shown as { slug: string }[]).map(({ slug }) => slug),
        slugs,
      )
  })
})
