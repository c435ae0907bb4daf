import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, describe, test } from 'node:test'
import { PGlite } from '@electric-sql/pglite'
import { btree_gin } from '@electric-sql/pglite/contrib/btree_gin'
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm'
import { unaccent } from '@electric-sql/pglite/contrib/unaccent'
import { vector } from '@electric-sql/pglite-pgvector'
import type { Database, Query } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { listKnownFiles, openCollection } from '../../sql/rag/collections.ts'
import { addNeighbours, addVectors, copyVectors, createNeighbourTable } from '../../sql/rag/vectors.ts'
import type { Reader } from '../../sql/reads/reader.ts'
import { readFunctionAreas } from '../../sql/server/migrations.ts'
import { createSearcher } from '../../tasks/rag/searcher.ts'
import { ALL_VIEWER, addToBuild, createFile, swapIn, toBytes } from '../tasks/rag-parts.ts'

/** Tests collections with the pgvector of PGlite, because the embedded server lacks pgvector. */

const pg = await PGlite.create({ extensions: { vector, btree_gin, pg_trgm, unaccent } })
after(() => pg.close())
const readTables = (area: string): string =>
  readFileSync(new URL(`../../sql/${area}/tables.sql`, import.meta.url), 'utf8')
for (const area of ['common', 'search']) await pg.exec(readTables(area))
// Minimal versions of the tables that collections of documents reference.
await pg.exec(`create table account (id integer primary key, deleted_at timestamptz)`)
await pg.exec(`create table document (id bigint primary key, owner_id integer, deleted_at timestamptz, title text, kind text,
  tags text[], document_date date, received_at timestamptz, source text, channel text)`)
await pg.exec(readTables('rag'))
await pg.exec('set check_function_bodies = off')
for (const { name, text } of await readFunctionAreas())
  if (name === 'search' || name === 'rag') await pg.exec(text)

// slonik replaces its own placeholders with `$n` only when it sends a query.
const runQuery = async ({ sql: text, values }: Query<unknown>) =>
  pg.query<Record<string, unknown>>(text.replace(/\$slonik_(\d+)/g, '$$$1'), [...values])
const db = {
  any: async (query: Query<unknown>) => (await runQuery(query)).rows,
  one: async (query: Query<unknown>) => (await runQuery(query)).rows[0],
  maybeOne: async (query: Query<unknown>) => (await runQuery(query)).rows[0] ?? null,
  run: async (query: Query<unknown>) => (await runQuery(query)).affectedRows ?? 0,
  transaction: <T>(work: (tx: unknown) => Promise<T>): Promise<T> => work(db),
} as unknown as Database
const texts: Reader['texts'] = async ({ text }, values) =>
  (await pg.query(text, [...values])).rows.map((row) => String(Object.values(row as object)[0]))
const reader = { texts, text: async (...given) => (await texts(...given))[0] ?? null } as Reader
const searcher = createSearcher(db, reader)

const DIMENSIONS = 8
const unitVector = (n: number): Float32Array => {
  const values = Array.from({ length: DIMENSIONS }, (_, i) => Math.sin(n * 12.9898 + i * 78.233))
  const length = Math.hypot(...values)
  return Float32Array.from(values, (value) => value / length)
}

/** Stores a collection of one-chunk files. File `n` has the word `w<n>` and the vector `unitVector(n)`. */
async function storeCollection(
  name: string,
  from: number,
  count: number,
  withNeighbours = true,
): Promise<number> {
  const collection = await openCollection(db, name)
  const build = uuidv7()
  const numbers = Array.from({ length: count }, (_, i) => from + i)
  await addToBuild(
    db,
    collection,
    build,
    numbers.map((n) => createFile(`${n}.${n % 2 === 0 ? 'md' : 'txt'}`, `w${n}`)),
  )
  const files = (await db.any(listKnownFiles(collection, build))).map(({ id, source }) => ({
    id,
    n: Number.parseInt(source, 10),
  }))
  await db.run(
    addVectors(
      'm',
      files.map(({ id, n }) => ({ file: id, dimensions: DIMENSIONS, floats: toBytes(unitVector(n)) })),
    ),
  )
  if (withNeighbours) {
    assert.equal((await db.one(createNeighbourTable(DIMENSIONS))).ready, true)
    const rows = files.map(({ id, n }) => ({ file: id, ordinal: 0, vector: unitVector(n) }))
    await db.run(addNeighbours('m', DIMENSIONS, rows))
  }
  await swapIn(db, { collection, build, goneFiles: [], request: {}, model: 'm' })
  return collection
}

const searchNear = async (collection: string, n: number, more: object = {}): Promise<number[]> => {
  const search = {
    viewer: ALL_VIEWER,
    collection,
    query: 'nothing',
    topK: 10,
    filter: null,
    vector: { model: 'm', floats: unitVector(n) },
    ...more,
  }
  return (await searcher.search(search)).map(({ metadata }) => Number.parseInt(String(metadata.source), 10))
}
/** Returns the nearest files, found by a full scan of the vectors. */
const scanNearest = (wanted: number, numbers: readonly number[]): number[] => {
  const near = (n: number): number =>
    unitVector(n).reduce((sum, value, i) => sum + value * unitVector(wanted)[i]!, 0)
  return [...numbers].sort((a, b) => near(b) - near(a)).slice(0, 10)
}
const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i)

