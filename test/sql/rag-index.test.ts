import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { uuidv7 } from '../../sql/ids.ts'
import { deleteOtherBuilds, listKnownFiles, openCollection } from '../../sql/rag/collections.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { loadChunkFiles } from '../../tasks/rag/chunk-files.ts'
import { createTestDatabase } from '../database.ts'
import { createRunOptions } from '../runs.ts'
import { addToBuild, createFile, swapIn } from '../tasks/rag-parts.ts'

/** After any swaps, the inverted index is that of the live chunks. */

const { db, query, url } = await createTestDatabase()
const reader = createReader({ url, applicationName: 'test' })
after(() => reader.close())

/** Returns the postings of a collection as they are stored: term, block, and the postings in ascending order. */
const readStored = (collection: number) =>
  query(
    `select term, block, array(select substr(postings, 1 + 4 * i, 4) from generate_series(0, length(postings) / 4 - 1) i order by 1) as found
     from rag_posting where collection_id = $1 order by term, block`,
    [collection],
  )

/** Returns the postings that the live chunks of a collection imply. */
const computeExpected = (collection: number) =>
  query(
    `select term, number / 8192 as block, array_agg(int2send((number % 8192)::int2)
        || set_byte(set_byte('\\x0000', 0, count), 1, rag_length_code(cardinality(terms))) order by number) as found
     from rag_chunk join rag_file f on f.id = file_id and f.build_id is null cross join lateral (
       select term, count(*)::int from (select unnest(terms) union all
         (select unnest(common_terms) except select unnest(terms))) every (term) group by term) t (term, count)
     where f.collection_id = $1 group by term, number / 8192 order by term, block`,
    [collection],
  )

/** Checks the lengths of files and the files of chunks, as searches read them. */
async function assertFiles(collection: number): Promise<void> {
  const { fileCount, fileOf, lengths } = await loadChunkFiles(reader, collection)
  const rows = await query(
    `select number, cardinality(terms) as length, file_id::int as file from rag_chunk join rag_file f on f.id = file_id
     where f.collection_id = $1 and build_id is null order by number`,
    [collection],
  )
  const files = Map.groupBy(rows, ({ file }) => file)
  assert.equal(fileCount, files.size)
  const seen = new Set<number>()
  for (const chunks of files.values()) {
    const [index, ...others] = new Set(chunks.map(({ number }) => fileOf[number as number] ?? 0))
    assert.deepEqual(others, [])
    if (chunks.length === 1) {
      assert.equal(index, 0)
      continue
    }
    assert.ok(index! > 0 && !seen.has(index!))
    seen.add(index!)
    const expected = chunks.reduce((sum, { length }) => sum + Number(length), 0)
    assert.equal(lengths[index!], expected)
  }
  assert.equal(lengths.length, seen.size + 1)
}

/** Returns a file with a chunk for each pair of words. */
const createChunks = (name: string, content: string) => ({
  ...createFile(name, content),
  chunks: (content.match(/\S+( \S+)?/g) ?? ['']).flatMap((part) => createFile(name, part).chunks),
})

const text = fc
  .array(fc.constantFrom('red', 'fox', 'the', 'wolves', 'go', '采购'), { maxLength: 6 })
  .map((words) => words.join(' '))
const source = fc.constantFrom('a.txt', 'b.txt', 'c.txt', 'd.txt')
const change = fc.record({
  texts: fc.dictionary(source, text, { maxKeys: 3 }),
  gone: fc.uniqueArray(source, { maxLength: 2 }),
  // An abandoned build keeps its numbers until the next run deletes it.
  isAbandoned: fc.boolean(),
})

let runs = 0
test('the index is that of the live chunks after any swaps', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
      const collection = await openCollection(db, `c${runs++}`)
      for (const { texts, gone, isAbandoned } of changes) {
        const build = uuidv7()
        await db.run(deleteOtherBuilds(collection, build))
        await addToBuild(
          db,
          collection,
          build,
          Object.entries(texts).map(([name, content]) => createChunks(name, content)),
        )
        if (isAbandoned) continue
        const goneFiles = (await db.any(listKnownFiles(collection, null)))
          .filter((file) => gone.some((name) => name === file.source))
          .map(({ id }) => id)
        await swapIn(db, { collection, build, goneFiles, request: {}, model: null })
        assert.deepEqual(await readStored(collection), await computeExpected(collection))
        const [counts] = await query(
          `select chunk_count, term_count::int, (select count(*)::int from rag_file f join rag_chunk on file_id = f.id where f.collection_id = c.id and build_id is null) as chunks,
             (select coalesce(sum(cardinality(terms)), 0)::int from rag_file f join rag_chunk on file_id = f.id where f.collection_id = c.id and build_id is null) as terms
           from rag_collection c where id = $1`,
          [collection],
        )
        assert.deepEqual([counts!.chunk_count, counts!.term_count], [counts!.chunks, counts!.terms])
        await assertFiles(collection)
      }
    }),
    createRunOptions(30),
  )
})

test('new chunks get the numbers of removed ones', async () => {
  const collection = await openCollection(db, 'numbers')
  const swap = async (names: readonly string[]): Promise<unknown[]> => {
    const build = uuidv7()
    await addToBuild(
      db,
      collection,
      build,
      names.map((name) => createFile(name, name)),
    )
    await swapIn(db, { collection, build, goneFiles: [], request: {}, model: null })
    const rows = await query(
      'select source, number from rag_chunk join rag_file on id = file_id where rag_chunk.collection_id = $1 order by number',
      [collection],
    )
    return rows.map((row) => `${row.number} ${row.source}`)
  }
  assert.deepEqual(await swap(['a', 'b', 'c']), ['0 a', '1 b', '2 c'])
  assert.deepEqual(await swap(['b']), ['0 a', '2 c', '3 b'])
  assert.deepEqual(await swap(['a', 'c', 'd']), ['1 a', '3 b', '4 c', '5 d'])
})

test('chunks are found in every block', async () => {
  const collection = await openCollection(db, 'blocks')
  const file = createFile('long.txt', 'wolf')
  const chunks = Array.from({ length: 8200 }, (_, i) => ({
    ...file.chunks[0]!,
    content: i % 4100 === 0 ? 'wolf' : 'x y',
  }))
  await addToBuild(db, collection, 'a0000000-0000-4000-8000-000000000000', [{ ...file, chunks }])
  await swapIn(db, {
    collection,
    build: 'a0000000-0000-4000-8000-000000000000',
    goneFiles: [],
    request: {},
    model: null,
  })
  assert.deepEqual(await readStored(collection), await computeExpected(collection))
  const [row] = await query(
    'select count(distinct block)::int as blocks from rag_posting where collection_id = $1',
    [collection],
  )
  assert.equal(row!.blocks, 2)
})
