import { z } from 'zod'
import { Metadata, Selection } from '../../sql/rag/documents.ts'
import { defineTask, loadLazily } from '../task.ts'
import { IndexResult } from './index-result.ts'
import { INDEXING_OPTIONS } from './indexing.ts'

const Payload = z.strictObject({ collection: z.string(), documents: Selection, metadata: Metadata })

/**
 * Returns the mailbox of a collection. It contains the owner's id, so that collections of the same name do not block
 * each other.
 */
export const mailboxOf = (name: string, ownerId: number | null): string =>
  `rag-documents:${ownerId ?? 0}:${name}`

/**
 * Indexes the selected documents of the job's owner into their collection. Keeps unchanged documents and removes
 * deselected ones, like `rag.index`. All changes become visible together when the build is swapped in.
 */
export const indexDocuments = defineTask({
  ...INDEXING_OPTIONS,
  name: 'rag.index_documents',
  actor: ({ collection }, ownerId) => mailboxOf(collection, ownerId),
  links: ({ collection }) => [{ kind: 'collection', id: collection }],
  payload: Payload,
  result: IndexResult,
  run: loadLazily(() => import('./index-documents.work.ts')),
})
