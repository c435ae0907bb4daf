import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import pg from 'pg'
import { storePostWords } from '../../sql/blog/search.ts'
import { connect } from '../../sql/connections/driver.ts'
import { noRows, sql } from '../../sql/db.ts'
import { storeWords } from '../../sql/documents/pages.ts'
import { PRUNED_TABLES } from '../../sql/retention/retention.ts'
import { createTestDatabase, vacuumAnalyze, waitForLock } from '../database.ts'
import { stopAfterFile } from '../services.ts'
import { until } from '../until.ts'
import { assertWriteByIndex } from './plans-help.ts'

/** The index keeps a word until no text contains it. */

const { url, db, query } = await createTestDatabase()
const { prune } = PRUNED_TABLES.find(({ table }) => table === 'search_word')!
const sweepWords = (max = 100) => db.one(prune(30, max))
const readWords = async (): Promise<string> =>
  (await query('select word from search_word order by word')).map(({ word }) => word).join(' ')
const ageWords = (days: number) =>
  query(`update search_word set seen_at = now() - make_interval(days => $1)`, [days])
const addDocument = async (title: string): Promise<number> =>
  (
    await query(
      `insert into document (title, media_type, byte_size, sha256) values ($1, 't', 1, sha256(gen_random_uuid()::text::bytea)) returning id::int`,
      [title],
    )
  )[0]!.id as number
const INSERT_PAGE = `insert into document_page (document_id, page_number, status, method, text, job_id)
  values ($1, $2, 'read', 'none', $3, gen_random_uuid())`

