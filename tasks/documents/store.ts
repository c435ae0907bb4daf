import { lockDigest, sealBlob, sealedBlob, unsealBlob } from '../../sql/blobs.ts'
import type { Database, Queries } from '../../sql/db.ts'
import { insertDocument, type NewDocument } from '../../sql/documents.ts'
import { fail } from '../../sql/errors.ts'
import { exceededQuota, type Quotas } from '../../sql/quotas.ts'
import type { TaskLog } from '../context.ts'
import type { Blobs, UploadedBlob } from './blobs.ts'

/** Bytes that have arrived become what they are for, or nothing is left of them. */

/** The blob of an earlier upload of the same bytes, if the store has lost it. */
export async function lostTwin(
  db: Database,
  blobs: Blobs,
  { sha256, byteSize }: UploadedBlob,
): Promise<number | null> {
  const twin = await db.maybeOne(sealedBlob(sha256))
  return twin === null || (await blobs.exists(twin, byteSize)) ? null : twin.blob_id
}

/**
 * Keeps the bytes of an upload, or the same ones of an earlier upload, for what the transaction stores beside them. `lost`:
 * what `lostTwin` has found.
 * @throws fail('document.store_failed') when the upload took so long that its bytes were collected.
 */
export async function sealUpload(tx: Queries, blob: UploadedBlob, lost: number | null): Promise<void> {
  const { at, sha256, byteSize } = blob
  await tx.run(lockDigest(sha256))
  // The store has lost the bytes of an earlier upload; these take their place.
  if (lost !== null) await tx.run(unsealBlob(lost))
  const isStored =
    (await tx.maybeOne(sealBlob(at.blob_id, sha256, byteSize))) ?? (await tx.maybeOne(sealedBlob(sha256)))
  if (isStored === null) throw fail('document.store_failed')
}

/**
 * Makes an upload a document, or finds the one that its owner has of the same bytes. `lost`: what `lostTwin` has found.
 * @throws fail('document.store_failed') when the upload took so long that its bytes were collected; fail('quota.documents' |
 *   'quota.bytes' | 'quota.file_bytes').
 */
export async function becomeDocument(
  tx: Queries,
  blob: UploadedBlob,
  lost: number | null,
  document: Omit<NewDocument, 'byteSize' | 'sha256'>,
  quotas: Quotas,
): Promise<{ readonly id: number; readonly created: boolean }> {
  const { sha256, byteSize } = blob
  await sealUpload(tx, blob, lost)
  const stored = await tx.one(insertDocument({ ...document, byteSize, sha256 }))
  if (!stored.created) return stored
  const exceeded = await exceededQuota(tx, document.ownerId, ['bytes', 'documents'], quotas)
  if (exceeded === null) return stored
  const { kind, quota } = exceeded
  throw fail(kind === 'bytes' && byteSize > quota ? 'quota.file_bytes' : `quota.${kind}`, { quota })
}

/** Removes bytes that no document uses. A failure here fails nothing: a later collection removes them. */
export async function discardUnused(blobs: Blobs, log: TaskLog, { at }: UploadedBlob): Promise<void> {
  try {
    await blobs.discard(at)
  } catch (error) {
    log.warn({ err: error, blob: at.blob_id }, 'The bytes of an upload could not be removed')
  }
}
