import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { deleteDocuments, insertDocument } from '../../sql/documents/documents.ts'
import { markCollectionDeleted } from '../../sql/rag/collections.ts'
import {
  findDocumentCollection,
  listAffectedCollections,
  openDocumentCollection,
  type Selection,
} from '../../sql/rag/documents.ts'
import { readChunks, readCollectionKind, readCollections } from '../../sql/rag/reads.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { until } from '../until.ts'
import { newAccount, sharedDatabase } from './shared-database.ts'

/** Collections of documents: their owners, which changes affect them, and hidden documents. */

const { db, query, url } = await sharedDatabase()
const reader = createReader({ url, applicationName: 'test' })
after(() => reader.close())
const SELECT_ALL: Selection = { tag: null, kind: null, ids: null, search: null }

const addAccount = () => newAccount({ query })
const openCollection = async (
  name: string,
  owner: number | null,
  more: Partial<Selection> = {},
  metadata = {},
) => (await db.one(openDocumentCollection(name, owner, { ...SELECT_ALL, ...more }, metadata))).id
const findAffected = async (owner: number | null, ...documents: readonly number[]) =>
  (await db.any(listAffectedCollections(owner, documents))).map(({ name }) => name)

describe('a collection', () => {
  test('can be reopened by its owner, with another selection and other metadata', async () => {
    const owner = await addAccount()
    const id = await openCollection('again', owner)
    assert.equal(await openCollection('again', owner, { ids: [7], tag: 'blue' }, { team: 'red' }), id)
    assert.deepEqual(await db.maybeOne(findDocumentCollection(id!)), {
      name: 'again',
      owner_id: owner,
      selection: { ...SELECT_ALL, ids: [7], tag: 'blue' },
      document_metadata: { team: 'red' },
    })
    await db.run(markCollectionDeleted(id!))
    assert.equal(await db.maybeOne(findDocumentCollection(id!)), null)
    assert.notEqual(await openCollection('again', owner), id, 'the name is free again')
  })

  test('has a name that no other owner and no files can use', async () => {
    const [one, other] = [await addAccount(), await addAccount()]
    assert.ok(await openCollection('mine', one))
    assert.equal(await openCollection('mine', other), null)
    assert.equal(await openCollection('mine', null), null)
    await query(`insert into rag_collection (name) values ('files')`)
    assert.equal(await openCollection('files', one), null)
    assert.ok(
      await openCollection("nobody's", null),
      'without authentication, null is an owner like any other',
    )
    assert.ok(await openCollection("nobody's", null))
    assert.equal(await openCollection("nobody's", one), null)
  })

  test('is deleted with its account', async () => {
    const owner = await addAccount()
    const id = await openCollection('gone', owner)
    await query('update rag_collection set version = 1 where id = $1', [id])
    assert.ok(await reader.text(readCollectionKind, ['gone', true, null]))
    await query('update account set deleted_at = now(), email = null, is_active = false where id = $1', [
      owner,
    ])
    assert.equal(
      await reader.text(readCollectionKind, ['gone', true, null]),
      null,
      'even before its rows are deleted',
    )
    await query('delete from account where id = $1', [owner])
    assert.deepEqual(await query('select 1 from rag_collection where id = $1', [id]), [])
  })

  test('is visible to its owner and to those who see all', async () => {
    const [one, other] = [await addAccount(), await addAccount()]
    for (const [name, owner] of [
      ['seen1', one],
      ['seen2', other],
    ] as const)
      await openCollection(name, owner)
    await query(`insert into rag_collection (name) values ('seen3')`)
    await query(`update rag_collection set version = 1 where name like 'seen%'`)
    const listVisible = async (seesAll: boolean, owner: number | null): Promise<string[]> => {
      const names = await reader.text(readCollections, [seesAll, owner, '["seen"]', 0, 3])
      return JSON.parse(names!.slice(names!.indexOf('\n') + 1))
    }
    assert.deepEqual(await listVisible(false, one), ['seen1', 'seen3'])
    assert.deepEqual(await listVisible(false, other), ['seen2', 'seen3'])
    assert.deepEqual(await listVisible(false, null), ['seen3'])
    assert.deepEqual(await listVisible(true, null), ['seen1', 'seen2', 'seen3'])
  })
})

