import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isSafeImageAddress, toPublicName } from '../../tasks/blog/public.ts'
import { IS_LONG, SEED } from '../runs.ts'
import { createImports } from '../tasks/import-help.ts'
import { createCaller } from './blog-help.ts'
import { startEdgeAndDatabase } from './harness.ts'

/** Exporting, importing into an empty blog and exporting again must give the same bytes. */

const { api, ...database } = await startEdgeAndDatabase({ env: { AUTH_LEVEL: 'none' } })
const { send, clear } = createImports(database)
const call = createCaller(api)
const { query } = database
const POST_COUNT = IS_LONG ? 5000 : 100

// Text that could break front matter, Markdown, YAML, JSON or zip.
const HOSTILE_TEXTS = [
  '',
  ' ',
  '---',
  '\n---\n',
  '---\ntitle: x\n---\n',
  '+++',
  '...',
  '\n...\n',
  '{',
  '{"a":1}',
  '# x',
  ': ',
  'a: b',
  '- x',
  '&a',
  '*a',
  '!x',
  '!!str x',
  '%TAG',
  '@x',
  '`x`',
  '"',
  "'",
  '\\',
  '\\n',
  '|',
  '>',
  '|-\n  x',
  '? x',
  '[',
  ']',
  '{{ x }}',
  '{% x %}',
  'null',
  '~',
  'true',
  'no',
  '1.10',
  '0x1F',
  '1e3',
  '2020-01-02',
  '.inf',
  '\t',
  '\r',
  '\r\n',
  '\n\n',
  '\uFEFF',
  '\u2028',
  '\u0085',
  '\u00a0',
  '\u200b',
  '\u202e',
  '\x01',
  '\x7f',
  '\u{1F600}',
  '\u{10FFFF}',
  '題',
  '__proto__',
  '<x>',
  '#',
  ' #',
  '\u0301',
]
const arbitraryTextPiece = fc.oneof(
  fc.constantFrom(...HOSTILE_TEXTS),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ maxLength: 20 }),
)
const toStorableText = (text: string): string => text.toWellFormed().replaceAll('\0', '')
const truncate = (text: string, max: number): string => Array.from(text).slice(0, max).join('')
const arbitraryText = (max: number, pieces = 4) =>
  fc
    .array(arbitraryTextPiece, { maxLength: pieces })
    .map((all) => truncate(toStorableText(all.join('')), max))
const arbitraryOptionalText = (max: number) => fc.option(arbitraryText(max), { nil: null })
const arbitraryTime = fc
  .date({
    min: new Date('0001-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  })
  .map((date) => date.toISOString())
const arbitrarySlug = (max: number) =>
  fc
    .oneof(
      fc.constantFrom(
        'true',
        'null',
        'date',
        'none',
        'index',
        'pretty',
        '2020',
        '1-2',
        '0x1f',
        '1e3',
        'post',
        'md',
        'html',
      ),
      fc.string({
        unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789'),
        minLength: 1,
        maxLength: 12,
      }),
      fc.constant('x'.repeat(max)),
    )
    .map((all) => all.slice(0, max))

const arbitraryPost = fc
  .record({
    title: arbitraryText(200).map((title) => truncate(title.trim(), 200).trim() || 'T'),
    slug: arbitrarySlug(210),
    content: fc.oneof(
      { weight: 20, arbitrary: arbitraryText(100_000, 12) },
      { weight: 1, arbitrary: fc.constant('long '.repeat(50_000)) },
    ),
    status: fc.constantFrom('draft', 'published', 'archived'),
    excerpt: arbitraryOptionalText(500),
    author_name: arbitraryOptionalText(320).map((name) => toPublicName(name)),
    seo_title: arbitraryOptionalText(200),
    seo_description: arbitraryOptionalText(320),
    hero_image_url: arbitraryOptionalText(1023).map((rest) =>
      rest !== null && isSafeImageAddress(`/${rest}`) ? `/${rest}` : null,
    ),
    created_at: arbitraryTime,
    updated_at: arbitraryTime,
    published_at: fc.option(arbitraryTime, { nil: null }),
    tags: fc.uniqueArray(fc.nat(29), { maxLength: 5 }),
  })
  .map((made) => ({
    ...made,
    published_at: made.status === 'published' ? (made.published_at ?? made.created_at) : made.published_at,
  }))

/** Inserts posts directly into the tables, as if they had been written over years. */
async function insertPosts(): Promise<void> {
  const posts = fc.sample(arbitraryPost, { numRuns: POST_COUNT, seed: SEED })
  const tags = fc.sample(fc.record({ name: arbitraryText(70), slug: arbitrarySlug(90) }), {
    numRuns: 30,
    seed: SEED,
  })
  const rows = posts.map((one, i) => ({ ...one, slug: `${one.slug}-${i}` }))
  // Some slugs look like values in YAML or like file names.
  for (const [i, odd] of ['true', 'null', 'date', 'none', 'index', '2020', 'md'].entries())
    rows[i]!.slug = odd
  await query(
    `insert into blog_tag (name, slug) select g ->> 'name' || ' ' || n, left(g ->> 'slug', 90) || '-' || n from jsonb_array_elements($1::jsonb) with ordinality list(g, n)`,
    [JSON.stringify(tags)],
  )
  await query(
    `with given as (select * from jsonb_to_recordset($1::jsonb) as g(title text, slug text, content text, status text, excerpt text, author_name text,
        seo_title text, seo_description text, hero_image_url text, created_at timestamptz, updated_at timestamptz, published_at timestamptz, tags int[])),
      made as (insert into blog_post (title, slug, content, status, excerpt, author_name, seo_title, seo_description, hero_image_url, created_at, updated_at, published_at)
        select title, slug, content, status, excerpt, author_name, seo_title, seo_description, hero_image_url, created_at, updated_at, published_at from given returning id, slug)
    insert into blog_post_tag (post_id, tag_id)
    select made.id, t.id from made join given using (slug), unnest(given.tags) n, lateral (select id from blog_tag order by id offset n limit 1) t`,
    [JSON.stringify(rows)],
  )
}

async function exportBlog(format: string): Promise<Buffer> {
  const answer = await call(null, 'GET', '/export', { query: { format } })
  assert.equal(answer.status, 200)
  return answer.bytes
}

test('posts of every kind survive a zip and a JSON round trip', async () => {
  await insertPosts()
  const [zip, json] = [await exportBlog('markdown'), await exportBlog('json')]
  const posts = JSON.parse(json.toString()) as Record<string, unknown>[]
  assert.equal(posts.length, POST_COUNT)
  for (const [name, bytes] of [
    ['blog.zip', zip],
    ['blog.json', json],
  ] as const) {
    await clear()
    const { result, error } = await send(name, bytes)
    assert.equal(error, null, String(error?.detail ?? error?.stack))
    assert.deepEqual(result, { created: POST_COUNT, updated: 0, skipped: 0, failed: 0, errors: [] })
    // Compare posts first, so that a failure shows the first different post instead of all bytes.
    for (const [i, again] of (JSON.parse((await exportBlog('json')).toString()) as object[]).entries())
      assert.deepEqual(again, posts[i])
    assert.ok((await exportBlog('json')).equals(json), `${name}: the same JSON`)
    assert.ok((await exportBlog('markdown')).equals(zip), `${name}: the same archive`)
  }
  const again = await send('blog.zip', zip, { onConflict: 'overwrite' })
  assert.deepEqual(again.result, { created: 0, updated: POST_COUNT, skipped: 0, failed: 0, errors: [] })
  assert.ok((await exportBlog('json')).equals(json), 'written over itself it is the same')
})
