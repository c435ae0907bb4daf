import { z } from 'zod'
import { floatsOf } from '../../sql/rag/vectors.ts'
import { defineTask, loadLazily, type PoolName } from '../task.ts'
import type { QueryVector } from './searcher.ts'
import type { RagSettings } from './settings.ts'

const Payload = z.strictObject({
  /** Ids of files to embed. */
  files: z.array(z.int()).optional(),
  /** A question to embed; its vector is the result. */
  text: z.string().optional(),
})

export const EmbedResult = z.strictObject({
  /** Null if the model is unavailable; `reason` says why. */
  model: z.string().nullable(),
  /** 32-bit floats, little-endian, in base64; null for files. */
  vector: z.string().nullable(),
  reason: z.string().nullable(),
})
export type EmbedResult = z.output<typeof EmbedResult>

/** Converts the result for a question into the vector of a search; null if the model was unavailable. */
export function queryVectorOf({ model, vector }: EmbedResult): QueryVector | null {
  if (model === null || vector === null) return null
  return { model, floats: floatsOf(Buffer.from(vector, 'base64')) }
}

const run = loadLazily<z.output<typeof Payload>, EmbedResult>(() => import('./embed.work.ts'))
const defineEmbedTask = (name: string, queue: string, pool: PoolName) =>
  defineTask({ name, queue, pool, payload: Payload, result: EmbedResult, timeoutSeconds: 1800, run })

// The tasks have separate queues, because an indexing job waits for them and must not occupy the slot that they need.
/** Embeds with the local model, on the thread that holds it. */
export const embedLocally = defineEmbedTask('rag.embed', 'rag_model', 'model')
/** Embeds through a provider. */
export const embedRemotely = defineEmbedTask('rag.embed_remote', 'rag_remote', 'io')

/** Returns the embedding task that the settings select. */
export function selectEmbedTask({ embeddings }: RagSettings): typeof embedLocally {
  return embeddings === 'openai' ? embedRemotely : embedLocally
}