describe('a change of documents', () => {
  test('affects the collections of their owner that may contain them', async () => {
    const [one, other] = [await addAccount(), await addAccount()]
    await openCollection('c1', one)
    await openCollection('c2', one, { ids: [1, 2] })
    await openCollection('c3', one, { ids: [3], tag: 'blue' })
    await openCollection('c4', other)
    const hidden = await openCollection('c5', one)
    await db.run(markCollectionDeleted(hidden!))
    assert.deepEqual(await findAffected(one, 2), ['c1', 'c2'])
    assert.deepEqual(await findAffected(one, 3, 4), ['c1', 'c3'])
    assert.deepEqual(await findAffected(one, 5), ['c1'])
    assert.deepEqual(await findAffected(other, 1), ['c4'])
    assert.deepEqual(await findAffected(await addAccount(), 1), [])
  })

  test('without an owner affects collections without an owner', async () => {
    await openCollection('c6', null)
    const found = await findAffected(null, 1)
    assert.ok(found.includes('c6') && !found.includes('c1'))
  })

  test('in progress delays the opening of a collection, which then sees it', async () => {
    const owner = await addAccount()
    let opening: Promise<Record<string, unknown>[]> = Promise.resolve([])
    await db.transaction(async (tx) => {
      assert.deepEqual(await tx.any(listAffectedCollections(owner, [1])), [])
      opening = query(`select rag_open_documents('late', $1, $2, '{}') as id`, [owner, SELECT_ALL])
      await until('the other transaction waits', async () => {
        const [row] = await query(
          `select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted
           and database = (select oid from pg_database where datname = current_database())`,
        )
        return row!.n === 1
      })
      assert.deepEqual(await query(`select 1 from rag_collection where name = 'late'`), [])
    })
    assert.ok((await opening)[0]!.id)
  })
})

test('a chunk of a deleted document, or of another owner, has no content', async () => {
  const [owner, other] = [await addAccount(), await addAccount()]
  const collection = (await openCollection('chunks', owner))!
  const documents: number[] = []
  for (const [ownerId, sha256] of [
    [owner, 'a'],
    [owner, 'b'],
    [other, 'c'],
  ] as const) {
    const fields = { title: 't', mediaType: 'text/plain', byteSize: 1, sha256: Buffer.alloc(32, sha256) }
    documents.push((await db.one(insertDocument({ ownerId, ...fields }))).id)
  }
  const files: number[] = []
  for (const document of [...documents, 999_999, null]) {
    const [row] = await query(
      `insert into rag_file (collection_id, source, document_id, sha256, byte_size, format, analysis, chunk_count, dictionary)
       values ($1, $2, $3::bigint, sha256(''), 1, 'text', 1, 1, 'english_stem') returning id::int`,
      [collection, randomUUID(), document],
    )
    files.push(row!.id as number)
  }
  await query(
    `insert into rag_chunk (file_id, ordinal, collection_id, number, content, start_offset, end_offset, start_line, end_line, terms,
       common_terms)
     select id, 0, collection_id, row_number() over (order by id) - 1, 'text', 0, 4, 1, 1, '{}', '{}' from rag_file where id = any($1)`,
    [files],
  )
  const readContents = async (): Promise<unknown[]> => {
    const texts = await reader.texts(readChunks, [collection, 0, [0, 1, 2, 3, 4]])
    const byNumber = new Map(texts.map((text) => [JSON.parse(text).number, JSON.parse(text).content]))
    return files.map((_, number) => byNumber.get(number))
  }
  assert.deepEqual(await readContents(), ['text', 'text', null, null, 'text'])
  await db.one(deleteDocuments([documents[1]!], owner, 30))
  assert.deepEqual(await readContents(), ['text', null, null, null, 'text'])
})
