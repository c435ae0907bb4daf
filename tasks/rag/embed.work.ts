import {
  addNeighbours,
  addVectors,
  createNeighbourTable,
  listChunkTexts,
  type Neighbour,
  type NewVectors,
} from '../../sql/rag/vectors.ts'
import type { TaskContext } from '../context.ts'

interface EmbedPayload {
  readonly files?: readonly number[] | undefined
  readonly text?: string | undefined
}

interface EmbedResult {
  readonly model: string | null
  readonly vector: string | null
  readonly reason: string | null
}

/** Runs `rag.embed` and `rag.embed_remote`. */
export async function run(ctx: TaskContext, { files = [], text }: EmbedPayload): Promise<EmbedResult> {
  const rows = files.length === 0 ? [] : await ctx.db.any(listChunkTexts(files))
  const texts = text === undefined ? rows.map((row) => row.text) : [text]
  const embedded = await ctx.providers.embed(texts, ctx.signal)
  if (embedded.model === null) return { model: null, vector: null, reason: embedded.reason }
  const { model, dimensions, vectors } = embedded
  if (text !== undefined)
    return { model, vector: Buffer.from(bytesOf(vectors)).toString('base64'), reason: null }
  if (rows.length > 0) await storeVectors(ctx, model, dimensions, rows, vectors)
  return { model, vector: null, reason: null }
}

async function storeVectors(
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
  await ctx.runFenced(async (tx) => {
    await tx.run(addVectors(model, found))
    const { ready } = await tx.one(createNeighbourTable(dimensions))
    if (ready) await tx.run(addNeighbours(model, dimensions, neighbours))
  })
}

function bytesOf(vectors: readonly Float32Array[]): Uint8Array {
  return Buffer.concat(
    vectors.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
  )
}
