import { createHash } from 'node:crypto'
import type { Database } from '../sql/db.ts'
import { appendChunk, blobChunk, createBlob, deleteBlob } from '../sql/documents.ts'
import { fail } from '../sql/errors.ts'
import type { BodyWriter } from './server.ts'

/** The bytes of an upload, stored but not yet anybody's. */
export interface UploadedBlob {
  readonly id: number
  readonly sha256: Buffer
  readonly byteSize: number
  /** The first bytes, for telling what the file is. */
  readonly head: Uint8Array
}

// One row each; large enough that a 100 MiB file is a few hundred statements, small enough to be held often.
const CHUNK_BYTES = 256 * 1024
const HEAD_BYTES = 64 * 1024

/** Stores a stream of bytes chunk by chunk, in constant memory. What can't be finished is removed. */
export async function storeBlob(db: Database, chunks: AsyncIterable<Uint8Array>): Promise<UploadedBlob> {
  const { id } = await db.one(createBlob())
  try {
    const hash = createHash('sha256')
    let byteSize = 0
    let ordinal = 0
    let head: Buffer | null = null
    for await (const block of blocksOf(chunks)) {
      hash.update(block)
      head ??= Buffer.from(block.subarray(0, HEAD_BYTES))
      byteSize += block.length
      await db.run(appendChunk(id, ordinal++, block))
    }
    return { id, sha256: hash.digest(), byteSize, head: head ?? Buffer.alloc(0) }
  } catch (error) {
    await db.run(deleteBlob(id))
    throw error
  }
}

/** Regroups chunks of any size into blocks of one size; the last may be shorter. */
async function* blocksOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let held: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    held.push(chunk)
    size += chunk.length
    while (size >= CHUNK_BYTES) {
      const all = Buffer.concat(held)
      yield all.subarray(0, CHUNK_BYTES)
      const rest = all.subarray(CHUNK_BYTES)
      held = rest.length === 0 ? [] : [rest]
      size = rest.length
    }
  }
  if (size > 0) yield Buffer.concat(held)
}

/**
 * Sends a range of a blob as fast as the client takes it. What goes wrong, such as a chunk that has gone missing, cuts
 * the connection, since the length is already promised.
 */
export async function sendBlob(
  db: Database,
  blobId: number,
  writer: BodyWriter,
  from: number,
  length: number,
): Promise<void> {
  let left = length
  try {
    for (
      let ordinal = Math.floor(from / CHUNK_BYTES), skip = from % CHUNK_BYTES;
      left > 0;
      ordinal++, skip = 0
    ) {
      const chunk = await db.maybeOne(blobChunk(blobId, ordinal))
      if (chunk === null) throw fail('document.bytes_missing')
      const piece = chunk.bytes.subarray(skip, skip + left)
      left -= piece.length
      await writer.write(piece)
    }
  } catch (error) {
    writer.abort()
    throw error
  }
}
