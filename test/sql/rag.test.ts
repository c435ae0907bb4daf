import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import {
  deleteBuildFiles,
  deleteDeadBuilds,
  deleteOtherBuilds,
  listKnownFiles,
  markCollectionDeleted,
} from '../../sql/rag/collections.ts'
import {
  findDocumentCollection,
  listAffectedCollections,
  listPageTexts,
  openDocumentCollection,
  readSelectedDocuments,
  readSelectedTaggedDocuments,
} from '../../sql/rag/documents.ts'
import {
  readChunkFiles,
  readChunks,
  readChunkTerms,
  readCollection,
  readCollectionKind,
  readCollectionState,
  readCollections,
  readFiles,
  readFilteredChunks,
  readPhraseChunks,
  readPostings,
} from '../../sql/rag/reads.ts'
import {
  addVectors,
  copyVectors,
  listChunkTexts,
  listEmbeddedFiles,
  listUnembeddedFiles,
  loadVectors,
} from '../../sql/rag/vectors.ts'
import { COLLECTION_DEPENDENTS, purgeRows } from '../../sql/retention/purge.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { assertWriteByIndex, planRead, testReads } from './plans-help.ts'

/** Constraints of the retrieval tables. Queries of these tables use an index. */

const { query, url } = await createTestDatabase()
await query(`insert into rag_collection (name, version) select 'c' || n, 1 from generate_series(1, 800) n`)
await query(`insert into rag_file (collection_id, source, sha256, byte_size, format, analysis, chunk_count, dictionary)
  select c.id, 's' || n, sha256(''), 1, 'text', 1, 1, 'english_stem' from rag_collection c, generate_series(1, 4) n`)
await query(`insert into rag_chunk (file_id, ordinal, collection_id, number, content, start_offset, end_offset, start_line, end_line, terms,
    common_terms)
  select id, 0, collection_id, row_number() over (partition by collection_id order by id) - 1, 'text', 0, 4, 1, 1, '{1,2}', '{3}'
  from rag_file`)
await query(
  `select rag_merge_postings(collection_id, array_agg(id), '{}') from rag_file group by collection_id`,
)
await query(`insert into rag_file (collection_id, build_id, source, sha256, byte_size, format, analysis, chunk_count, dictionary)
  select id, gen_random_uuid(), 'built', sha256(''), 1, 'text', 1, 0, 'english_stem' from rag_collection where id % 50 = 0`)
await query(
  `insert into rag_vector (file_id, model, dimensions, floats) select id, 'm', 2, '\\x0102030405060708' from rag_file`,
)
const SELECT_ALL = { tag: null, kind: null, ids: null, search: null }
await query(
  `insert into account (email, password_hash) select 'a' || n || '@example.com', '' from generate_series(1, 1000) n`,
)
const owner = (await query('select max(id) as id from account'))[0]!.id as number
await query(`insert into document (owner_id, title, media_type, byte_size, sha256, tags)
  select a.id, 'd' || n, 'text/plain', 1, sha256((a.id || ' ' || n)::bytea), array['tag ' || n] from account a, generate_series(1, 10) n where a.id > 850`)
await query(`insert into document_page (document_id, page_number, status, method, text, job_id)
  select d.id, n, 'read', 'text_layer', 'words', gen_random_uuid() from document d, generate_series(1, 2) n`)
await query(
  `insert into rag_collection (name, version, owner_id, selection)
  select case when a.id = $1 then 'mine' || n else 'of' || a.id || ' ' || n end, 1, a.id, $2
  from account a, generate_series(1, 10) n where a.id > 850`,
  [owner, SELECT_ALL],
)
const documents = (await query('select id::int from document where owner_id = $1', [owner])).map(
  (row) => row.id as number,
)
await query(`update rag_collection set deleted_at = now() where id % 100 = 1`)
await vacuumAnalyze(query)
const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())
const id = (await query(`select id from rag_collection where name = 'c77'`))[0]!.id as number
const files = (
  await query('select id::int from rag_file where collection_id = $1 and build_id is null', [id])
).map((row) => row.id as number)

