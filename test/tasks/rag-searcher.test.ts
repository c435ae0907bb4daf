import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Database } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import {
  listDeletedCollections,
  listKnownFiles,
  markCollectionDeleted,
  openCollection,
} from '../../sql/rag/collections.ts'
import { readCollectionState } from '../../sql/rag/reads.ts'
import { addVectors } from '../../sql/rag/vectors.ts'
import { createReader, type Reader } from '../../sql/reads/reader.ts'
import { COLLECTION_DEPENDENTS, purgeRows } from '../../sql/retention/purge.ts'
import { createSearcher, type Searcher } from '../../tasks/rag/searcher.ts'
import { createTestDatabase } from '../database.ts'
import { ALL_VIEWER, addToBuild, createFile, swapIn, toBytes } from './rag-parts.ts'

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
  await addToBuild(db, collection, build, files)
  const known = await db.any(listKnownFiles(collection, null))
  const left = known.filter(({ source }) => gone.includes(source)).map(({ id }) => id)
  if (model !== null)
    for (const { id } of [...known, ...(await db.any(listKnownFiles(collection, build)))])
      await db.run(
        addVectors(model, [{ file: id, dimensions: 2, floats: toBytes(new Float32Array([1, 0])) }]),
      )
  await swapIn(db, { collection, build, goneFiles: left, request: {}, model })
}

const createTexts = (word: string, count = 10): Texts =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}.txt`, `common ${word}`]))

/** Creates a searcher that runs `what` after it has read the state of the collection, for the first `times` times. */
function createInterruptedSearcher(what: () => Promise<unknown>, times = 1): Searcher {
  const text: Reader['text'] = async (...given) => {
    const state = await reader.text(...given)
    if (given[0].name === readCollectionState.name && times-- > 0) await what()
    return state
  }
  return createSearcher(db, { ...reader, text })
}

/** Creates a searcher that awaits `heard` after each statement that loads vectors. */
function createWatchedSearcher(heard: (isList: boolean, rows: number) => unknown): Searcher {
  const any = async (statement: Parameters<Database['any']>[0]) => {
    const rows = await db.any(statement)
    await heard(statement.sql.includes('from rag_collection'), rows.length)
    return rows
  }
  return createSearcher({ ...db, any } as Database, reader)
}

async function searchContents(
  searcher: Searcher,
  collection: string,
  text = 'common',
): Promise<readonly string[]> {
  const search = { collection, viewer: ALL_VIEWER, query: text, topK: 50, filter: null, vector: null }
  return (await searcher.search(search)).map(({ content }) => content).sort()
}

describe('a swap between two reads of a search', () => {
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

describe('a search by vectors', () => {
  const searchNear = async (searcher: Searcher, collection: string, model: string, floats = [1, 0]) => {
    const search = { collection, viewer: ALL_VIEWER, query: 'nothing', topK: 5, filter: null }
    return searcher.search({ ...search, vector: { model, floats: new Float32Array(floats) } })
  }

  test('after a swap does not settle for a load that began before it', async () => {
    await swapTexts('joined', { 'a.txt': 'old' }, [], 'm1')
    const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const searcher = createWatchedSearcher((isList) => {
      if (!isList) return
      reached.resolve()
      return gate.promise
    })
    const early = searchNear(searcher, 'joined', 'm1')
    await reached.promise
    await swapTexts('joined', { 'b.txt': 'new' }, [], 'm1')
    const late = searchNear(searcher, 'joined', 'm1')
    // In the next turn, the second search joins the load that is already running.
    await setImmediate()
    gate.resolve()
    assert.deepEqual((await late).map(({ content }) => content).sort(), ['new', 'old'])
    assert.deepEqual((await early).map(({ content }) => content).sort(), ['new', 'old'])
  })

  test('uses vectors and chunks of the same version', async () => {
    await swapTexts('model', createTexts('old', 2), [], 'm1')
    let isFirst = true
    const searcher = createWatchedSearcher(async (isList) => {
      if (isList && isFirst) await swapTexts('model', {}, [], 'm2')
      isFirst = false
    })
    const signals = async (model: string, floats?: number[]) =>
      (await searchNear(searcher, 'model', model, floats)).map(({ metadata }) => metadata.signals)
    assert.deepEqual(await signals('m1'), [], 'a vector of another model says nothing')
    assert.equal(await searcher.modelOf({ collection: 'model', viewer: ALL_VIEWER }), 'm2')
    assert.deepEqual(await signals('m2'), [['vector'], ['vector']])
    assert.deepEqual(await signals('m2', [1, 0, 0]), [], 'nor does one of another length')
  })

  test('keeps unchanged vectors in memory', async () => {
    await swapTexts('kept', createTexts('old', 3), [], 'm1')
    let loaded = 0
    const searcher = createWatchedSearcher((isList, rows) => {
      if (!isList) loaded += rows
    })
    for (const [change, more] of [
      [{}, 3],
      [{ '1.txt': 'common new' }, 1],
    ] as const) {
      loaded = 0
      await swapTexts('kept', change, [], 'm1')
      assert.equal((await searchNear(searcher, 'kept', 'm1')).length, 3)
      assert.equal(loaded, more)
    }
  })
})
