import { EmbedResult, embedTaskOf, queryVectorOf } from '../../../tasks/rag/embed.ts'
import type { QueryVector, Search, SearchHit } from '../../../tasks/rag/searcher.ts'
import { enqueue } from '../../../tasks/task.ts'
import type { Edge } from '../../pipeline/context.ts'

/** The owner and the request of the job. */
export interface Asking {
  readonly ownerId: number | null
  readonly requestId: string
}

/**
 * Embeds a question in a job, which only loads the model if `text` is undefined. Returns null if the job fails or takes
 * longer than `waitMs`; a search then uses words only.
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
      settings: { workerMaxTries: 1, quotas: edge.settings.quotas },
    }),
  )
  edge.publisher.notify(jobId)
  const end = await edge.hub.terminal(jobId, waitMs)
  if (end === null || end.status !== 'done') {
    edge.log.warn({ jobId, requestId, status: end?.status }, 'Query embedding failed')
    return null
  }
  return EmbedResult.parse((JSON.parse(end.frame) as { result: unknown }).result)
}

// Embedding takes milliseconds. A full or unserved queue must not delay a search beyond this limit.
const QUESTION_MS = 5000

/**
 * Finds the chunks of a collection that best answer a question: by words and, if the collection has vectors, by meaning.
 * @throws fail('rag.missing'), fail('rag.busy')
 */
export async function ask(
  edge: Edge,
  question: Omit<Search, 'vector'>,
  asking: Asking,
): Promise<readonly SearchHit[]> {
  const vector = await vectorOf(edge, question, asking)
  return edge.retrieval.search({ ...question, vector })
}

/** Embeds a question for a collection; null if the collection has no vectors of the current model, or embedding fails. */
async function vectorOf(
  edge: Edge,
  question: Omit<Search, 'vector'>,
  asking: Asking,
): Promise<QueryVector | null> {
  const { model, embeddings } = edge.settings.rag
  if (embeddings === 'lexical') return null
  const of = await edge.retrieval.modelOf(question)
  if (of === null || of !== model) return null
  const result = await embeddedBy(edge, question.query, asking, QUESTION_MS)
  return result === null ? null : queryVectorOf(result)
}
