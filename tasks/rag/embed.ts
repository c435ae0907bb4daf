import { z } from 'zod'
import {
  addNeighbours,
  addVectors,
  chunkTexts,
  floatsOf,
  type Neighbour,
  type NewVectors,
  prepareNeighbours,
} from '../../sql/rag.ts'
import type { TaskContext } from '../context.ts'
import { defineTask, type PoolName } from '../task.ts'
import type { QueryVector } from './searcher.ts'
import type { RagSettings } from './settings.ts'

const Payload = z.strictObject({
  /** Files whose chunks get vectors. */
  files: z.array(z.int()).optional(),
  /** A question, whose vector is the result. */
  text: z.string().optional(),
})

export const EmbedResult = z.strictObject({
  /** Null where the model can't be had. */
  model: z.string().nullable(),
  /** Floats of 4 bytes, least first, in base64. */
  vector: z.string().nullable(),
  reason: z.string().nullable(),
})
export type EmbedResult = z.output<typeof EmbedResult>

/** What a search takes of the result for a question; null where the model could not be had. */
export function queryVectorOf({ model, vector }: EmbedResult): QueryVector | null {
  if (model === null || vector === null) return null
  return { model, floats: floatsOf(Buffer.from(vector, 'base64')) }
}

const taskOf = (name: string, queue: string, pool: PoolName) =>
  defineTask({ name, queue, pool, payload: Payload, result: EmbedResult, timeoutSeconds: 1800, run })

// Queues of their own: who indexes waits for them, and must not hold the slot that they need.
/** Embeds by the model in this process: on the one thread that holds it. */
export const embedLocally = taskOf('rag.embed', 'rag_model', 'model')
/** Embeds by a provider. */
export const embedRemotely = taskOf('rag.embed_remote', 'rag_remote', 'io')

/** The task that embeds as the settings want it. */
export function embedTaskOf({ embeddings }: RagSettings): typeof embedLocally {
  return embeddings === 'openai' ? embedRemotely : embedLocally
}

async function run(ctx: TaskContext, { files = [], text }: z.output<typeof Payload>): Promise<EmbedResult> {
  const rows = files.length === 0 ? [] : await ctx.db.any(chunkTexts(files))
  const texts = text === undefined ? rows.map((row) => row.text) : [text]
  const embedded = await ctx.providers.embed(texts, ctx.signal)
  if (embedded.model === null) return { model: null, vector: null, reason: embedded.reason }
  const { model, dimensions, vectors } = embedded
  if (text !== undefined)
    return { model, vector: Buffer.from(bytesOf(vectors)).toString('base64'), reason: null }
  if (rows.length > 0) await store(ctx, model, dimensions, rows, vectors)
  return { model, vector: null, reason: null }
}

async function store(
  ctx: TaskContext,
  model: string,
  dimensions: number,
  rows: readonly { readonly file_id: number }[],
  vectors: readonly Float32Array[],
): Promise<void> {
  const found: NewVectors[] = []
  const neighbours: Neighbour[] = []
  for (const file of new Set(rows.map((row) => row.file_id))) {
    const own = vectors.filter((_, i) => rows[i]!.file_id === file)
    found.push({ file, dimensions, floats: bytesOf(own) })
    neighbours.push(...own.map((vector, ordinal) => ({ file, ordinal, vector })))
  }
  await ctx.fenced(async (tx) => {
    await tx.run(addVectors(model, found))
    const { ready } = await tx.one(prepareNeighbours(dimensions))
    if (ready) await tx.run(addNeighbours(model, dimensions, neighbours))
  })
}

function bytesOf(vectors: readonly Float32Array[]): Uint8Array {
  return Buffer.concat(
    vectors.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
  )
}
