import { EmbedResult, queryVectorOf, selectEmbedTask } from '../../../tasks/rag/embed.task.ts'
import type { QueryVector, Search, SearchHit } from '../../../tasks/rag/searcher.ts'
import { enqueue } from '../../../tasks/task.ts'
import type { Edge } from '../../pipeline/context.ts'

/** Owner and request of a job. */
export interface JobOrigin {
  readonly ownerId: number | null
  readonly requestId: string
}

/**
 * Embeds a question in a job. Without `text`, the job only loads the model. Returns null if the job fails or takes
 * longer than `waitMs`. A search then uses words only.
 */
export async function embedQuestion(
  edge: Edge,
  text: string | undefined,
  { ownerId, requestId }: JobOrigin,
  waitMs: number,
): Promise<EmbedResult | null> {
  const { jobId } = await edge.db.transaction((tx) =>
    enqueue(tx, selectEmbedTask(edge.settings.rag), text === undefined ? {} : { text }, {
      ownerId,
      requestId,
      settings: { workerMaxTries: 1, quotas: edge.settings.quotas },
    }),
  )
  const outcome = await edge.hub.waitForTerminal(jobId, waitMs)
  if (outcome === null || outcome.status !== 'done') {
    edge.log.warn({ jobId, requestId, status: outcome?.status }, 'Query embedding failed')
    return null
  }
  return EmbedResult.parse((JSON.parse(outcome.frame) as { result: unknown }).result)
}

// Embedding takes milliseconds, and a full or unserved queue must not delay a search any longer.
const EMBED_TIMEOUT_MS = 5000

/**
 * Finds the chunks of a collection that best answer a question, by words and, if the collection has vectors, by
 * meaning.
 * @throws fail('rag.missing'), fail('rag.busy')
 */
export async function searchCollection(
  edge: Edge,
  question: Omit<Search, 'vector'>,
  origin: JobOrigin,
): Promise<readonly SearchHit[]> {
  const vector = await embedForCollection(edge, question, origin)
  return edge.retrieval.search({ ...question, vector })
}

/**
 * Embeds a question for a collection. Returns null if the collection has no vectors of the current model, or if
 * embedding fails.
 */
async function embedForCollection(
  edge: Edge,
  question: Omit<Search, 'vector'>,
  origin: JobOrigin,
): Promise<QueryVector | null> {
  const { model, embeddings } = edge.settings.rag
  if (embeddings === 'lexical') return null
  const collectionModel = await edge.retrieval.modelOf(question)
  if (collectionModel === null || collectionModel !== model) return null
  const result = await embedQuestion(edge, question.query, origin, EMBED_TIMEOUT_MS)
  return result === null ? null : queryVectorOf(result)
}
