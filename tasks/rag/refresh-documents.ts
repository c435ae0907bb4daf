import { z } from 'zod'
import type { Queries } from '../../sql/db.ts'
import { affectedCollections } from '../../sql/rag/documents.ts'
import { defineTask, type EnqueueOptions, enqueueMany, lazily } from '../task.ts'
import { actorOf } from './index-documents.ts'
import { IndexResult } from './index-result.ts'
import { INDEXING } from './indexing.ts'

const Payload = z.strictObject({ collection_id: z.int(), name: z.string() })
export type RefreshPayload = z.output<typeof Payload>

/**
 * Indexes a collection of documents again, by the selection that it has; the result is null when it was deleted, or has
 * all of it.
 */
export const refreshDocuments = defineTask({
  ...INDEXING,
  name: 'rag.refresh_documents',
  actor: ({ name }, ownerId) => actorOf(name, ownerId),
  links: ({ name }) => [{ kind: 'collection', id: name }],
  // One that is running may have read the documents before this change of them.
  whenBusy: 'join_waiting',
  joins: (payload) => payload,
  payload: Payload,
  result: IndexResult.nullable(),
  run: lazily(() => import('./refresh-documents-run.ts')),
})

// Changes that follow each other, such as of many documents, are indexed together.
const REFRESH_MS = 2000

/**
 * Has the collections follow that may have these documents of an owner, or may get them: in the transaction that changes
 * the documents, after the change. A deleted document is not shown even before.
 */
export async function refreshCollections(
  tx: Queries,
  documents: readonly number[],
  options: EnqueueOptions,
): Promise<void> {
  const affected = await tx.any(affectedCollections(options.ownerId, documents))
  if (affected.length === 0) return
  const payloads = affected.map(({ id, name }) => ({ collection_id: id, name }))
  await enqueueMany(tx, refreshDocuments, payloads, { ...options, delayMs: REFRESH_MS })
}
