import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Database } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import {
  addFiles,
  addVectors,
  listDeletedCollections,
  listKnownFiles,
  markCollectionDeleted,
  openCollection,
  swapBuild,
} from '../../sql/rag/collections.ts'
import { createReader, type Reader } from '../../sql/reads/reader.ts'
import { COLLECTION_DEPENDENTS, purgeRows } from '../../sql/retention/purge.ts'
import { createSearcher, type Searcher } from '../../tasks/rag/searcher.ts'
import { createTestDatabase } from '../database.ts'
import { ALL_VIEWER, createFile, toBytes } from './rag-parts.ts'

/** Searches a collection that changes between any two statements of the search. */

const { db, query, url } = await createTestDatabase()
const reader = await createReader({ url, applicationName: 'test' })
after(() => reader.close())

/** Texts by file name; each file is one chunk. */
type Texts = Readonly<Record<string, string>>

/** Swaps in a build with new texts. With `model`, all chunks get the same vector. */
async function swapTexts(
  name: string,
  texts: Texts,
  gone: readonly string[] = [],
  model: string | null = null,
) {
  const [collection, build] = [await openCollection(db, name), uuidv7()]
  const files = Object.entries(texts).map(([source, content]) => createFile(source, content))
  await addFiles(db, collection, build, files)
  const known = await db.any(listKnownFiles(collection, null))
  const left = known.filter(({ source }) => gone.includes(source)).map(({ id }) => id)
  if (model !== null)
    for (const { id } of [...known, ...(await db.any(listKnownFiles(collection, build)))])
      await db.run(
        addVectors(model, [{ file: id, dimensions: 2, floats: toBytes(new Float32Array([1, 0])) }]),
      )
  await db.one(swapBuild({ collection, build, goneFiles: left, request: {}, model }))
}

