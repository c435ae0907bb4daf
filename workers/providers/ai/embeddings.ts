import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { FeatureExtractionPipeline } from '@xenova/transformers'
import { Failure, fail } from '../../../sql/errors.ts'
import type { Embedded, Providers } from '../../../tasks/context.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { recordCall } from '../call.ts'
import { createStartOption, type ModelStarts, NO_STARTS, readJson } from './ai-calls.ts'
import { createClient, type OpenAI } from './openai.ts'
import { sendAdapted } from './parameters.ts'

/** Computes embeddings of texts. The only importer of `@xenova/transformers`. */

// Small enough for a batch to finish within the abort grace period.
const LOCAL_BATCH_SIZE = 16
// Delay before another try to load the model: its folder may exist by then, or the hub may be reachable.
const LOAD_RETRY_DELAY_MS = 60_000
const REMOTE_BATCH_SIZE = 64
// Retries of a call with several batches: a failed batch would lose all vectors and their cost. The retries wait 15 s
// in all, or the time that the provider asks for. A search query is retried only once, because a user waits for it.
const MAX_RETRIES = 5

export function createEmbedder(settings: Settings, starts = NO_STARTS): Providers['embed'] {
  const { embeddings, model } = settings.rag
  if (model === null) return () => Promise.resolve({ model: null, reason: 'RAG_EMBEDDINGS is lexical' })
  return embeddings === 'openai'
    ? createRemoteEmbedder(settings, model, starts)
    : createLocalEmbedder(settings, model)
}

function createLocalEmbedder(settings: Settings, model: string): Providers['embed'] {
  let loading: Promise<FeatureExtractionPipeline> | null = null
  let failedAt = Number.NEGATIVE_INFINITY
  const unavailable: Embedded = { model: null, reason: `The model ${model} could not be loaded` }
  return async (texts, signal) => {
    if (loading === null && performance.now() - failedAt < LOAD_RETRY_DELAY_MS) return unavailable
    loading ??= loadModel(settings, model)
    let extract: FeatureExtractionPipeline
    try {
      extract = await loading
    } catch {
      loading = null
      failedAt = performance.now()
      return unavailable
    }
    const vectors: Float32Array[] = []
    let dimensions = 0
    // Without texts, embed one anyway to verify the model and get its dimensions.
    const inputs = texts.length === 0 ? ['a'] : texts
    for (let from = 0; from < inputs.length; from += LOCAL_BATCH_SIZE) {
      signal.throwIfAborted()
      const batch = inputs.slice(from, from + LOCAL_BATCH_SIZE)
      const output = await extract([...batch], { pooling: 'mean', normalize: true })
      dimensions = output.dims.at(-1)!
      const floats = output.data as Float32Array
      for (let i = 0; i < batch.length; i++) vectors.push(floats.slice(i * dimensions, (i + 1) * dimensions))
    }
    return { model, dimensions, vectors: vectors.slice(0, texts.length) }
  }
}

/** Loads a model from the configured folder. Without a folder, loads it from the cache or the hub. */
async function loadModel({ rag, dataDir }: Settings, model: string): Promise<FeatureExtractionPipeline> {
  const { pipeline, env } = await import('@xenova/transformers')
  env.cacheDir = resolve(dataDir, 'models')
  env.allowRemoteModels = rag.modelDir === undefined
  if (rag.modelDir !== undefined) env.localModelPath = resolve(rag.modelDir)
  // The quantized model ranks results as well, at a quarter of the download. A folder may contain only the full model.
  const isQuantized =
    rag.modelDir === undefined || existsSync(join(rag.modelDir, model, 'onnx', 'model_quantized.onnx'))
  return pipeline('feature-extraction', model, { dtype: isQuantized ? 'q8' : 'fp32' })
}

function createRemoteEmbedder({ ai }: Settings, model: string, starts: ModelStarts): Providers['embed'] {
  return async (texts, signal) => {
    const { apiKey, baseUrl } = ai.endpoints.openai
    if (apiKey === null) return { model: null, reason: 'OPENAI_API_KEY is not set' }
    const client = await createClient({ apiKey, baseUrl }, ai.timeoutSeconds * 1000, 1)
    const vectors: Float32Array[] = []
    const maxRetries = texts.length > REMOTE_BATCH_SIZE ? MAX_RETRIES : 1
    try {
      for (let from = 0; from < texts.length; from += REMOTE_BATCH_SIZE) {
        // A person waits for the search with a single text. Later batches stay, because the vectors so far would be lost.
        const wait = texts.length === 1 ? 'first' : from === 0 ? starts.wait : 'stay'
        const option = createStartOption({ ...starts, wait }, 'openai', signal)
        const input = texts.slice(from, from + REMOTE_BATCH_SIZE)
        const adaptable = {
          key: `openai ${baseUrl} ${model}`,
          parameters: { model, input, encoding_format: 'float' },
          optional: ['encoding_format'],
        }
        // The client's own method would replace an omitted format by base64.
        const send = (body: object): Promise<Response> =>
          client.post('/embeddings', { body, signal, maxRetries, ...option }).asResponse()
        const answer = await recordCall(
          { provider: 'openai', operation: 'embeddings', url: baseUrl },
          async () => readJson(await sendAdapted(adaptable, send)),
        )
        const byIndex = [...(answer as OpenAI.CreateEmbeddingResponse).data].sort((a, b) => a.index - b.index)
        vectors.push(...byIndex.map(({ embedding }) => normalize(embedding)))
      }
    } catch (error) {
      if (signal.aborted || (error instanceof Failure && error.retry === 'free')) throw error
      const { status } = error as { status?: number }
      throw fail('rag.embedding_failed', { reason: status === undefined ? 'no answer' : `status ${status}` })
    }
    const dimensions = vectors[0]?.length ?? 0
    if (vectors.length !== texts.length || vectors.some(({ length }) => length !== dimensions))
      throw fail('rag.embedding_failed', { reason: 'the answer does not match the request' })
    return { model, dimensions, vectors }
  }
}

function normalize(values: readonly number[]): Float32Array {
  const length = Math.hypot(...values) || 1
  return Float32Array.from(values, (value) => value / length)
}
