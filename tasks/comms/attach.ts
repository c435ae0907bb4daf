import { type BlobAt, type Content, documentContents, hasBlob } from '../../sql/blobs.ts'
import type { SendAttachment } from '../../sql/comms.ts'
import type { Queries } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import { titledFile } from '../documents/file-name.ts'

/** How many files go with one email. */
export const MAX_ATTACHMENTS = 20

/** A document to attach, with where its bytes are. */
export type Attachable = Content & BlobAt & { readonly id: number }

/**
 * Documents of an owner to attach, in the order of their ids given, one of them as often as it is given.
 * @throws fail('email.attachments_missing') for what is not there, not the owner's, or in the trash, which is not told apart;
 *   fail('email.attachments_too_large') for more than `maxBytes` in all; fail('document.bytes_missing').
 */
export async function attachables(
  db: Queries,
  ids: readonly number[],
  owner: number | null,
  maxBytes: number,
): Promise<readonly Attachable[]> {
  if (ids.length === 0) return []
  const found = new Map((await db.any(documentContents(ids, owner))).map((one) => [one.id, one] as const))
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

/** What the ledger has of an attached document; by default its name is its title, with an ending. */
export function attachmentOf(
  { id, title, media_type, byte_size }: Attachable,
  filename: string | undefined,
): SendAttachment {
  // A title may be anything; a name of a file leads nowhere.
  const named = filename ?? titledFile(title.replace(/[\p{Cc}/\\]/gu, '_'), media_type)
  return { document_id: id, filename: named, media_type, byte_size }
}
