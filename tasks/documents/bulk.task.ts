import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

export const MAX_BULK_DOCUMENTS = 1000
const MAX_LINKS = 20

const DocumentIds = z.array(z.int().min(1)).min(1).max(MAX_BULK_DOCUMENTS)
export const Label = z.string().trim().min(1).max(64)

/** An action on several documents. */
export const BulkAction = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('tag'), ids: DocumentIds, label: Label }).meta({ id: 'DocumentsTag' }),
  z
    .strictObject({ action: z.literal('untag'), ids: DocumentIds, label: Label })
    .meta({ id: 'DocumentsUntag' }),
  z
    .strictObject({ action: z.literal('delete'), ids: DocumentIds, permanent: z.boolean().default(false) })
    .meta({ id: 'DocumentsDelete' }),
  z.strictObject({ action: z.literal('extract'), ids: DocumentIds }).meta({ id: 'DocumentsExtract' }),
])

export const BulkResult = z.strictObject({
  /** Number of documents that now have the requested state, even if they had it before. */
  done: z.int(),
  refused: z.array(z.strictObject({ id: z.int(), code: z.string(), detail: z.string() })),
})

/** Tags, deletes or extracts the owner's documents, one transaction per batch. Repeating a step changes nothing. */
export const bulkDocuments = defineTask({
  name: 'documents.bulk',
  queue: 'system',
  pool: 'io',
  // One mailbox per owner, so that requests run in order.
  actor: (_, ownerId) => `documents:${ownerId ?? 0}`,
  // Links are for display and may be incomplete: the payload contains all ids.
  links: ({ ids }) => ids.slice(0, MAX_LINKS).map((id) => ({ kind: 'document', id })),
  payload: BulkAction,
  result: BulkResult,
  run: loadLazily(() => import('./bulk.work.ts')),
})
