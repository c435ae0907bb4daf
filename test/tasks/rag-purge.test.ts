import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskContext } from '../../tasks/context.ts'
import { purgeCollections } from '../../tasks/rag/purge.task.ts'
import { createTestDatabase } from '../database.ts'

/** Pruning removes the rows of deleted collections, whoever owned them. */

const { db, query } = await createTestDatabase()

test('a visible purge job does not reveal names of collections of others', async () => {
  const [row] = await query(
    `insert into rag_collection (name, selection, deleted_at) values ('divorce', '{}', now()) returning id`,
  )
  await query(`insert into rag_file (collection_id, source, document_id, sha256, byte_size, format, analysis, chunk_count, dictionary)
    select id, 'documents/1', 1, sha256(''), 1, 'document', 1, 0, 'english_stem' from rag_collection`)
  const labels: string[] = []
  const reportProgress = (label: string): void => void labels.push(label)
  const context = { db, reportProgress, signal: new AbortController().signal }
  assert.deepEqual(await purgeCollections.run(context as unknown as TaskContext, {}), { rows: 1 })
  assert.deepEqual(labels, [`Collection ${row!.id}: files`])
  assert.deepEqual(await query('select from rag_collection'), [])
})
