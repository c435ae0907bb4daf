import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MODEL, writeModel } from '../model.ts'
import { until } from '../until.ts'
import { startEdge } from './harness.ts'
import { createFolder, startRag } from './rag-help.ts'

/** Tests collections with vectors of a real model, which runs on its own thread. */

const modelFolder = createFolder()
writeModel(modelFolder)
const LOCAL_MODEL_ENV = { RAG_EMBEDDINGS: 'local', RAG_MODEL_DIR: modelFolder, RAG_MODEL: MODEL }
const { api, write, index, search, query, url, root } = await startRag(LOCAL_MODEL_ENV)
write({
  'v/car.txt': 'A car stands in the street.',
  'v/cat.txt': 'A cat sleeps on the roof.',
  'v/bread.md': '# Bread\n\nThe loaf is warm.',
  'v/other.txt': 'Nothing that the model knows.',
})

const findResults = async (words: string, more: object = {}) => {
  const answer = await search(words, { collection_name: 'v', ...more })
  assert.equal(answer.status, 200, answer.text)
  return answer.json.results as {
    score: number
    metadata: {
      file_name: string
      signals: string[]
      lexical_rank: number | null
      vector_rank: number | null
    }
  }[]
}

describe('a collection with vectors', () => {
  test('uses the configured model', async () => {
    const answer = await index({ path: 'v', collection_name: 'v' })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.json.embedding_model, MODEL)
    assert.equal((await api.get('/rag/collections/v')).json.embedding_model, MODEL)
    const rows = await query(
      `select count(*)::int as n, min(dimensions) as least, max(dimensions) as most from rag_vector`,
    )
    assert.deepEqual(rows, [{ n: 4, least: 16, most: 16 }])
  })

  test('finds results by meaning and reports it', async () => {
    const [first, second] = await findResults('automobile')
    assert.equal(first!.metadata.file_name, 'car.txt')
    assert.deepEqual(first!.metadata.signals, ['vector'])
    assert.deepEqual([first!.metadata.lexical_rank, first!.metadata.vector_rank], [null, 1])
    assert.ok(first!.score > second!.score && first!.score <= 0.5)
  })

  test('ranks results found by both words and meaning first', async () => {
    const [first] = await findResults('a car or vehicle')
    assert.equal(first!.metadata.file_name, 'car.txt')
    assert.deepEqual(first!.metadata.signals, ['lexical', 'vector'])
    assert.equal(first!.score, 1)
  })

  test('filters before it ranks', async () => {
    const hits = await findResults('automobile', { top_k: 1, filter_metadata: { extension: 'md' } })
    assert.deepEqual(
      hits.map(({ metadata }) => metadata.file_name),
      ['bread.md'],
    )
  })

  test('keeps its vectors when only metadata change', async () => {
    const vectors = () => query('select file_id::int, floats from rag_vector order by 1')
    const before = await vectors()
    const file_metadata = { 'cat.txt': { noise: 'purrs', weight: 4 } }
    assert.equal((await index({ path: 'v', collection_name: 'v', file_metadata })).status, 200)
    assert.deepEqual(await vectors(), before)
    for (const filter_metadata of [
      { weight: { $gte: 4 } },
      { noise: { $contains: 'purr' }, start_line: 1 },
    ]) {
      const hits = await findResults('automobile', { top_k: 1, filter_metadata })
      assert.deepEqual(
        hits.map(({ metadata }) => metadata.file_name),
        ['cat.txt'],
      )
    }
  })

  test('embeds nothing if a changed file has the same chunks', async () => {
    const read = () =>
      query(`select (select count(*)::int from job where name = 'rag.embed' and payload ? 'files') as jobs,
        (select count(distinct floats)::int from rag_vector) as vectors`)
    const before = await read()
    write({ 'v/bread.md': '\n\n# Bread\n\nThe loaf is warm.\n' })
    assert.equal((await index({ path: 'v', collection_name: 'v' })).json.documents_added, 1)
    assert.deepEqual(await read(), before)
    const [hit] = await findResults('bakery')
    assert.deepEqual([hit!.metadata.file_name, hit!.metadata.signals], ['bread.md', ['vector']])
  })

  test('keeps the vectors of unchanged content', async () => {
    const vectors = () => query('select file_id::int, floats from rag_vector order by 1')
    const before = await vectors()
    write({ 'v/cat.txt': 'A boat sails.' })
    assert.equal((await index({ path: 'v', collection_name: 'v' })).json.documents_added, 1)
    const after = await vectors()
    assert.equal(after.length, 4)
    assert.equal(after.filter((row) => before.some((old) => old.file_id === row.file_id)).length, 3)
    assert.equal((await findResults('vessel'))[0]!.metadata.file_name, 'cat.txt')
  })

  test('without vectors gets them in the next run', async () => {
    await query(`delete from rag_vector`)
    await query(`update rag_collection set embedding_model = null, dimensions = null, version = version + 1`)
    assert.deepEqual(await findResults('feline'), [])
    assert.equal((await index({ path: 'v', collection_name: 'v' })).json.documents_unchanged, 4)
    assert.equal((await findResults('loaf'))[0]!.metadata.file_name, 'bread.md')
    assert.equal((await findResults('bakery'))[0]!.metadata.signals[0], 'vector')
  })

  test('with vectors of another model than the configured one is searched by words only', async () => {
    const other = await startEdge(url, { env: { RAG_ROOT: root, RAG_EMBEDDINGS: 'lexical' } })
    const json = { collection_name: 'v', query: 'car' }
    const answer = await other.post('/rag/search', { json })
    assert.deepEqual(answer.json.results[0].metadata.signals, ['lexical'])
  })

  test('is healthy', async () => {
    const health = async () => (await api.get('/rag/health')).json
    await until('the model was checked', async () => (await health()).status === 'healthy')
    const { status, embeddings, active_embeddings, model, validation_errors } = await health()
    assert.deepEqual(
      { status, embeddings, active_embeddings, model, validation_errors },
      {
        status: 'healthy',
        embeddings: 'local',
        active_embeddings: 'local',
        model: MODEL,
        validation_errors: [],
      },
    )
  })
})

describe('a provider without a key', () => {
  test('is reported by health', async () => {
    const keyless = await startEdge(url, { env: { RAG_EMBEDDINGS: 'openai' } })
    const { status, active_embeddings, configuration_valid, validation_errors } = (
      await keyless.get('/rag/health')
    ).json
    assert.deepEqual(
      { status, active_embeddings, configuration_valid, validation_errors },
      {
        status: 'degraded',
        active_embeddings: 'lexical',
        configuration_valid: false,
        validation_errors: ['OPENAI_API_KEY is not set'],
      },
    )
  })
})