describe('words', { concurrency: false }, () => {
  beforeEach(() => query('truncate document, document_page, search_word, search_pass cascade'))

  test('without a page or a live document are deleted once they are old enough', async () => {
    const id = await addDocument('title')
    await query(INSERT_PAGE, [id, 1, `Quagga o'neill back\\slash`])
    const gone = await addDocument('other words')
    await query('update document set deleted_at = now(), expires_at = now() where id = $1', [gone])
    const all = await readWords()
    assert.equal(all, `back neill other quagga slash title words`)
    await ageWords(29)
    assert.deepEqual(await sweepWords(), { count: 0, deleted: 0 })
    await ageWords(31)
    assert.deepEqual(
      await sweepWords(),
      { count: 3 + 2, deleted: 2 },
      'two documents and a page, and two words',
    )
    assert.equal(await readWords(), 'back neill quagga slash title')
    assert.deepEqual(await sweepWords(), { count: 0, deleted: 0 }, 'words that were found count as seen')
    await query('delete from document_page')
    await ageWords(31)
    await sweepWords()
    assert.equal(await readWords(), 'title')
  })

  test('of posts are kept while a post has them', async () => {
    const titles = ['Quagga', 'Okapi', 'Zebra']
    for (const [n, title] of titles.entries())
      await query('insert into blog_post (title, slug) values ($1, $2)', [title, `words-${n}`])
    const ids = (await query('select id::int from blog_post order by id')).map(({ id }) => id as number)
    await db.run(storePostWords(ids))
    assert.equal(await readWords(), 'okapi quagga zebra')
    await query('delete from blog_post where id = $1', [ids[1]])
    await ageWords(31)
    const batches = [await sweepWords(1), await sweepWords(1), await sweepWords(1), await sweepWords(1)]
    assert.deepEqual(
      batches.map(({ count, deleted }) => [count, deleted]),
      [
        [1, 0],
        [1, 0],
        [1, 1],
        [0, 0],
      ],
    )
    assert.equal(await readWords(), 'quagga zebra')
    await query('delete from blog_post')
  })

  test('return with a restored document', async () => {
    const id = await addDocument('title')
    await query('update document set deleted_at = now(), expires_at = now() where id = $1', [id])
    await ageWords(31)
    await sweepWords()
    assert.equal(await readWords(), '')
    await query('update document set deleted_at = null, expires_at = null where id = $1', [id])
    assert.equal(await readWords(), 'title')
  })

  test('are checked in batches of the given size, resuming where the last one ended', async () => {
    for (const title of ['one', 'two', 'three']) {
      const id = await addDocument(title)
      for (const page of [1, 2, 3]) await query(INSERT_PAGE, [id, page, `${title}${page}`])
    }
    const kept = await readWords()
    await query(
      `insert into search_word (owner_id, word) select 0, 'gone' || n from generate_series(1, 12) n`,
    )
    await ageWords(31)
    const batches: { count: number; deleted: number }[] = []
    for (let full = true; full; full = batches.at(-1)!.count >= 5) batches.push(await sweepWords(5))
    assert.deepEqual(batches, [
      { count: 5, deleted: 0 },
      { count: 5, deleted: 0 },
      { count: 2 + 5, deleted: 5 },
      { count: 5, deleted: 5 },
      { count: 2, deleted: 2 },
    ])
    assert.equal(await readWords(), kept)
    assert.deepEqual(await query('select * from search_pass'), [])
  })

  test('are marked as seen when they are written again, at most once in three days', async () => {
    await addDocument('title')
    const wasSeenLately = async () =>
      (await query('select now() - seen_at < $1::interval as lately from search_word', ['1 hour']))[0]!.lately
    await ageWords(2)
    await addDocument('title')
    assert.equal(await wasSeenLately(), false)
    await ageWords(4)
    await addDocument('title')
    assert.equal(await wasSeenLately(), true)
  })

  test('are kept when a page with them is written during the check', async () => {
    await query(
      `insert into search_word (owner_id, word, seen_at) values (0, 'okapi', now() - interval '1 year')`,
    )
    const id = await addDocument('t')
    const other = new pg.Client({ connectionString: url })
    await other.connect()
    stopAfterFile(() => other.end())
    await other.query('begin')
    await other.query(INSERT_PAGE, [id, 1, 'okapi'])
    const sweeping = sweepWords()
    // The deletion waits for the row, which the page's transaction has marked as used.
    await waitForLock(query)
    await other.query('commit')
    assert.deepEqual(await sweeping, { count: 1, deleted: 0 }, 'it has looked at the document')
    assert.equal(await readWords(), 'okapi')
  })

  test('of long pages never deadlock two extractions, and are stored at their end', async () => {
    const rest = (words: string): string => `${'x '.repeat(8000)}${words}`
    const insert = `insert into document_page (document_id, page_number, status, method, search, text, job_id)
      select $1, n, 'read', 'none', search_vector(page_part(content, 0)), content, gen_random_uuid()
      from unnest($2::text[]) with ordinality page (content, n)`
    const [blocker, ...writers] = [0, 1, 2].map(() => new pg.Client({ connectionString: url })) as [
      pg.Client,
      pg.Client,
      pg.Client,
    ]
    for (const client of [blocker, ...writers]) {
      await client.connect()
      stopAfterFile(() => client.end())
    }
    const ids = [await addDocument('one'), await addDocument('two')]
    await blocker.query('begin')
    await blocker.query(`insert into search_word (owner_id, word) values (0, 'marlin')`)
    let settled = 0
    // Each one stores the word that the other one needs next, if it stores words by page.
    const writing = [
      ['narwhal', 'marlin okapi'],
      ['okapi', 'marlin narwhal'],
    ].map((pages, n) =>
      writers[n]!.query(insert, [ids[n], pages.map(rest)]).finally(() => {
        settled++
      }),
    )
    const results = Promise.allSettled(writing)
    await until('both are done, or wait for the word', async () => {
      const [row] = await query(
        `select count(*)::int as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return settled + Number(row!.waiting) === 2
    })
    await blocker.query('rollback')
    assert.deepEqual(
      (await results).map(({ status }) => status),
      ['fulfilled', 'fulfilled'],
    )
    await Promise.all(ids.map((id) => db.run(storeWords(id, 1, 2))))
    assert.equal(await readWords(), 'marlin narwhal okapi one two')
  })

  test('are found by an index when they are stored, checked or deleted', async () => {
    await query(
      `insert into search_word (owner_id, word, seen_at) select 0, 'w' || n, now() - interval '40 days' from generate_series(1, 5000) n`,
    )
    const id = await addDocument('t')
    await query(
      `insert into document_page (document_id, page_number, status, method, text, job_id)
       select $1, n, 'read', 'none', 'w' || n || ' w' || n + 1, gen_random_uuid() from generate_series(1, 1500) n`,
      [id],
    )
    await vacuumAnalyze(query)
    const client = await connect({ url, applicationName: 'plans' })
    stopAfterFile(() => client.end())
    await assertWriteByIndex(client, () => prune(30, 100), 'search_word')
    await assertWriteByIndex(client, () => prune(30, 100), 'document_page')
    await assertWriteByIndex(
      client,
      () =>
        sql.type(noRows)`select search_words_store(array[null]::integer[], array['w17 w18 w5001'::tsvector])`,
      'search_word',
    )
  })
})
