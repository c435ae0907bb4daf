import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../until.ts'
import { startEdgeAndDatabase } from './harness.ts'

/** When no worker has the model, the edge must answer health requests immediately from stored state. */

const { api, query } = await startEdgeAndDatabase({ env: { RAG_EMBEDDINGS: 'local' } })
const readProblems = async (): Promise<string[]> => {
  const { status, json } = await api.get('/rag/health')
  assert.deepEqual([status, json.status, json.active_embeddings], [200, 'degraded', 'lexical'])
  return json.validation_errors
}

test('the first request gets an unknown state, and later ones the result of the check', async () => {
  const first = await Promise.all(Array.from({ length: 20 }, readProblems))
  for (const one of first) assert.deepEqual(one, ['The model has not been checked yet; a check is running'])
  const found = 'The model is loading, or no worker serves the queue rag_model'
  await until('the check has finished', async () => (await readProblems())[0] === found)
  assert.deepEqual(await query(`select count(*)::int as jobs from job where queue = 'rag_model'`), [
    { jobs: 1 },
  ])
})
