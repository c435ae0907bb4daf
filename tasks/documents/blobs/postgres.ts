import type { Database } from '../../../sql/db.ts'
import { appendChunk, deleteChunks, readBlobChunk, sumChunkBytes } from '../../../sql/documents/blobs.ts'
import { fail } from '../../../sql/errors.ts'
import { splitIntoParts } from './parts.ts'
import type { BlobStore } from './store.ts'

// Large enough that a 100 MiB file takes a few hundred statements, and small enough that a process can hold many
// chunks.
const CHUNK_BYTES = 256 * 1024

/** Stores bytes as chunks in the database, which needs no additional service or backup. */
export function createPostgresStore(db: Database): BlobStore {
  return {
    write: async ({ blob_id }, chunks) => {
      let ordinal = 0
      for await (const { bytes } of splitIntoParts(chunks, CHUNK_BYTES))
        if (bytes.length > 0) await db.run(appendChunk(blob_id, ordinal++, bytes))
    },
    read: async function* ({ blob_id }, from, length) {
      let skip = from % CHUNK_BYTES
      for (let ordinal = Math.floor(from / CHUNK_BYTES), left = length; left > 0; ordinal++, skip = 0) {
        const chunk = await db.maybeOne(readBlobChunk(blob_id, ordinal))
        const piece = chunk?.bytes.subarray(skip, skip + left)
        if (piece === undefined || piece.length === 0) throw fail('document.bytes_missing')
        left -= piece.length
        yield piece
      }
    },
    exists: async ({ blob_id }, byteSize) => (await db.one(sumChunkBytes(blob_id))).bytes === byteSize,
    remove: async ({ blob_id }) => void (await db.run(deleteChunks(blob_id))),
    close: () => {},
  }
}
