import { z } from 'zod'
import { floatsOf } from '../../sql/rag.ts'
import { defineTask, lazily, type PoolName } from '../task.ts'
import type { QueryVector } from './searcher.ts'
import type { RagSettings } from './settings.ts'

const Payload = z.strictObject({
  /** Files whose chunks get vectors. */
  files: z.array(z.int()).optional(),
  /** A question, whose vector is the result. */
  text: z.string().optional(),
})
export type EmbedPayload = z.output<typeof Payload>

export const EmbedResult = z.strictObject({
  /** Null when the model is unavailable. */
  model: z.string().nullable(),
  /** Floats of 4 bytes, little-endian, in base64. */
  vector: z.string().nullable(),
  reason: z.string().nullable(),
})
export type EmbedResult = z.output<typeof EmbedResult>

/** The result for a question as a search takes it; null when the model was unavailable. */
export function queryVectorOf({ model, vector }: EmbedResult): QueryVector | null {
  if (model === null || vector === null) return null
  return { model, floats: floatsOf(Buffer.from(vector, 'base64')) }
}

const run = lazily<EmbedPayload, EmbedResult>(() => import('./embed-run.ts'))
const taskOf = (name: string, queue: string, pool: PoolName) =>
  defineTask({ name, queue, pool, payload: Payload, result: EmbedResult, timeoutSeconds: 1800, run })

// They have queues of their own: an indexing job waits for them, and must not hold the slot that they need.
/** Embeds with the model in this process, on the one thread that holds it. */
export const embedLocally = taskOf('rag.embed', 'rag_model', 'model')
/** Embeds through a provider. */
export const embedRemotely = taskOf('rag.embed_remote', 'rag_remote', 'io')

/** The embedding task that the settings select. */
export function embedTaskOf({ embeddings }: RagSettings): typeof embedLocally {
  return embeddings === 'openai' ? embedRemotely : embedLocally
}
