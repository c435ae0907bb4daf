import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { Failure, fail } from '../../sql/errors.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { markCollectionDeleted } from '../../sql/rag/collections.ts'
import { createReader } from '../../sql/reads/reader.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { type AnalysisOptions, analyze } from '../../tasks/rag/analyze.ts'
import { MAX_WAIT_MS } from '../../tasks/rag/embed-build.ts'
import { indexDocuments } from '../../tasks/rag/index-documents.task.ts'
import { indexFiles } from '../../tasks/rag/index-files.task.ts'
import { purgeCollections } from '../../tasks/rag/purge.task.ts'
import { refreshDocuments } from '../../tasks/rag/refresh-documents.task.ts'
import { createSearcher } from '../../tasks/rag/searcher.ts'
import { createTestDatabase } from '../database.ts'
import { createFolder, writeFiles } from '../edge/rag-help.ts'
import { TEST_KEYS } from '../keys.ts'
import { createPage } from './extract-help.ts'
import { ALL_VIEWER } from './rag-parts.ts'

/** Indexing runs are interrupted, superseded or overtaken, and searches run while a collection changes. */

const { db, query, url } = await createTestDatabase()
const reader = await createReader({ url, applicationName: 'test' })
after(() => reader.close())
const searcher = createSearcher(db, reader)
const root = createFolder()

interface RunOptions {
  readonly job?: string
  readonly path?: string
  /** Receives each progress label. */
  readonly onProgress?: (label: string) => void
  readonly fenced?: TaskContext['runFenced']
  readonly signal?: AbortSignal
  /** Embedding model of the settings; without it, indexing is lexical. */
  readonly model?: string
}

function createContext(run: RunOptions = {}): TaskContext {
  return {
    job: { id: run.job ?? uuidv7(), name: 'rag.index', attempt: 1, ownerId: null, requestId: null },
    dependencies: async () => [],
    db,
    settings: parseSettings({
      RAG_ROOT: root,
      RAG_EMBEDDINGS: run.model === undefined ? 'lexical' : 'local',
      RAG_MODEL: run.model ?? '',
    }),
    keys: TEST_KEYS,
    blobs: {} as never,
    retryJobs: () => Promise.resolve([]),
    log: { info: () => {}, warn: () => {}, error: () => {} },
    signal: run.signal ?? new AbortController().signal,
    providers: {
      openPages: async (load: () => Promise<Uint8Array>) => {
        const bytes = await load()
        return {
          pageCount: 2,
          read: (number: number) => Promise.resolve(createPage(`Page ${number} of ${Buffer.from(bytes)}`)),
          close: () => Promise.resolve(),
        }
      },
      analyze: async (bytes: Uint8Array, file: AnalysisOptions) => analyze(Buffer.from(bytes), file),
    } as never,
    reportProgress: (label) => run.onProgress?.(label),
    emit: () => {},
    runFenced: run.fenced ?? ((work) => db.transaction(work)),
  }
}

const runIndex = (collection: string, run: RunOptions = {}) =>
  indexFiles.run(createContext(run), {
    collection,
    path: run.path ?? collection,
    extensions: [],
    excludes: [],
    metadata: {},
    file_metadata: [],
  })
const searchNames = async (collection: string, text: string): Promise<unknown[]> => {
  const hits = await searcher.search({
    collection,
    viewer: ALL_VIEWER,
    query: text,
    topK: 50,
    filter: null,
    vector: null,
  })
  return hits.map(({ metadata }) => metadata.file_name)
}
const hideByName = async (collection: string): Promise<void> => {
  const [row] = await query('select id from rag_collection where name = $1', [collection])
  await db.run(markCollectionDeleted(row!.id as number))
}
const countRows = async (collection: string): Promise<unknown> => {
  const [row] = await query(
    `select count(*)::int as files, count(f.build_id)::int as staged from rag_collection c
     join rag_file f on f.collection_id = c.id where c.name = $1`,
    [collection],
  )
  return [row!.files, row!.staged]
}

/** Indexes three files, and then changes them on disk. */
async function indexAndChange(name: string): Promise<void> {
  const text = (words: string) =>
    Object.fromEntries(['a', 'b', 'c'].map((file) => [`${name}/${file}.txt`, `${words} ${file}`]))
  writeFiles(root, text('old words'))
  await runIndex(name)
  writeFiles(root, text('new words'))
}

/** Runs an attempt that is aborted just before the swap, after it has stored everything. */
async function runCutShort(collection: string, job: string): Promise<void> {
  const abort = new AbortController()
  const onProgress = (label: string) => label.startsWith('Swapping') && abort.abort()
  await assert.rejects(runIndex(collection, { job, signal: abort.signal, onProgress }))
}

