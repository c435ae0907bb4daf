import {
  deletePagesOfDeletedDocuments,
  findUnreferencedBlobs,
  lockDigest,
  markAbandonedBlobs,
  markBlobDeletedIfUnreferenced,
  readBlobDigest,
} from '../../sql/documents/blobs.ts'
import type { TaskContext } from '../context.ts'
import { runInBatches } from '../system/batches.ts'

/**
 * Minimum age of garbage. One day is longer than the slowest upload and the longest extraction, so neither loses data
 * while it runs.
 */
export const GRACE_SECONDS = 86_400
// Small, because a document may have thousands of pages with images, and a batch holds its locks until all are deleted.
const DOCUMENT_BATCH_SIZE = 20
const BLOB_BATCH_SIZE = 1000
const REMOVAL_BATCH_SIZE = 100

/** Runs `documents.collect`. */
export async function run(ctx: TaskContext): Promise<{ documents: number; blobs: number; failed: number }> {
  const documents = await runInBatches(ctx.signal, DOCUMENT_BATCH_SIZE, () =>
    ctx.db.one(deletePagesOfDeletedDocuments(GRACE_SECONDS, DOCUMENT_BATCH_SIZE)),
  )
  await markUnreferencedBlobs(ctx)
  return { documents, ...(await removeAbandonedBlobs(ctx)) }
}

/**
 * Marks unreferenced blobs as deleted. Checks all sealed blobs in the order of their ids, which takes seconds for a
 * million blobs.
 */
async function markUnreferencedBlobs({ db, signal }: TaskContext): Promise<void> {
  for (let after = 0; ; ) {
    signal.throwIfAborted()
    const { last, unneeded } = await db.one(findUnreferencedBlobs(after, GRACE_SECONDS, BLOB_BATCH_SIZE))
    for (const id of unneeded) {
      const blob = await db.maybeOne(readBlobDigest(id))
      if (blob === null) continue
      await db.transaction(async (tx) => {
        // Recheck under the lock, because an upload of the same bytes may rely on the blob by now.
        await tx.run(lockDigest(Buffer.from(blob.sha256)))
        await tx.run(markBlobDeletedIfUnreferenced(id, GRACE_SECONDS))
      })
    }
    if (last === null) return
    after = last
  }
}

async function removeAbandonedBlobs({
  db,
  blobs,
  signal,
  log,
}: TaskContext): Promise<{ blobs: number; failed: number }> {
  const counts = { blobs: 0, failed: 0 }
  for (let after = 0; ; ) {
    signal.throwIfAborted()
    const found = await db.any(markAbandonedBlobs(after, GRACE_SECONDS, REMOVAL_BATCH_SIZE))
    if (found.length === 0) return counts
    for (const at of found) {
      after = at.blob_id
      try {
        await blobs.remove(at)
        counts.blobs++
      } catch (error) {
        counts.failed++
        log.warn({ blob: at.blob_id, store: at.store, error: String(error) }, 'Failed to remove stored bytes')
      }
    }
  }
}