describe('reads by index', () =>
  testReads(client, [
    planRead('a collection', readCollection, 'c77', false, owner),
    planRead('collections', readCollections, false, owner, null, 0, 100),
    planRead('collections of all', readCollections, true, owner, null, 0, 100),
    planRead('its files', readFiles, 'c77', false, owner, null, 0, 1000),
    planRead('its state', readCollectionState, 'c77', false, owner, ['words']),
    planRead('its kind', readCollectionKind, 'mine7', false, owner),
    planRead('documents', readSelectedDocuments, owner, null, null, null, null, false, null, 0, 100),
    planRead(
      'documents with a tag',
      readSelectedTaggedDocuments,
      owner,
      null,
      ['tag 5'],
      null,
      null,
      false,
      null,
      0,
      100,
    ),
    planRead(
      'documents with ids',
      readSelectedDocuments,
      owner,
      'other',
      null,
      null,
      null,
      true,
      documents,
      0,
      100,
    ),
    planRead('chunks', readChunks, id, 1, [0, 1]),
    planRead('files of chunks', readChunkFiles, id),
    planRead('postings', readPostings, id, [1, 2]),
    planRead('terms of chunks', readChunkTerms, id, [0, 1]),
    planRead('chunks with phrases', readPhraseChunks, id, [0, 1], '[[",1,2,"]]'),
    planRead(
      'chunks with metadata',
      readFilteredChunks,
      id,
      '$.source == "s1"',
      '$.page == $v',
      '{"v":null}',
    ),
  ]))

describe('writes by index', () => {
  let other = 300
  for (const [what, make] of [
    ['files with vectors', () => listEmbeddedFiles(id)],
    ['vectors to load', () => loadVectors(files, 'm')],
    ['files that are known', () => listKnownFiles(id, null)],
    ['files that a build has made', () => listKnownFiles(id, randomUUID())],
    [
      'files without vectors',
      () => listUnembeddedFiles({ collection: id, build: randomUUID(), goneFiles: [1] }, 'm'),
    ],
    ['vectors to copy', () => copyVectors({ collection: id, build: randomUUID() }, 'm')],
    ['texts of chunks', () => listChunkTexts(files)],
    ['vectors to add', () => addVectors('m', [{ file: files[0]!, dimensions: 2, floats: Buffer.alloc(8) }])],
    ['other builds', () => deleteOtherBuilds(id, randomUUID())],
    ['files of a build to drop', () => deleteBuildFiles(randomUUID(), files)],
    ['a collection to hide', () => markCollectionDeleted(78)],
    ['a collection of documents', () => findDocumentCollection(id)],
    ['collections that follow', () => listAffectedCollections(owner, documents)],
    ['collections to open', () => openDocumentCollection('mine7', owner, SELECT_ALL, {})],
    ['texts of pages', () => listPageTexts(documents[0]!, 0, 16)],
    ['files of a collection', () => purgeRows(COLLECTION_DEPENDENTS[0]!, other++)],
    ['postings of a collection', () => purgeRows(COLLECTION_DEPENDENTS[1]!, other++)],
    ['builds without a job', () => deleteDeadBuilds(5)],
  ] as const)
    test(what, () => assertWriteByIndex(client, make, 'rag_'))
})

