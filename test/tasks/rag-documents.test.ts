import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { insertDocument } from '../../sql/documents/documents.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { markCollectionDeleted } from '../../sql/rag/collections.ts'
import { openDocumentCollection, type Selection } from '../../sql/rag/documents.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { type AnalysisOptions, type AnalyzedPage, analyze } from '../../tasks/rag/analyze.ts'
import { indexDocuments } from '../../tasks/rag/index-documents.task.ts'
import { refreshCollections, refreshDocuments } from '../../tasks/rag/refresh-documents.task.ts'
import { createAccountMaker } from '../accounts.ts'
import { createTestDatabase } from '../database.ts'
import { createJobSettings } from '../job-settings.ts'

/** Indexing runs read documents that have changed, and skip the others. */

const { db, query } = await createTestDatabase()
const SELECT_ALL: Selection = { tag: null, kind: null, ids: null, search: null }
/** Names and pages of the documents that runs have split into chunks. */
const splitDocuments: [name: string, pages: readonly string[]][] = []

function createContext(ownerId: number | null, more: Partial<TaskContext> = {}): TaskContext {
  return {
    job: { id: uuidv7(), attempt: 1, ownerId, requestId: null },
    db,
    settings: parseSettings({ RAG_EMBEDDINGS: 'lexical' }),
    log: { info: () => {}, warn: () => {}, error: () => {} },
    signal: new AbortController().signal,
    providers: {
      analyze: async (bytes: Uint8Array, file: AnalysisOptions) => {
        const pages: readonly AnalyzedPage[] = JSON.parse(Buffer.from(bytes).toString())
        splitDocuments.push([file.fileName, pages.map(({ text }) => text)])
        return analyze(Buffer.from(bytes), file)
      },
    },
    reportProgress: () => {},
    emit: () => {},
    runFenced: (work: Parameters<TaskContext['runFenced']>[0]) => db.transaction(work),
    ...more,
  } as unknown as TaskContext
}

const addAccount = createAccountMaker({ query })
const readPage = (id: number, number: number, text: string) =>
  query(
    `insert into document_page (document_id, page_number, status, method, text, job_id)
     values ($1, $2, 'read', 'text_layer', $3, gen_random_uuid())
     on conflict (document_id, page_number) do update set text = excluded.text, updated_at = now()`,
    [id, number, text],
  )
const addDocument = async (
  ownerId: number | null,
  title: string,
  ...pages: readonly string[]
): Promise<number> => {
  const fields = { title, mediaType: 'text/plain', byteSize: 1, sha256: randomBytes(32) }
  const { id } = await db.one(insertDocument({ ownerId, ...fields }))
  for (const [i, text] of pages.entries()) await readPage(id, i + 1, text)
  return id
}
const runIndex = (owner: number | null, collection: string, documents: Partial<Selection> = {}) =>
  indexDocuments.run(createContext(owner), {
    collection,
    documents: { ...SELECT_ALL, ...documents },
    metadata: {},
  })
const readChunks = async (collection: string): Promise<string[]> => {
  const rows = await query(
    `select f.source || '/' || k.page || ' ' || k.content as text from rag_collection c
     join rag_file f on f.collection_id = c.id and f.build_id is null join rag_chunk k on k.file_id = f.id
     where c.name = $1 and c.deleted_at is null order by f.document_id, k.ordinal`,
    [collection],
  )
  return rows.map(({ text }) => String(text))
}