const createTexts = (word: string, count = 10): Texts =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}.txt`, `common ${word}`]))

const isFileList = ({ sql }: { readonly sql: string }): boolean => sql.includes('from rag_collection')

/** Creates a searcher that awaits `heard` after each statement. */
function createWatchedSearcher(
  heard: (list: boolean, rows: number) => unknown,
  reads: Reader = reader,
): Searcher {
  const any = async (statement: Parameters<Database['any']>[0]) => {
    const rows = await db.any(statement)
    await heard(isFileList(statement), rows.length)
    return rows
  }
  return createSearcher({ ...db, any } as Database, reads)
}

/** Creates a searcher that runs `what` after reading a list of files, for the first `times` lists. */
const createInterruptedSearcher = (
  what: () => Promise<unknown>,
  times = 1,
  reads: Reader = reader,
): Searcher => createWatchedSearcher((list) => (list && times-- > 0 ? what() : undefined), reads)

async function searchContents(
  searcher: Searcher,
  collection: string,
  text = 'common',
): Promise<readonly string[]> {
  const search = { collection, viewer: ALL_VIEWER, query: text, topK: 50, filter: null, vector: null }
  return (await searcher.search(search)).map(({ content }) => content).sort()
}

describe('a swap between the list of files and their loading', () => {
  test('of all files returns the new ones', async () => {
    await swapTexts('all', createTexts('old'))
    const searcher = createInterruptedSearcher(() => swapTexts('all', createTexts('new')))
    assert.deepEqual(await searchContents(searcher, 'all'), Object.values(createTexts('new')))
  })

  test('of one file misses none, then or later', async () => {
    await swapTexts('one', createTexts('old'))
    const searcher = createInterruptedSearcher(() => swapTexts('one', { '3.txt': 'common new' }))
    const expected = ['common new', ...Object.values(createTexts('old', 9))]
    assert.deepEqual(await searchContents(searcher, 'one'), expected)
    assert.deepEqual(await searchContents(searcher, 'one'), expected)
  })

  test('that removes files does not return them', async () => {
    await swapTexts('away', createTexts('old', 3))
    const searcher = createInterruptedSearcher(() => swapTexts('away', {}, ['0.txt', '1.txt']))
    assert.deepEqual(await searchContents(searcher, 'away'), ['common old'])
  })

  test('that removes all files returns nothing', async () => {
    await swapTexts('none', createTexts('old', 1))
    assert.deepEqual(
      await searchContents(
        createInterruptedSearcher(() => swapTexts('none', {}, ['0.txt'])),
        'none',
      ),
      [],
    )
  })

  test('at every attempt fails because the collection keeps changing', async () => {
    await swapTexts('busy', createTexts('old', 1))
    let changes = 0
    const searcher = createInterruptedSearcher(
      () => swapTexts('busy', createTexts(`version${changes++}`, 1)),
      100,
    )
    await assert.rejects(searchContents(searcher, 'busy'), { code: 'rag.busy' })
    assert.equal(changes, 5)
  })

  test('and a deletion fails because the collection is missing', async () => {
    await swapTexts('gone', createTexts('old'))
    const searcher = createInterruptedSearcher(async () => {
      const [row] = await query(`select id from rag_collection where name = 'gone'`)
      await db.run(markCollectionDeleted(row!.id as number))
      for (const { id } of await db.any(listDeletedCollections()))
        await db.one(purgeRows(COLLECTION_DEPENDENTS[0]!, id))
    })
    await assert.rejects(searchContents(searcher, 'gone'), { code: 'rag.missing' })
  })
})

test('a swap without a model keeps the old model, and counts no file twice', async () => {
  await swapTexts('half', createTexts('old', 3), [], 'm1')
  const readHalf = () =>
    query(`select id, document_count, chunk_count, term_count, embedding_model from rag_collection
      where name = 'half'`)
  const before = await readHalf()
  // Vectors of another model remain from a run that lost the collection.
  await query(
    `insert into rag_vector select f.id, 'm2', 3, '\\x000000000000000000000000' from rag_file f where collection_id = $1
     limit 2`,
    [before[0]!.id],
  )
  await swapTexts('half', {})
  assert.deepEqual(await readHalf(), before)
  await swapTexts('half', {}, [], 'm2')
  assert.deepEqual(await readHalf(), [{ ...before[0], embedding_model: 'm2' }])
  await swapTexts('half', {}, ['0.txt', '1.txt', '2.txt'])
  assert.deepEqual(await readHalf(), [
    { id: before[0]!.id, document_count: 0, chunk_count: 0, term_count: '0', embedding_model: null },
  ])
})

describe('a search', () => {
  test('after a swap does not settle for a load that began before it', async () => {
    await swapTexts('joined', { 'a.txt': 'old' })
    const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let states = 0
    const countingReader: Reader = {
      ...reader,
      text: async (...given) => {
        const state = await reader.text(...given)
        // In the next turn, the second search joins the load that is already running.
        if (++states === 2) void setImmediate().then(gate.resolve)
        return state
      },
    }
    const stop = (): Promise<void> => {
      reached.resolve()
      return gate.promise
    }
    const searcher = createInterruptedSearcher(stop, 1, countingReader)
    const early = searchContents(searcher, 'joined', 'new')
    await reached.promise
    await swapTexts('joined', { 'b.txt': 'new' })
    assert.deepEqual(await searchContents(searcher, 'joined', 'new'), ['new'])
    await early
  })

  test('uses vectors and files of the same version', async () => {
    await swapTexts('model', createTexts('old', 2), [], 'm1')
    const searcher = createInterruptedSearcher(() => swapTexts('model', {}, [], 'm2'))
    const signals = async (model: string, floats = new Float32Array([1, 0])) => {
      const search = { collection: 'model', viewer: ALL_VIEWER, query: 'nothing', topK: 5, filter: null }
      const hits = await searcher.search({ ...search, vector: { model, floats } })
      return hits.map(({ metadata }) => metadata.signals)
    }
    await searchContents(searcher, 'model')
    assert.equal(await searcher.modelOf({ collection: 'model', viewer: ALL_VIEWER }), 'm2')
    assert.deepEqual(await signals('m2'), [['vector'], ['vector']])
    assert.deepEqual(await signals('m1'), [], 'a vector of another model says nothing')
    assert.deepEqual(await signals('m2', new Float32Array([1, 0, 0])), [], 'nor does one of another length')
  })

  test('keeps unchanged data in memory', async () => {
    await swapTexts('kept', createTexts('old', 3))
    let loaded = 0
    const searcher = createWatchedSearcher((list, rows) => {
      if (!list) loaded += rows
    })
    for (const [change, more] of [
      [{}, 3],
      [{ '1.txt': 'common new' }, 1],
    ] as const) {
      loaded = 0
      await swapTexts('kept', change)
      assert.equal((await searchContents(searcher, 'kept')).length, 3)
      assert.equal(loaded, more)
    }
  })
})
