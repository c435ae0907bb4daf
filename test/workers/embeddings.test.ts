import assert from 'node:assert/strict'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createEmbedder } from '../../workers/providers/ai/embeddings.ts'
import { createFolder } from '../edge/rag-help.ts'
import { DIMENSIONS, MODEL, writeModel } from '../model.ts'

/**
 * Embeddings come from a provider, or from a model in this process. The tests run the local model with the real
 * runtime.
 */

const models = createFolder()
writeModel(models)
const { signal } = new AbortController()
const createTestEmbedder = (env: Readonly<Record<string, string>>) => createEmbedder(parseSettings(env))
const local = createTestEmbedder({ RAG_MODEL_DIR: models, RAG_MODEL: MODEL })
const computeCosine = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, i) => sum + value * b[i]!, 0)

describe('a local model', () => {
  test('recognizes similar texts', async () => {
    const embedded = await local(['a fast car', 'the automobile', 'some bread'], signal)
    assert.ok(embedded.model !== null)
    assert.deepEqual([embedded.model, embedded.dimensions], [MODEL, DIMENSIONS])
    const [car, automobile, bread] = embedded.vectors
    for (const vector of embedded.vectors) assert.ok(Math.abs(computeCosine(vector, vector) - 1) < 1e-5)
    assert.ok(computeCosine(car!, automobile!) > 0.9)
    assert.ok(computeCosine(car!, bread!) < 0.5)
  })

  test('accepts any number of texts of any length', async () => {
    const texts = Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? 'car' : `bread ${'word '.repeat(500)}`))
    const embedded = await local(texts, signal)
    assert.ok(embedded.model !== null)
    assert.equal(embedded.vectors.length, 40)
    assert.ok(computeCosine(embedded.vectors[0]!, embedded.vectors[38]!) > 0.999)
    const none = await local([], signal)
    assert.ok(none.model !== null && none.vectors.length === 0 && none.dimensions === DIMENSIONS)
  })

  test('stops on its signal', async () => {
    await assert.rejects(local(['car'], AbortSignal.abort()))
  })

  test('is reported if it is missing, and not searched each time', async () => {
    const missing = createTestEmbedder({ RAG_MODEL_DIR: models, RAG_MODEL: 'tests/missing' })
    for (let i = 0; i < 2; i++)
      assert.deepEqual(await missing(['car'], signal), {
        model: null,
        reason: 'The model tests/missing could not be loaded',
      })
  })
})

describe('a provider', () => {
  const asked: unknown[] = []
  let answer: (input: readonly string[], body: object) => [status: number, body: object] = () => [500, {}]
  const server = http.createServer((request, response) => {
    let body = ''
    request.on('data', (data) => {
      body += data
    })
    request.on('end', () => {
      const json = JSON.parse(body)
      asked.push([request.url, request.headers.authorization, json.model, json.input.length])
      const [status, value] = answer(json.input, json)
      response
        .writeHead(status, { 'content-type': 'application/json', 'retry-after-ms': '1' })
        .end(JSON.stringify(value))
    })
  })
  server.listen(0, '127.0.0.1')
  after(() => server.close())
  const env = () => ({
    RAG_EMBEDDINGS: 'openai',
    OPENAI_API_KEY: 'sk-test',
    OPENAI_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
  })

  test('is asked in batches, in any order of its answers', async () => {
    answer = (input) => [
      200,
      { data: input.map((text, index) => ({ index, embedding: [Number(text), 1] })).reverse() },
    ]
    const embedded = await createTestEmbedder(env())(
      Array.from({ length: 70 }, (_, i) => String(i)),
      signal,
    )
    assert.ok(embedded.model !== null)
    assert.deepEqual([embedded.model, embedded.dimensions], ['text-embedding-3-small', 2])
    assert.deepEqual(asked, [
      ['/v1/embeddings', 'Bearer sk-test', 'text-embedding-3-small', 64],
      ['/v1/embeddings', 'Bearer sk-test', 'text-embedding-3-small', 6],
    ])
    assert.ok(Math.abs(embedded.vectors[3]![0]! / embedded.vectors[3]![1]! - 3) < 1e-5)
    assert.ok(Math.abs(computeCosine(embedded.vectors[69]!, embedded.vectors[69]!) - 1) < 1e-5)
  })

  test('is asked again when it is overloaded, before the vectors of many texts are lost', async () => {
    let asks = 0
    answer = (input) =>
      input[0] === '64' && ++asks < 5
        ? [429, {}]
        : [200, { data: input.map((_, index) => ({ index, embedding: [1, 1] })) }]
    const texts = Array.from({ length: 70 }, (_, i) => String(i))
    const embedded = await createTestEmbedder(env())(texts, signal)
    assert.ok(embedded.model !== null)
    assert.deepEqual([embedded.vectors.length, asks], [70, 5])
    asks = 0
    await assert.rejects(createTestEmbedder(env())(['64'], signal), { code: 'rag.embedding_failed' })
    assert.equal(asks, 2)
  })

  test('has a rate for each request: a batch of many texts waits here for the vectors so far', async () => {
    let asks = 0
    answer = (input) => [
      ++asks === 2 ? 429 : 200,
      { data: input.map((_, index) => ({ index, embedding: [1, 1] })) },
    ]
    const waits: string[] = []
    const limit = { enter: async (wait: string) => void waits.push(wait) }
    const embed = createEmbedder(parseSettings(env()), {
      limits: { openai: limit } as never,
      wait: 'release',
    })
    await embed(
      Array.from({ length: 70 }, (_, i) => String(i)),
      signal,
    )
    await embed(['a search'], signal)
    assert.deepEqual([waits, asks], [['release', 'stay', 'stay', 'first'], 4])
  })

  test('gets no format once it has refused it', async () => {
    const formats: boolean[] = []
    answer = (input, body) => {
      formats.push('encoding_format' in body)
      return 'encoding_format' in body
        ? [400, { error: { message: 'Unrecognized request argument supplied: encoding_format' } }]
        : [200, { data: input.map((_, index) => ({ index, embedding: [1, 1] })) }]
    }
    const embed = createTestEmbedder({ ...env(), RAG_MODEL: 'without-formats' })
    for (let n = 0; n < 2; n++) {
      const embedded = await embed(['a'], signal)
      assert.ok(embedded.model !== null && embedded.vectors.length === 1)
    }
    assert.deepEqual(formats, [true, false, false])
  })

  test('causes a failure without its text when it rejects or answers wrongly', async () => {
    for (const [status, body, reason] of [
      [401, { error: { message: 'bad key sk-test' } }, 'status 401'],
      [200, { data: [] }, 'the answer does not match the request'],
    ] as const) {
      answer = () => [status, body]
      await assert.rejects(createTestEmbedder(env())(['a'], signal), {
        code: 'rag.embedding_failed',
        detail: `The embeddings provider could not be reached or failed: ${reason}`,
      })
    }
  })

  test('is not asked without a key', async () => {
    const { OPENAI_API_KEY: _, ...keyless } = env()
    assert.deepEqual(await createTestEmbedder(keyless)(['a'], signal), {
      model: null,
      reason: 'OPENAI_API_KEY is not set',
    })
    assert.equal((await createTestEmbedder({ RAG_EMBEDDINGS: 'lexical' })(['a'], signal)).model, null)
  })
})
