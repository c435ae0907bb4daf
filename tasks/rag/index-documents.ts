import { z } from 'zod'
import { Selection } from '../../sql/rag/documents.ts'
import { defineTask, loadLazily } from '../task.ts'
import { IndexResult } from './index-result.ts'
import { INDEXING_OPTIONS } from './indexing.ts'

const Payload = z.strictObject({ collection: z.string(), documents: Selection })
export type IndexDocumentsPayload = z.output<typeof Payload>

/**
 * Returns the mailbox of a collection. It includes the owner, so that another owner's collection of the same name does
 * not block it.
 */
export const mailboxOf = (name: string, ownerId: number | null): string =>
  `rag-documents:${ownerId ?? 0}:${name}`

/**
 * Indexes the selected documents of the job's owner into their collection. As in `rag.index`, unchanged documents stay
 * and deselected ones are removed. Changes become visible together, when the build is swapped in.
 */
export const indexDocuments = defineTask({
  ...INDEXING_OPTIONS,
  name: 'rag.index_documents',
  actor: ({ collection }, ownerId) => mailboxOf(collection, ownerId),
  links: ({ collection }) => [{ kind: 'collection', id: collection }],
  payload: Payload,
  result: IndexResult,
  run: loadLazily(() => import('./index-documents-run.ts')),
})
