import { z } from 'zod'
import { Selection } from '../../sql/rag/documents.ts'
import { defineTask, lazily } from '../task.ts'
import { IndexResult } from './index-result.ts'
import { INDEXING } from './indexing.ts'

const Payload = z.strictObject({ collection: z.string(), documents: Selection })
export type IndexDocumentsPayload = z.output<typeof Payload>

/** The mailbox of a collection. With the owner: a job for a name that somebody else has must not hold up theirs. */
export const actorOf = (name: string, ownerId: number | null): string =>
  `rag-documents:${ownerId ?? 0}:${name}`

/**
 * Indexes documents of the job's owner that a selection has into a collection of theirs. Otherwise like `rag.index`: what
 * has not changed stays, what is not selected any more goes, and nothing is visible until all of it is swapped in.
 */
export const indexDocuments = defineTask({
  ...INDEXING,
  name: 'rag.index_documents',
  actor: ({ collection }, ownerId) => actorOf(collection, ownerId),
  links: ({ collection }) => [{ kind: 'collection', id: collection }],
  payload: Payload,
  result: IndexResult,
  run: lazily(() => import('./index-documents-run.ts')),
})
