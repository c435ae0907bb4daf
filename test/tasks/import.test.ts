import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { deleteAbandonedImports } from '../../sql/blog/transfer.ts'
import { createTestDatabase } from '../database.ts'
import { assertCounted } from '../edge/blog-help.ts'
import { createImports } from './import-help.ts'

const database = await createTestDatabase()
const { query, db } = database
const { send, run, upload, exported, clear } = createImports(database)
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

describe('an existing slug', () => {
  const importFirst = async () => {
    await clear()
    const first = createItem('b', {
      content: 'old',
      created_at: '2020-01-01T00:00:00.000Z',
      author_name: 'Old',
      tag_slugs: ['x'],
      status: 'published',
      published_at: '2020-02-02T00:00:00.000Z',
    })
    assert.deepEqual((await send('x.json', json(first))).result, { ...NONE, created: 1 })
  }
  const posts = json(createItem('a'), createItem('b', { content: 'new', tag_slugs: ['y'] }), createItem('c'))

  test('skip keeps the post', async () => {
    await importFirst()
    assert.deepEqual((await send('x.json', posts)).result, {
      ...NONE,
      created: 2,
      skipped: 1,
      errors: [{ slug: 'b', file: 'x.json', message: 'A post with this slug already exists' }],
    })
    assert.deepEqual(await readContents(), { a: 'a', b: 'old', c: 'c' })
  })
  test('overwrite replaces the post, but keeps times and author that the import lacks', async () => {
    await importFirst()
    assert.deepEqual((await send('x.json', posts, { onConflict: 'overwrite' })).result, {
      ...NONE,
      created: 2,
      updated: 1,
    })
    const { updated_at, ...b } = (await exported()).find(({ slug }) => slug === 'b')
    assert.deepEqual(b, {
      title: 'B',
      slug: 'b',
      excerpt: null,
      content: 'new',
      status: 'draft',
      author_name: 'Old',
      created_at: '2020-01-01T00:00:00.000Z',
      published_at: '2020-02-02T00:00:00.000Z',
      seo_title: null,
      seo_description: null,
      hero_image_url: null,
      tag_slugs: ['y'],
      tags: [{ name: 'y', slug: 'y' }],
    })
    assert.ok(updated_at > '2024')
    await assertCounted(query)
  })
  test('fail imports nothing', async () => {
    await importFirst()
    const { error, uploadId } = await send('x.json', posts, { onConflict: 'fail' })
    assert.deepEqual([error.code, error.retryable], ['import.conflict', false])
    assert.equal(error.detail, 'Nothing was imported: a post with the slug b already exists')
    assert.deepEqual(await readContents(), { b: 'old' })
    assert.deepEqual(await query('select slug from blog_tag'), [{ slug: 'x' }], 'tags neither')
    assert.deepEqual(await query('select 1 from blog_upload where id = $1', [uploadId]), [])
    await assertCounted(query)
  })
  test('fail without a conflict imports all', async () => {
    await importFirst()
    assert.deepEqual(
      (await send('x.json', json(createItem('d'), createItem('e')), { onConflict: 'fail' })).result,
      {
        ...NONE,
        created: 2,
      },
    )
  })
  test('fail after a thousand written posts imports nothing', async () => {
    await importFirst()
    const many = Array.from({ length: 1000 }, (_, i) => createItem(`n${i}`, { tag_slugs: [`t${i % 7}`] }))
    const { error } = await send('x.json', json(...many, createItem('b')), { onConflict: 'fail' })
    assert.equal(error.code, 'import.conflict')
    assert.deepEqual(await readContents(), { b: 'old' })
    await assertCounted(query)
  })
  test('two posts of one import conflict as well, and the first one stays', async () => {
    const twice = json(
      createItem('a', { content: 'one' }),
      createItem('z'),
      createItem('a', { content: 'two' }),
    )
    const errors = [{ slug: 'a', file: 'x.json', message: 'Another post of this import has the same slug' }]
    for (const onConflict of ['skip', 'overwrite'] as const) {
      await clear()
      const { result } = await send('x.json', twice, { onConflict })
      assert.deepEqual(result, { ...NONE, created: 2, skipped: 1, errors })
      assert.equal((await readContents()).a, 'one')
    }
    await clear()
    assert.equal((await send('x.json', twice, { onConflict: 'fail' })).error.code, 'import.conflict')
    assert.deepEqual(await readContents(), {})
  })
  test('posts without a slug get one from the title, with a number if another post has it', async () => {
    await clear()
    const items = [{ title: 'Ünï' }, { title: 'Uni' }, createItem('uni-2'), { title: 'uni!' }]
    assert.deepEqual((await send('x.json', json(...items))).result, { ...NONE, created: 4 })
    assert.deepEqual(await readContents(), { uni: '', 'uni-3': '', 'uni-2': 'uni-2', 'uni-4': '' })
    const again = (await send('x.json', json(...items))).result!
    assert.deepEqual([again.created, again.skipped, again.errors.length], [0, 4, 4])
    const late = json(...items.slice(0, 2), createItem('uni'))
    await clear()
    assert.deepEqual((await send('x.json', late, { onConflict: 'overwrite' })).result, {
      ...NONE,
      created: 3,
    })
    assert.equal((await readContents()).uni, 'uni', 'a given slug goes before a derived one')
  })
})

