import type { Database, Queries } from '../../sql/db.ts'
import { findSealedBlob, lockDigest, sealBlob, unsealBlob } from '../../sql/documents/blobs.ts'
import { insertDocument, type NewDocument, setMediaType } from '../../sql/documents/documents.ts'
import { fail } from '../../sql/errors.ts'
import { findExceededQuota, type Quotas } from '../../sql/quotas/quotas.ts'
import type { TaskLog } from '../context.ts'
import type { Blobs, UploadedBlob } from './blobs/blobs.ts'
import { chooseMediaType, findProvenEncoding } from './media.ts'

/** Turns uploads into documents, or removes them. */

/** Returns the blob id of an earlier upload of the same bytes if the store has lost those bytes; otherwise null. */
export async function findLostDuplicate(
  db: Database,
  blobs: Blobs,
  { sha256, byteSize }: UploadedBlob,
): Promise<number | null> {
  const twin = await db.maybeOne(findSealedBlob(sha256))
  return twin === null || (await blobs.exists(twin, byteSize)) ? null : twin.blob_id
}

/**
 * Seals the blob of an upload, or selects that of an earlier upload of the same bytes, for rows that the transaction
 * adds. `lost` is the result of `findLostDuplicate`.
 *
 * @throws fail('document.store_failed') if garbage collection has removed the bytes of a slow upload.
 */
export async function sealUpload(tx: Queries, blob: UploadedBlob, lost: number | null): Promise<void> {
  const { at, sha256, byteSize } = blob
  await tx.run(lockDigest(sha256))
  // The new bytes replace those that the store has lost.
  if (lost !== null) await tx.run(unsealBlob(lost))
  const isStored =
    (await tx.maybeOne(sealBlob(at.blob_id, sha256, byteSize))) ?? (await tx.maybeOne(findSealedBlob(sha256)))
  if (isStored === null) throw fail('document.store_failed')
}

/**
 * Creates a document from an upload, or returns the owner's existing document with the same bytes.
 * `lost` is the result of `findLostDuplicate`.
 * @throws fail('document.store_failed') if garbage collection has removed the bytes of a slow upload.
 * @throws fail('quota.documents' | 'quota.bytes' | 'quota.file_bytes')
 */
export async function createDocument(
  tx: Queries,
  blob: UploadedBlob,
  lost: number | null,
  document: Omit<NewDocument, 'byteSize' | 'sha256' | 'encoding'>,
  quotas: Quotas,
): Promise<{ readonly id: number; readonly created: boolean }> {
  const { sha256, byteSize } = blob
  await sealUpload(tx, blob, lost)
  const encoding = findProvenEncoding(blob.head, document.mediaType)
  const stored = await tx.one(insertDocument({ ...document, encoding, byteSize, sha256 }))
  if (!stored.created) {
    const better = chooseMediaType(stored.media_type, document.mediaType)
    if (better !== stored.media_type) await tx.run(setMediaType(stored.id, better))
    return stored
  }
  const exceeded = await findExceededQuota(tx, document.ownerId, ['bytes', 'documents'], quotas)
  if (exceeded === null) return stored
  const { kind, quota } = exceeded
  throw fail(kind === 'bytes' && byteSize > quota ? 'quota.file_bytes' : `quota.${kind}`, { quota })
}

/**
 * Removes an upload that no document uses. Only logs a failure, because the next garbage collection removes the bytes.
 */
export async function discardUnusedUpload(blobs: Blobs, log: TaskLog, { at }: UploadedBlob): Promise<void> {
  try {
    await blobs.discard(at)
  } catch (error) {
    log.warn({ err: error, blob: at.blob_id }, 'Failed to remove the bytes of an upload')
  }
}