describe('a collection with pgvector', () => {
  test('is searched by its index, without vectors of other collections', async () => {
    const id = await storeCollection('one', 0, 200)
    await storeCollection('two', 200, 200)
    const rows = await pg.query('select has_neighbours from rag_collection')
    assert.deepEqual(rows.rows, [{ has_neighbours: true }, { has_neighbours: true }])
    for (const wanted of [3, 150, 399]) {
      const expected = scanNearest(wanted, range(0, 200))
      const got = await searchNear('one', wanted)
      assert.equal(got[0], expected[0])
      // The index is approximate, but rarely misses more than one of so few vectors.
      assert.ok(got.filter((n) => expected.includes(n)).length >= 9, `${got} against ${expected}`)
      assert.ok((await searchNear('two', wanted)).every((n) => n >= 200))
    }
    await pg.exec('set enable_seqscan = off')
    const plan = await pg.query(`explain select file_id from rag_neighbour_8 where collection_id = ${id}
      order by embedding <#> '[1,0,0,0,0,0,0,0]' limit 5`)
    await pg.exec('reset enable_seqscan')
    assert.match(JSON.stringify(plan.rows), /rag_neighbour_8_embedding_idx/)
  })

  test('is filtered exactly', async () => {
    const even = range(0, 200).filter((n) => n % 2 === 0)
    assert.deepEqual(await searchNear('one', 7, { filter: { extension: 'md' } }), scanNearest(7, even))
    assert.deepEqual(await searchNear('one', 7, { filter: { source: '12.md' } }), [12])
    assert.deepEqual(await searchNear('one', 7, { filter: { source: 'none' } }), [])
    const filter = { source: { $in: ['12.md', '13.txt', '14.md'] }, extension: { $not: { $eq: 'txt' } } }
    assert.deepEqual((await searchNear('one', 7, { filter })).sort(), [12, 14])
  })

  test('is also searched by words', async () => {
    const [first] = await searcher.search({
      collection: 'one',
      viewer: ALL_VIEWER,
      query: 'w5',
      topK: 1,
      filter: null,
      vector: { model: 'm', floats: unitVector(5) },
    })
    assert.deepEqual(first!.metadata.signals, ['lexical', 'vector'])
    assert.equal(first!.score, 1)
  })

  test('deletes vectors of deleted files from the index', async () => {
    const count = async () =>
      (await pg.query<{ n: number }>('select count(*)::int as n from rag_neighbour_8')).rows[0]!.n
    const before = await count()
    await pg.exec(`delete from rag_file where source = '11.txt'`)
    assert.equal(await count(), before - 1)
  })

  test('has the copied vectors of new files with the same texts in its index', async () => {
    const collection = await storeCollection('copied', 3000, 20)
    const build = uuidv7()
    const file = (n: number, content = `w${n}`) => createFile(`${n}.${n % 2 === 0 ? 'md' : 'txt'}`, content)
    await addToBuild(db, collection, build, [file(3001), file(3002, 'other'), file(4000)])
    await db.run(copyVectors({ collection, build }, 'm'))
    await swapIn(db, { collection, build, goneFiles: [], request: {}, model: 'm' })
    const { rows } = await pg.query(
      `select source from rag_file f join rag_neighbour_8 n on n.file_id = f.id where f.collection_id = $1 and f.source in
       ('3001.txt', '3002.md', '4000.md')`,
      [collection],
    )
    assert.deepEqual(rows, [{ source: '3001.txt' }])
  })

  test('is searched in memory if its vectors were stored before pgvector was available', async () => {
    await storeCollection('old', 1000, 50, false)
    const { rows } = await pg.query(`select has_neighbours from rag_collection where name = 'old'`)
    assert.deepEqual(rows, [{ has_neighbours: false }])
    assert.deepEqual(await searchNear('old', 1010), scanNearest(1010, range(1000, 50)))
  })

  test('is searched in its new state if it changes during a search', async () => {
    await storeCollection('newer', 2000, 5)
    let isFirst = true
    const changing: Reader = {
      ...reader,
      texts: async (statement, values) => {
        if (isFirst && statement.name === 'rag_neighbours') {
          isFirst = false
          await storeCollection('newer', 2005, 5)
        }
        return texts(statement, values)
      },
    }
    const hits = await createSearcher(db, changing).search({
      collection: 'newer',
      viewer: ALL_VIEWER,
      query: 'nothing',
      topK: 10,
      filter: null,
      vector: { model: 'm', floats: unitVector(2005) },
    })
    assert.equal(hits[0]!.metadata.source, '2005.txt')
    assert.equal(hits.length, 10)
  })

  test('has no index if its vectors are too long for one', async () => {
    assert.equal((await db.one(createNeighbourTable(2001))).ready, false)
  })
})
