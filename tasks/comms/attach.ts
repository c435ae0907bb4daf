import type { SendAttachment } from '../../sql/comms/sends.ts'
import type { Queries } from '../../sql/db.ts'
import {
  type BlobLocation,
  type DocumentContent,
  findDocumentContents,
  hasBlob,
} from '../../sql/documents/blobs.ts'
import { fail } from '../../sql/errors.ts'
import { buildDocumentFileName } from '../documents/file-name.ts'

/** The maximum number of files attached to one email. */
export const MAX_ATTACHMENTS = 20

/** A document to attach, with the location of its bytes. */
export type AttachableDocument = DocumentContent & BlobLocation & { readonly id: number }

/**
 * Returns the owner's documents in the order of `ids`, with repetitions. Documents in the trash or of another owner
 * count as missing. `maxBytes` limits the total size.
 *
 * @throws fail('email.attachments_missing' | 'email.attachments_too_large' | 'document.bytes_missing')
 */
export async function findAttachableDocuments(
  db: Queries,
  ids: readonly number[],
  owner: number | null,
  maxBytes: number,
): Promise<readonly AttachableDocument[]> {
  if (ids.length === 0) return []
  const found = new Map((await db.any(findDocumentContents(ids, owner))).map((one) => [one.id, one] as const))
  const missing = new Set(ids.filter((id) => !found.has(id)))
  if (missing.size > 0) throw fail('email.attachments_missing', { ids: [...missing].join(', ') })
  const documents = ids.map((id) => found.get(id)!)
  const bytes = documents.reduce((sum, { byte_size }) => sum + byte_size, 0)
  if (bytes > maxBytes) throw fail('email.attachments_too_large', { bytes, limit: maxBytes })
  return documents.map((document) => {
    if (!hasBlob(document)) throw fail('document.bytes_missing')
    return document
  })
}

/** Creates the ledger's record of an attached document. The file name defaults to the title with an extension. */
export function toSendAttachment(
  { id, title, media_type, byte_size }: AttachableDocument,
  filename: string | undefined,
): SendAttachment {
  // A title may contain any character; a file name must not contain path separators.
  const safeName = filename ?? buildDocumentFileName(title.replace(/[\p{Cc}/\\]/gu, '_'), media_type)
  return { document_id: id, filename: safeName, media_type, byte_size }
}