describe('an indexing run', () => {
  test('keeps the old index when interrupted, and its next attempt reuses its work', async () => {
    await indexAndChange('short')
    const job = uuidv7()
    await runCutShort('short', job)
    assert.deepEqual(await searchNames('short', 'old'), ['a.txt', 'b.txt', 'c.txt'])
    assert.deepEqual(await searchNames('short', 'new'), [])
    assert.deepEqual(await countRows('short'), [6, 3])
    const made = () => query(`select max(f.id)::int as last from rag_file f where f.source like 'short/%'`)
    const before = await made()
    const labels: string[] = []
    const result = await runIndex('short', { job, onProgress: (label) => void labels.push(label) })
    assert.deepEqual([result.documents_added, result.total_documents], [3, 3])
    assert.deepEqual(await searchNames('short', 'new'), ['a.txt', 'b.txt', 'c.txt'])
    assert.deepEqual(await searchNames('short', 'old'), [])
    assert.deepEqual(await countRows('short'), [3, 0])
    assert.deepEqual(await made(), before, 'nothing was made twice')
    assert.equal(labels.at(-1), 'Swapping the index')
  })

  test('swaps in no deleted files after an interruption, and keeps restored ones', async () => {
    await indexAndChange('since')
    const job = uuidv7()
    await runCutShort('since', job)
    rmSync(join(root, 'since/a.txt'))
    writeFiles(root, { 'since/b.txt': 'old words b' })
    const result = await runIndex('since', { job })
    const { documents_added, documents_unchanged, documents_removed, total_documents, total_chunks } = result
    assert.deepEqual(
      [documents_added, documents_unchanged, documents_removed, total_documents, total_chunks],
      [1, 1, 1, 2, 2],
    )
    assert.deepEqual(await searchNames('since', 'old'), ['b.txt'])
    assert.deepEqual(await searchNames('since', 'new'), ['c.txt'])
    assert.deepEqual(await countRows('since'), [2, 0])
  })

  test('swaps in nothing once it is superseded, and the next run removes its rows', async () => {
    await indexAndChange('taken')
    let calls = 0
    const superseded: TaskContext['runFenced'] = (work) => {
      // Opening, clearing and storing succeed. The fourth transaction, which swaps, is superseded.
      if (++calls === 4) throw fail('job.superseded')
      return db.transaction(work)
    }
    await assert.rejects(runIndex('taken', { fenced: superseded }), { code: 'job.superseded' })
    assert.deepEqual(await countRows('taken'), [6, 3])
    assert.deepEqual(await searchNames('taken', 'old'), ['a.txt', 'b.txt', 'c.txt'])
    await runIndex('taken')
    assert.deepEqual(await countRows('taken'), [3, 0])
    assert.deepEqual(await searchNames('taken', 'new'), ['a.txt', 'b.txt', 'c.txt'])
  })

  test('ends without effect if its collection is deleted meanwhile', async () => {
    await indexAndChange('deleted')
    const onProgress = (label: string): void => {
      if (label.startsWith('Swapping')) hidden = hideByName('deleted')
    }
    let hidden: Promise<unknown> = Promise.resolve()
    const late: TaskContext['runFenced'] = async (work) => {
      await hidden
      return db.transaction(work)
    }
    await assert.rejects(runIndex('deleted', { onProgress, fenced: late }), { code: 'rag.deleted' })
    await assert.rejects(searchNames('deleted', 'old'), { code: 'rag.missing' })
    await purgeCollections.run(createContext(), {})
    assert.deepEqual(await query(`select 1 from rag_collection where name = 'deleted'`), [])
  })

  test('fails if its rows are removed meanwhile', async () => {
    await indexAndChange('under')
    const remove: TaskContext['runFenced'] = async (work) => {
      if (++calls === 2) await query(`delete from rag_collection where name = 'under'`)
      return db.transaction(work)
    }
    let calls = 0
    await assert.rejects(
      runIndex('under', { fenced: remove }),
      (error) => error instanceof Failure && error.code === 'rag.deleted',
    )
  })

  test('keeps the pages of a PDF', async () => {
    writeFiles(root, { 'pdf/a.pdf': 'otters' })
    await runIndex('pdf')
    const hits = await searcher.search({
      collection: 'pdf',
      viewer: ALL_VIEWER,
      query: 'otters',
      topK: 5,
      filter: { page: 2 },
      vector: null,
    })
    assert.deepEqual(
      hits.map(({ content, metadata }) => [content, metadata.page, metadata.format]),
      [['Page 2 of otters', 2, 'pdf']],
    )
  })

  test('repeats the work of an older analysis version', async () => {
    writeFiles(root, { 'older/a.txt': 'same' })
    await runIndex('older')
    assert.equal((await runIndex('older')).documents_unchanged, 1)
    await query(`update rag_file set analysis = 0 where source = 'older/a.txt'`)
    assert.equal((await runIndex('older')).documents_added, 1)
  })
})

