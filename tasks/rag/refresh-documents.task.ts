import { z } from 'zod'
import type { Queries } from '../../sql/db.ts'
import { listAffectedCollections } from '../../sql/rag/documents.ts'
import { defineTask, type EnqueueOptions, enqueueMany, loadLazily } from '../task.ts'
import { mailboxOf } from './index-documents.task.ts'
import { IndexResult } from './index-result.ts'
import { INDEXING_OPTIONS } from './indexing.ts'

const Payload = z.strictObject({ collection_id: z.int(), name: z.string() })

/**
 * Updates a collection of documents by its stored selection. The result is null if the collection was deleted or is up
 * to date.
 */
export const refreshDocuments = defineTask({
  ...INDEXING_OPTIONS,
  name: 'rag.refresh_documents',
  actor: ({ name }, ownerId) => mailboxOf(name, ownerId),
  links: ({ name }) => [{ kind: 'collection', id: name }],
  // Never join a running job, because it may have read the documents before the change.
  whenBusy: 'join_waiting',
  joinCriteria: (payload) => payload,
  payload: Payload,
  result: IndexResult.nullable(),
  run: loadLazily(() => import('./refresh-documents.work.ts')),
})

// Delay that lets one job index successive changes together.
const REFRESH_DELAY_MS = 2000

/**
 * Enqueues a refresh of all collections that may contain these documents of an owner. Call it after the change, in its
 * transaction. Searches hide deleted documents even before the refresh.
 */
export async function refreshCollections(
  tx: Queries,
  documents: readonly number[],
  options: EnqueueOptions,
): Promise<void> {
  const affected = await tx.any(listAffectedCollections(options.ownerId, documents))
  if (affected.length === 0) return
  const payloads = affected.map(({ id, name }) => ({ collection_id: id, name }))
  await enqueueMany(tx, refreshDocuments, payloads, { ...options, delayMs: REFRESH_DELAY_MS })
}
