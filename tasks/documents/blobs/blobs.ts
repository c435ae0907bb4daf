import { createHash } from 'node:crypto'
import type { Database } from '../../../sql/db.ts'
import {
  appendChunk,
  type BlobLocation,
  createBlob,
  deleteBlob,
  deleteChunks,
  findBlobLocation,
  markUploadDeleted,
  readBlobChunk,
  recordMultipartUpload,
  sumChunkBytes,
} from '../../../sql/documents/blobs.ts'
import { Failure, fail } from '../../../sql/errors.ts'
import type { Settings } from '../../platform/settings/settings.ts'
import { HEAD_BYTES } from '../media.ts'
import { createFileStore } from './files.ts'
import { parseLocation } from './location.ts'
import { splitIntoParts } from './parts.ts'
import type { BlobStore } from './store.ts'

/** The stored bytes of an upload that no document uses yet. */
export interface UploadedBlob {
  readonly at: BlobLocation
  readonly sha256: Buffer
  readonly byteSize: number
  /** The first bytes, for detecting the file's type. */
  readonly head: Uint8Array
}

/** Stored bytes. Each blob's row names its store; new blobs go to `BLOB_STORE`. */
export interface Blobs {
  /**
   * Stores a stream in constant memory. A chunk need not stay valid once the next is requested. Leaves nothing behind
   * if it fails.
   */
  store(chunks: AsyncIterable<Uint8Array>): Promise<UploadedBlob>
  /** Stores the bytes of an existing row under its key, in constant memory. For restores. */
  put(at: BlobLocation, chunks: AsyncIterable<Uint8Array>): Promise<void>
  /** Removes an upload, unless a document already uses it. */
  discard(at: BlobLocation): Promise<void>
  /**
   * Streams exactly this range of the bytes, with backpressure. A chunk is valid until the next is requested.
   * @throws fail('document.bytes_missing' | 'document.store_failed'), before the first chunk if possible.
   */
  read(at: BlobLocation, from: number, length: number): AsyncIterable<Uint8Array>
  /** Reads all bytes of a blob. @throws fail('document.bytes_missing'), also if the size differs. */
  readWhole(blobId: number, byteSize: number): Promise<Uint8Array>
  /** True if all `byteSize` bytes exist; false if their store is not configured. */
  exists(at: BlobLocation, byteSize: number): Promise<boolean>
  /** Removes the bytes of a row that is marked as deleted, then the row. */
  remove(at: BlobLocation): Promise<void>
  close(): Promise<void>
}

/** The settings of stored files. */
export type BlobSettings = Pick<Settings, 'blobs' | 'maxUploadBytes'>

export function createBlobs(db: Database, settings: BlobSettings): Blobs {
  return new StoredBlobs(db, settings)
}

class StoredBlobs implements Blobs {
  private readonly db: Database
  private readonly settings: BlobSettings
  private readonly stores = new Map<string, Promise<BlobStore | null>>()

  constructor(db: Database, settings: BlobSettings) {
    this.db = db
    this.settings = settings
  }

  async store(chunks: AsyncIterable<Uint8Array>): Promise<UploadedBlob> {
    const { db } = this
    const at = await db.one(createBlob(this.settings.blobs.store))
    const noteUploadId = async (uploadId: string): Promise<void> =>
      void (await db.run(recordMultipartUpload(at.blob_id, uploadId)))
    try {
      const digest = new DigestingStream(chunks)
      await convertErrors(async () => (await this.requireStore(at)).write(at, digest, noteUploadId))
      return { at, ...digest.getResult() }
    } catch (error) {
      // Ignore errors of the cleanup: the caller needs the original error, and garbage collection removes the rest.
      await this.discard(at).catch(() => {})
      throw error
    }
  }

  async put(at: BlobLocation, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const noteUploadId = async (uploadId: string): Promise<void> =>
      void (await this.db.run(recordMultipartUpload(at.blob_id, uploadId)))
    await convertErrors(async () => (await this.requireStore(at)).write(at, chunks, noteUploadId))
  }

  async discard(at: BlobLocation): Promise<void> {
    const { deleted } = await this.db.one(markUploadDeleted(at.blob_id))
    // Reload the row, because it may have an upload id by now; `remove` must also remove that upload.
    if (deleted) await this.remove((await this.db.maybeOne(findBlobLocation(at.blob_id))) ?? at)
  }

