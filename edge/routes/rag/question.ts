import { EmbedResult, embedTaskOf, queryVectorOf } from '../../../tasks/rag/embed.ts'
import type { QueryVector, Search, SearchHit } from '../../../tasks/rag/searcher.ts'
import { enqueue } from '../../../tasks/task.ts'
import type { Edge } from '../../pipeline/context.ts'

/** Who asks, for the job that it takes. */
export interface Asking {
  readonly ownerId: number | null
  readonly requestId: string
}

/**
 * Has a job embed a question, or, without one, only load the model; null when that has not ended in time. A search then goes
 * on by words alone.
 */
export async function embeddedBy(
  edge: Edge,
  text: string | undefined,
  { ownerId, requestId }: Asking,
  waitMs: number,
): Promise<EmbedResult | null> {
  const { jobId } = await edge.db.transaction((tx) =>
    enqueue(tx, embedTaskOf(edge.settings.rag), text === undefined ? {} : { text }, {
      ownerId,
      requestId,
      maxTries: 1,
    }),
  )
  edge.publisher.notify(jobId)
  const end = await edge.hub.terminal(jobId, waitMs)
  if (end === null || end.status !== 'done') {
    edge.log.warn({ jobId, requestId, status: end?.status }, 'A question was not embedded')
    return null
  }
  return EmbedResult.parse((JSON.parse(end.frame) as { result: unknown }).result)
}

// Embedding takes milliseconds; a queue that is full or unserved must not hold a search up for longer.
const QUESTION_MS = 5000

/**
 * The chunks of a collection that answer a question best: by its words, and by its meaning where the collection has vectors.
 * @throws fail('rag.missing'), fail('rag.busy').
 */
export async function ask(
  edge: Edge,
  question: Omit<Search, 'vector'>,
  asking: Asking,
): Promise<readonly SearchHit[]> {
  const vector = await vectorOf(edge, question.collection, question.query, asking)
  return edge.retrieval.search({ ...question, vector })
}

/** A question as the vectors of a collection have it; null where it has none, or the model can't be had. */
async function vectorOf(
  edge: Edge,
  collection: string,
  text: string,
  asking: Asking,
): Promise<QueryVector | null> {
  const { model, embeddings } = edge.settings.rag
  if (embeddings === 'lexical') return null
  const of = await edge.retrieval.modelOf(collection)
  if (of === null || of !== model) return null
  const result = await embeddedBy(edge, text, asking, QUESTION_MS)
  return result === null ? null : queryVectorOf(result)
}