describe('indexing documents', () => {
  test('creates a chunk for each page with text, and reports documents without any', async () => {
    const owner = await addAccount()
    const tall = await addDocument(owner, 'Report v1.2', 'first page', '', 'third page')
    await readPage(tall, 5, 'fifth page')
    const unread = await addDocument(owner, 'Unread')
    const blank = await addDocument(owner, 'Blank', ' ', '')
    await addDocument(await addAccount(), 'Of somebody else', 'theirs')
    await addDocument(null, 'Of nobody', 'theirs')
    splitDocuments.length = 0
    const result = await runIndex(owner, 'pages')
    assert.deepEqual(splitDocuments, [['Report v1.2.', ['first page', '', 'third page', '', 'fifth page']]])
    const { duration_ms: _, ...counts } = result
    assert.deepEqual(counts, {
      collection_name: 'pages',
      documents_added: 1,
      total_documents: 1,
      documents_unchanged: 0,
      documents_removed: 0,
      total_chunks: 3,
      embedding_model: null,
      skipped: [
        { source: `documents/${unread}`, reason: 'not read yet' },
        { source: `documents/${blank}`, reason: 'no text' },
      ],
      skipped_total: 2,
    })
    assert.deepEqual(await readChunks('pages'), [
      `documents/${tall}/1 first page`,
      `documents/${tall}/3 third page`,
      `documents/${tall}/5 fifth page`,
    ])
  })

  test('reads only changes again: pages, titles and the selection', async () => {
    const owner = await addAccount()
    const [a, b, c] = [
      await addDocument(owner, 'A', 'a'),
      await addDocument(owner, 'B', 'b'),
      await addDocument(owner, 'C', 'c'),
    ]
    await runIndex(owner, 'changes')
    splitDocuments.length = 0
    const again = await runIndex(owner, 'changes')
    assert.deepEqual([again.documents_added, again.documents_unchanged, splitDocuments], [0, 3, []])

    await readPage(a, 2, 'more of a')
    await query(`update document set title = 'Bee' where id = $1`, [b])
    await query(`update document set deleted_at = now(), expires_at = now() where id = $1`, [c])
    const { documents_added, documents_unchanged, documents_removed } = await runIndex(owner, 'changes')
    assert.deepEqual([documents_added, documents_unchanged, documents_removed], [2, 0, 1])
    assert.deepEqual(splitDocuments, [
      ['A.', ['a', 'more of a']],
      ['Bee.', ['b']],
    ])
    await query('delete from document_page where document_id = $1 and page_number = 2', [a])
    await runIndex(owner, 'changes')
    assert.deepEqual(await readChunks('changes'), [`documents/${a}/1 a`, `documents/${b}/1 b`])
  })

  test('swaps in no deleted documents after an interruption, and keeps restored ones', async () => {
    const owner = await addAccount()
    const [a, b, c] = [
      await addDocument(owner, 'A', 'a'),
      await addDocument(owner, 'B', 'b'),
      await addDocument(owner, 'C', 'c'),
    ]
    await runIndex(owner, 'since', { ids: [a, b] })
    const setTitle = (id: number, of: string) =>
      query('update document set title = $2 where id = $1', [id, of])
    await setTitle(a, 'Ay')
    await setTitle(b, 'Bee')
    const { job } = createContext(owner)
    const abort = new AbortController()
    const runAttempt = (more: Partial<TaskContext>) =>
      indexDocuments.run(createContext(owner, { job, ...more }), {
        collection: 'since',
        documents: { ...SELECT_ALL, ids: [a, b, c] },
        metadata: {},
      })
    await assert.rejects(
      runAttempt({
        signal: abort.signal,
        reportProgress: (label) => label.startsWith('Swapping') && abort.abort(),
      }),
    )
    await setTitle(a, 'A')
    await query('update document set deleted_at = now(), expires_at = now() where id = $1', [c])
    const result = await runAttempt({})
    const { documents_added, documents_unchanged, documents_removed, total_documents } = result
    assert.deepEqual([documents_added, documents_unchanged, documents_removed, total_documents], [1, 1, 0, 2])
    const again = await runIndex(owner, 'since', { ids: [a, b] })
    assert.equal(again.documents_unchanged, 2, 'the titles are the current ones')
  })

  test('selects by tag, kind, ids and words, and superseded documents by id only', async () => {
    const owner = await addAccount()
    const make = async (title: string, kind: string, tags: readonly string[]): Promise<number> => {
      const id = await addDocument(owner, title, `text of ${title}`)
      await query('update document set kind = $2, tags = $3 where id = $1', [id, kind, tags])
      return id
    }
    const [a, b, c] = [
      await make('apple', 'letter', ['blue']),
      await make('bread', 'letter', ['red']),
      await make('cherry', 'other', ['blue']),
    ]
    const old = await make('old apple', 'letter', ['blue'])
    await query('update document set supersedes_id = $2 where id = $1', [a, old])
    const theirs = await addDocument(await addAccount(), 'apple', 'theirs')
    const has = async (selection: Partial<Selection>): Promise<unknown[]> => {
      await runIndex(owner, 'selection', selection)
      return (await readChunks('selection')).map((text) => Number(text.split('/')[1]))
    }
    assert.deepEqual(await has({}), [a, b, c])
    assert.deepEqual(await has({ tag: 'blue' }), [a, c])
    assert.deepEqual(await has({ kind: 'letter' }), [a, b])
    assert.deepEqual(await has({ kind: 'letter', tag: 'blue' }), [a])
    assert.deepEqual(await has({ ids: [b, old, theirs] }), [b, old])
    assert.deepEqual(await has({ search: 'apple' }), [a])
    assert.deepEqual(await has({ search: 'apple', ids: [old, b] }), [old])
    assert.deepEqual(await has({ search: 'zebra' }), [])
    const { skipped } = await runIndex(owner, 'selection', { ids: [b, theirs] })
    assert.deepEqual(skipped, [{ source: `documents/${theirs}`, reason: 'no such document' }])
  })

  test('handles more documents than one batch', async () => {
    const owner = await addAccount()
    await query(
      `insert into document (owner_id, title, media_type, byte_size, sha256)
       select $1, 'd' || n, 'text/plain', 1, sha256(('many' || n)::bytea) from generate_series(1, 230) n`,
      [owner],
    )
    await query(
      `insert into document_page (document_id, page_number, status, method, text, job_id)
       select d.id, n, 'read', 'text_layer', 'page', gen_random_uuid() from document d, generate_series(1, 20) n
       where d.owner_id = $1`,
      [owner],
    )
    const { total_documents, total_chunks } = await runIndex(owner, 'many')
    assert.deepEqual([total_documents, total_chunks], [230, 4600])
  })

  test('is rejected if the name is taken', async () => {
    const [one, other] = [await addAccount(), await addAccount()]
    await runIndex(one, 'taken')
    await assert.rejects(runIndex(other, 'taken'), { code: 'rag.name_taken' })
    await query(`insert into rag_collection (name) values ('of files')`)
    await assert.rejects(runIndex(one, 'of files'), { code: 'rag.name_taken' })
  })

  test('is rejected beyond a thousand collections', async () => {
    const owner = await addAccount()
    await query(
      `insert into rag_collection (name, owner_id, selection) select 'of many ' || n, $1, $2 from generate_series(1, 1000) n`,
      [owner, SELECT_ALL],
    )
    await assert.rejects(runIndex(owner, 'one more'), { code: 'quota.collections' })
    assert.ok(await runIndex(owner, 'of many 7'), 'existing collections can still be indexed')
  })
})