describe('constraints', () => {
  const tried = new Set<string>()
  const file = (fields: object = {}) => ({
    collection_id: id,
    source: randomUUID(),
    sha256: Buffer.alloc(32),
    byte_size: 1,
    format: 'text',
    analysis: 1,
    chunk_count: 0,
    dictionary: 'english_stem',
    ...fields,
  })
  const chunk = (fields: object = {}) => ({
    file_id: files[0],
    ordinal: 9,
    content: 'c',
    start_offset: 0,
    end_offset: 1,
    start_line: 1,
    end_line: 1,
    collection_id: id,
    number: 99,
    terms: [1],
    common_terms: [],
    ...fields,
  })
  const posting = (fields: object = {}) => ({
    collection_id: id,
    term: 9,
    block: 0,
    postings: Buffer.alloc(4),
    ...fields,
  })
  const vector = (fields: object = {}) => ({
    file_id: files[0],
    model: 'm',
    dimensions: 2,
    floats: Buffer.alloc(8),
    ...fields,
  })
  const build = { build_id: randomUUID(), source: 's1' }
  for (const [constraint, table, ...rows] of [
    ['rag_collection_name_check', 'rag_collection', { name: '' }, { name: 'n'.repeat(101) }],
    ['rag_collection_name_key', 'rag_collection', { name: 'c77' }],
    [
      'rag_collection_dimensions_check',
      'rag_collection',
      { name: 'x', dimensions: 3 },
      { name: 'x', embedding_model: 'm' },
      { name: 'x', embedding_model: 'm', dimensions: 0 },
    ],
    ['rag_collection_counts_check', 'rag_collection', { name: 'x', chunk_count: -1 }],
    ['rag_collection_owner_id_check', 'rag_collection', { name: 'x', owner_id: owner }],
    ['rag_collection_owner_id_fkey', 'rag_collection', { name: 'x', owner_id: 999_999, selection: {} }],
    ['rag_file_metadata_check', 'rag_file', file({ metadata: '[]' })],
    ['rag_file_collection_id_fkey', 'rag_file', file({ collection_id: 999_999 })],
    ['rag_file_sha256_check', 'rag_file', file({ sha256: Buffer.alloc(31) })],
    ['rag_file_source_key', 'rag_file', file({ source: 's1' })],
    ['rag_chunk_file_id_fkey', 'rag_chunk', chunk({ file_id: 999_999_999 })],
    ['rag_chunk_pkey', 'rag_chunk', chunk({ ordinal: 0 })],
    ['rag_chunk_number_key', 'rag_chunk', chunk({ number: 0 })],
    ['rag_chunk_number_check', 'rag_chunk', chunk({ number: -1 })],
    ['rag_posting_pkey', 'rag_posting', posting({ term: 1 })],
    ['rag_posting_collection_id_fkey', 'rag_posting', posting({ collection_id: 999_999 })],
    [
      'rag_posting_postings_check',
      'rag_posting',
      posting({ postings: Buffer.alloc(0) }),
      posting({ postings: Buffer.alloc(5) }),
    ],
    ['rag_vector_file_id_fkey', 'rag_vector', vector({ file_id: 999_999_999 })],
    ['rag_vector_pkey', 'rag_vector', vector({ file_id: files[1] })],
    [
      'rag_vector_floats_check',
      'rag_vector',
      vector({ floats: Buffer.alloc(9) }),
      vector({ dimensions: 3 }),
      vector({ dimensions: 16_001 }),
    ],
  ] as [string, string, ...object[]][]) {
    test(constraint, async () => {
      for (const row of rows) await assert.rejects(insert(table, row), { constraint })
      tried.add(constraint)
    })
  }

  async function insert(table: string, row: object): Promise<void> {
    const keys = Object.keys(row)
    const places = keys.map((_, i) => `$${i + 1}`)
    await query(`insert into ${table} (${keys.join(', ')}) values (${places.join(', ')})`, Object.values(row))
  }

  test('a build has each source once, next to the live one', async () => {
    await insert('rag_file', file(build))
    await assert.rejects(insert('rag_file', file({ ...build, build_id: randomUUID() })), {
      constraint: 'rag_file_build_key',
    })
    tried.add('rag_file_build_key')
    await insert('rag_collection', { name: 'c77', deleted_at: new Date() })
    for (const table of ['rag_collection', 'rag_file']) {
      const again = `insert into ${table} overriding system value select * from ${table} limit 1`
      await assert.rejects(query(again), { constraint: `${table}_pkey` })
      tried.add(`${table}_pkey`)
    }
  })

  test('every constraint is covered', async () => {
    const names = await query(
      `select conname as name from pg_constraint where conrelid = any($1::regclass[]) and contype <> 'n'
       union select indexrelid::regclass::text from pg_index where indisunique and indrelid = any($1::regclass[])`,
      [['rag_collection', 'rag_file', 'rag_chunk', 'rag_posting', 'rag_vector']],
    )
    assert.deepEqual(
      names.map((row) => String(row.name)).filter((name) => !tried.has(name)),
      [],
    )
  })
})