describe('an attempt', () => {
  test('reports its progress', async () => {
    const { progress } = await send(
      'x.json',
      json(...Array.from({ length: 120 }, (_, i) => createItem(`progress-${i}`))),
    )
    assert.deepEqual(progress, [
      'Reading the file',
      'Reading post 50 of 120',
      'Reading post 100 of 120',
      'Post 50 of 120',
      'Post 100 of 120',
      'Post 120 of 120',
    ])
  })
  test('writes nothing once it is superseded', async () => {
    await clear()
    const { error, uploadId } = await send('x.json', json(createItem('a')), { runningAttempt: 2 })
    assert.equal(error.code, 'job.superseded')
    assert.deepEqual(await exported(), [])
    assert.deepEqual((await run(uploadId)).result, { ...NONE, created: 1 }, 'the other one has its file')
  })
  test('writes nothing if it is cancelled', async () => {
    await clear()
    const { error } = await send('x.json', json(createItem('a')), { signal: AbortSignal.abort('cancelled') })
    assert.equal(error, 'cancelled')
    assert.deepEqual(await exported(), [])
  })
  test('returns the same result if it is repeated after the commit', async () => {
    await clear()
    const first = await send('x.json', json(createItem('a'), 1))
    assert.deepEqual([first.result!.created, first.result!.failed], [1, 1])
    assert.deepEqual((await run(first.uploadId)).result, first.result)
    assert.deepEqual(
      await query('select 1 from blog_upload_chunk where upload_id = $1', [first.uploadId]),
      [],
    )
  })
  test('fails without its file', async () =>
    assert.equal((await run(999_999)).error.code, 'import.bytes_missing'))
})

test('files of ended or abandoned imports are removed after a day', async () => {
  await query('delete from blog_upload')
  const jobs = await query(
    `insert into job (id, name, queue, mailbox, payload, status, max_tries, finished_at, lease_id) select gen_random_uuid(), 'n', 'q', 'n/0', '{}', s, 3,
       case when s = 'done' then now() end, case when s = 'running' then gen_random_uuid() end from unnest(array['done', 'running', 'available']) s returning id, status`,
  )
  const old: Record<string, number> = {}
  for (const [name, job] of [
    ...jobs.map(({ id, status }) => [String(status), id] as const),
    ['none', null] as const,
  ]) {
    old[name] = await upload('x.md', 'x')
    await query(
      `update blog_upload set job_id = $2, created_at = now() - interval '25 hours' where id = $1`,
      [old[name], job],
    )
  }
  const fresh = await upload('x.md', 'x')
  assert.deepEqual(await db.one(deleteAbandonedImports(100)), { count: 2 })
  const left = await query('select id::int from blog_upload order by id')
  assert.deepEqual(left.map(({ id }) => id).sort(), [old.running, old.available, fresh].sort())
})