describe('a refresh', () => {
  const findWaiting = () =>
    query(
      `select payload, owner_id from job where name = 'rag.refresh_documents' and status in ('scheduled', 'available') order by ordinal`,
    )
  const reportChange = (owner: number | null, ...ids: readonly number[]) =>
    db.transaction((tx) => refreshCollections(tx, ids, { ownerId: owner, settings: createJobSettings(3) }))

  test('waits once for each collection that may contain the documents, and joins only a waiting job', async () => {
    const owner = await addAccount()
    const id = await addDocument(owner, 'A', 'a')
    await runIndex(owner, 'all')
    await runIndex(owner, 'others', { ids: [id + 1] })
    await reportChange(owner, id)
    await reportChange(owner, id)
    const jobs = await findWaiting()
    assert.deepEqual(
      jobs.map((job) => [(job.payload as { name: string }).name, job.owner_id]),
      [['all', owner]],
    )
    await query(
      `update job set status = 'running', lease_id = gen_random_uuid(), attempt = 1 where name = 'rag.refresh_documents'`,
    )
    await reportChange(owner, id)
    assert.equal((await findWaiting()).length, 1)
  })

  test("uses the collection's selection at that time", async () => {
    const owner = await addAccount()
    const [a, b] = [await addDocument(owner, 'A', 'a'), await addDocument(owner, 'B', 'b')]
    await runIndex(owner, 'later', { ids: [a] })
    const selection = { ...SELECT_ALL, ids: [a, b] }
    const { id } = await db.one(openDocumentCollection('later', owner, selection, { team: 'red' }))
    const result = await refreshDocuments.run(createContext(owner), { collection_id: id!, name: 'later' })
    assert.deepEqual([result?.documents_added, result?.documents_unchanged], [1, 1])
    const readVersion = () => query('select version::int from rag_collection where id = $1', [id])
    const before = await readVersion()
    assert.equal(
      await refreshDocuments.run(createContext(owner), { collection_id: id!, name: 'later' }),
      null,
    )
    assert.deepEqual(await readVersion(), before, 'nothing has changed, so no searcher reloads it')
    await db.run(markCollectionDeleted(id!))
    assert.equal(
      await refreshDocuments.run(createContext(owner), { collection_id: id!, name: 'later' }),
      null,
    )
  })
})