  read(at: BlobLocation, from: number, length: number): AsyncIterable<Uint8Array> {
    return yieldExactly(length, async () => (await this.requireStore(at)).read(at, from, length))
  }

  async readWhole(blobId: number, byteSize: number): Promise<Uint8Array> {
    const at = await this.db.maybeOne(findBlobLocation(blobId))
    if (at === null || !(await this.exists(at, byteSize))) throw fail('document.bytes_missing')
    const bytes = new Uint8Array(byteSize)
    let offset = 0
    for await (const piece of this.read(at, 0, byteSize)) {
      bytes.set(piece, offset)
      offset += piece.length
    }
    return bytes
  }

  exists(at: BlobLocation, byteSize: number): Promise<boolean> {
    return convertErrors(async () => (await (await this.openAt(at.store))?.exists(at, byteSize)) ?? false)
  }

  async remove(at: BlobLocation): Promise<void> {
    await convertErrors(async () => (await this.requireStore(at)).remove(at))
    await this.db.run(deleteBlob(at.blob_id))
  }

  async close(): Promise<void> {
    for (const opened of await Promise.allSettled(this.stores.values()))
      if (opened.status === 'fulfilled') opened.value?.close()
  }

  private openAt(location: string): Promise<BlobStore | null> {
    const known = this.stores.get(location) ?? openStore(location, this.db, this.settings)
    this.stores.set(location, known)
    return known
  }

  private async requireStore({ store }: BlobLocation): Promise<BlobStore> {
    const found = await this.openAt(store)
    if (found === null) throw fail('document.bytes_missing')
    return found
  }
}

/** Opens the store at a location; null if the location is invalid or the settings do not configure it. */
async function openStore(location: string, db: Database, settings: BlobSettings): Promise<BlobStore | null> {
  const parsed = parseLocation(location)
  if (parsed === null) return null
  if (parsed.kind === 'postgres') return createPostgresStore(db)
  if (parsed.kind === 'files') return createFileStore(parsed.folder)
  if (settings.blobs.s3 === null) return null
  // Loaded on demand, because the module loads more slowly than the rest of the edge.
  const { createS3Store } = await import('./s3.ts')
  return createS3Store(parsed, settings.blobs.s3, settings.maxUploadBytes)
}

/** Measures and hashes a stream as it passes into a store. */
class DigestingStream implements AsyncIterable<Uint8Array> {
  private readonly chunks: AsyncIterable<Uint8Array>
  private readonly hash = createHash('sha256')
  private readonly head: Uint8Array[] = []
  private byteSize = 0

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.chunks = chunks
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.chunks) {
      this.hash.update(chunk)
      // Copy the chunk: it is valid only until the next is requested.
      if (this.byteSize < HEAD_BYTES)
        this.head.push(Uint8Array.from(chunk.subarray(0, HEAD_BYTES - this.byteSize)))
      this.byteSize += chunk.length
      yield chunk
    }
  }

  getResult(): Omit<UploadedBlob, 'at'> {
    return { sha256: this.hash.digest(), byteSize: this.byteSize, head: Buffer.concat(this.head) }
  }
}

/** Yields exactly `length` bytes. @throws fail('document.bytes_missing') if the source has fewer or more. */
async function* yieldExactly(
  length: number,
  open: () => Promise<AsyncIterable<Uint8Array>>,
): AsyncGenerator<Uint8Array> {
  let remaining = length
  try {
    for await (const piece of await open()) {
      remaining -= piece.length
      if (remaining < 0) throw fail('document.bytes_missing')
      yield piece
    }
  } catch (error) {
    throw toStoreFailure(error)
  }
  if (remaining > 0) throw fail('document.bytes_missing')
}

async function convertErrors<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw toStoreFailure(error)
  }
}

/**
 * Converts a store's error. Treats any error but a Failure as an outage, such as a full disk or a missing permission.
 */
function toStoreFailure(error: unknown): Failure {
  return error instanceof Failure ? error : fail('document.store_failed', {}, { cause: error })
}

// Large enough that a 100 MiB file takes a few hundred statements, and small enough that a process can hold many
// chunks.
const CHUNK_BYTES = 256 * 1024

/** Stores bytes as chunks in the database, which needs no additional service or backup. */
function createPostgresStore(db: Database): BlobStore {
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
