import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { startProcess } from '../service.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'
import { startReader } from './reader.ts'

/** A collection of documents follows real extractions, even if its worker is killed. */

const { url, query } = await createTestDatabase()
const client = await startReader(url, { RAG_EMBEDDINGS: 'lexical' })
const env = { RAG_EMBEDDINGS: 'lexical', WORKER_QUEUES: 'documents,rag,system', ...crash.SHORT_LEASE }
const countChunks = async (): Promise<number> => {
  const [row] = await query(
    `select coalesce(sum(chunk_count), 0)::int as n from rag_collection where name = 'all'`,
  )
  return row!.n as number
}

test('adds extracted documents to the collection, even if the worker dies in between', async () => {
  const first = await startProcess('worker', url, env)
  const json = { collection_name: 'all', documents: {} }
  const indexed = await client.post('/rag/index', json)
  assert.equal(indexed.status, 200, await indexed.text())
  const id = await crash.uploadText(client, 5, 'first')
  await crash.waitForJob(query, await crash.extract(client, id))
  await until('the pages are indexed', async () => (await countChunks()) === 5)

  const next = await crash.uploadText(client, 5, 'second')
  await crash.waitForJob(query, await crash.extract(client, next))
  await first.kill()
  await startProcess('worker', url, env)
  await until('another worker has indexed the pages', async () => (await countChunks()) === 10)
})