describe('a run with a model', () => {
  /** Ends the embedding jobs as a worker does. */
  const endEmbedJobs = async (end: string): Promise<number> => {
    let ended = 0
    while (ended === 0)
      ended = (
        await query(
          `update job set ${end}, finished_at = now() where name = 'rag.embed' and finished_at is null returning id`,
        )
      ).length
    return ended
  }

  test('indexes words only if the model is unavailable', async () => {
    writeFiles(root, { 'none/a.txt': 'words remain', 'none/b.txt': 'words too' })
    const result = JSON.stringify({ model: null, vector: null, reason: 'gone' })
    const [indexing, ended] = await Promise.all([
      runIndex('none', { model: 'm' }),
      endEmbedJobs(`status = 'done', result = '${result}'`),
    ])
    assert.equal(ended, 1, 'the first answer is enough')
    assert.deepEqual([indexing.embedding_model, indexing.documents_added], [null, 2])
    assert.deepEqual(await searchNames('none', 'remain'), ['a.txt'])
  })

  test('keeps existing vectors if the worker has another model', async () => {
    writeFiles(root, { 'moving/a.txt': 'words' })
    await runIndex('moving')
    await query(
      `insert into rag_vector (file_id, model, dimensions, floats) select id, 'old', 1, '\\x0000803f' from rag_file
       where source = 'moving/a.txt'`,
    )
    const result = JSON.stringify({ model: 'old', vector: null, reason: null })
    const [indexing] = await Promise.all([
      runIndex('moving', { model: 'new' }),
      endEmbedJobs(`status = 'done', result = '${result}'`),
    ])
    assert.equal(indexing.embedding_model, null)
    const [collection] = await query(`select embedding_model from rag_collection where name = 'moving'`)
    assert.equal(collection!.embedding_model, 'old')
  })

  test('keeps the old index if the model fails', async () => {
    await indexAndChange('fails')
    const failed = `status = 'failed', error_code = 'rag.embedding_failed', error_detail = 'no'`
    const [outcome] = await Promise.allSettled([runIndex('fails', { model: 'm' }), endEmbedJobs(failed)])
    assert.equal(outcome.status === 'rejected' && outcome.reason.code, 'rag.embedding_failed')
    assert.deepEqual(await searchNames('fails', 'old'), ['a.txt', 'b.txt', 'c.txt'])
  })
})

test('waits for vectors less than a run may stall', () => {
  for (const { name, stallSeconds } of [indexFiles, indexDocuments, refreshDocuments])
    assert.ok(stallSeconds! * 1000 > MAX_WAIT_MS, name)
})

describe('leftover rows', () => {
  test('are removed after their run has ended, but not during it', async () => {
    await indexAndChange('left')
    await purgeCollections.run(createContext(), {})
    const [dead, live] = [uuidv7(), uuidv7()]
    await query(
      `insert into job (id, name, queue, mailbox, payload, status, attempt, max_tries, lease_id)
       values ($1, 'rag.index', 'rag', 'rag:left', '{}', 'running', 1, 3, gen_random_uuid())`,
      [live],
    )
    await query(
      `insert into rag_file (collection_id, build_id, source, sha256, byte_size, format, analysis, chunk_count, dictionary)
       select id, b, b::text, sha256(''), 0, 'text', 1, 0, 'english_stem' from rag_collection, unnest($1::uuid[]) b where name = 'left'`,
      [[dead, live]],
    )
    assert.deepEqual(await purgeCollections.run(createContext(), {}), { rows: 1 })
    const staged = await query(`select build_id from rag_file where build_id is not null`)
    assert.deepEqual(staged, [{ build_id: live }])
    await query('delete from rag_file where build_id is not null')
  })
})

describe('a searcher', () => {
  test('never mixes two versions, however often they change', async () => {
    const files = (n: number) =>
      Object.fromEntries(
        Array.from({ length: 10 }, (_, i) => [`often/${i}.txt`, `common word and version${n}`]),
      )
    writeFiles(root, files(0))
    await runIndex('often')
    let done = false
    const changing = (async () => {
      for (let n = 1; n <= 8; n++) {
        writeFiles(root, files(n))
        await runIndex('often')
      }
      done = true
    })()
    let seen = 0
    while (!done) {
      const hits = await searcher.search({
        collection: 'often',
        viewer: ALL_VIEWER,
        query: 'common',
        topK: 50,
        filter: null,
        vector: null,
      })
      assert.equal(hits.length, 10)
      assert.equal(new Set(hits.map(({ content }) => content)).size, 1)
      seen++
    }
    await changing
    assert.ok(seen > 0)
  })

  test('stays within its memory, and still answers', async () => {
    for (const name of ['room1', 'room2']) {
      writeFiles(root, { [`${name}/a.txt`]: `only ${name}` })
      await runIndex(name)
    }
    const small = createSearcher(db, reader, 1)
    for (const name of ['room1', 'room2', 'room1']) {
      const hits = await small.search({
        collection: name,
        viewer: ALL_VIEWER,
        query: name,
        topK: 1,
        filter: null,
        vector: null,
      })
      assert.equal(hits[0]?.content, `only ${name}`)
    }
  })

  test('finds nothing in an empty collection', async () => {
    writeFiles(root, { 'empty/a.txt': '  ' })
    assert.equal((await runIndex('empty')).total_chunks, 0)
    assert.deepEqual(await searchNames('empty', 'word'), [])
  })
})
