import { createHash } from 'node:crypto'
import {
  type BlobAt,
  blobAt,
  createBlob,
  deleteBlob,
  markUploadDeleted,
  noteUpload,
} from '../../sql/blobs.ts'
import type { Database } from '../../sql/db.ts'
import { Failure, fail } from '../../sql/errors.ts'
import type { Settings } from '../settings.ts'
import { createFileStore } from './blobs/files.ts'
import { parseLocation } from './blobs/location.ts'
import { createPostgresStore } from './blobs/postgres.ts'
import type { BlobStore } from './blobs/store.ts'

/** The bytes of an upload, stored but not yet part of a document. */
export interface UploadedBlob {
  readonly at: BlobAt
  readonly sha256: Buffer
  readonly byteSize: number
  /** The first bytes, for detecting the file's type. */
  readonly head: Uint8Array
}

/** Stored bytes, in whichever store their row names; new ones go where `BLOB_STORE` says. */
export interface Blobs {
  /** Stores a stream in constant memory; is done with a chunk when it requests the next. A failure leaves nothing. */
  store(chunks: AsyncIterable<Uint8Array>): Promise<UploadedBlob>
  /** Stores the bytes of an existing row under its key, in constant memory: for restoring a backup. */
  put(at: BlobAt, chunks: AsyncIterable<Uint8Array>): Promise<void>
  /** Removes an upload, unless a document uses it by now. */
  discard(at: BlobAt): Promise<void>
  /**
   * Exactly this range of the bytes, at the reader's pace. A piece is valid until the next is requested.
   * @throws fail('document.bytes_missing' | 'document.store_failed'), at the first piece if it can be known then.
   */
  read(at: BlobAt, from: number, length: number): AsyncIterable<Uint8Array>
  /** @throws fail('document.bytes_missing'), also when the size differs. */
  readWhole(blobId: number, byteSize: number): Promise<Uint8Array>
  /** Whether all `byteSize` bytes exist; false when their store is not configured. */
  exists(at: BlobAt, byteSize: number): Promise<boolean>
  /** Removes the bytes of a row that is marked as deleted, and then the row. */
  remove(at: BlobAt): Promise<void>
  close(): Promise<void>
}

const HEAD_BYTES = 64 * 1024

export function createBlobs(db: Database, settings: Settings): Blobs {
  return new StoredBlobs(db, settings)
}

class StoredBlobs implements Blobs {
  private readonly db: Database
  private readonly settings: Settings
  private readonly stores = new Map<string, Promise<BlobStore | null>>()

  constructor(db: Database, settings: Settings) {
    this.db = db
    this.settings = settings
  }

  async store(chunks: AsyncIterable<Uint8Array>): Promise<UploadedBlob> {
    const { db } = this
    const at = await db.one(createBlob(this.settings.blobs.store))
    const begun = async (uploadId: string): Promise<void> =>
      void (await db.run(noteUpload(at.blob_id, uploadId)))
    try {
      const digest = new Digest(chunks)
      await guarded(async () => (await this.storeOf(at)).write(at, digest, begun))
      return { at, ...digest.result() }
    } catch (error) {
      // What can't be removed now is removed by the next collection; the original failure is thrown in any case.
      await this.discard(at).catch(() => {})
      throw error
    }
  }

  async put(at: BlobAt, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const begun = async (uploadId: string): Promise<void> =>
      void (await this.db.run(noteUpload(at.blob_id, uploadId)))
    await guarded(async () => (await this.storeOf(at)).write(at, chunks, begun))
  }

  async discard(at: BlobAt): Promise<void> {
    const { deleted } = await this.db.one(markUploadDeleted(at.blob_id))
    // The row as it is now: it may have got an upload id, which has to be removed, too.
    if (deleted) await this.remove((await this.db.maybeOne(blobAt(at.blob_id))) ?? at)
  }

  read(at: BlobAt, from: number, length: number): AsyncIterable<Uint8Array> {
    return exactly(length, async () => (await this.storeOf(at)).read(at, from, length))
  }

  async readWhole(blobId: number, byteSize: number): Promise<Uint8Array> {
    const at = await this.db.maybeOne(blobAt(blobId))
    if (at === null || !(await this.exists(at, byteSize))) throw fail('document.bytes_missing')
    const bytes = new Uint8Array(byteSize)
    let end = 0
    for await (const piece of this.read(at, 0, byteSize)) {
      bytes.set(piece, end)
      end += piece.length
    }
    return bytes
  }

  exists(at: BlobAt, byteSize: number): Promise<boolean> {
    return guarded(async () => (await (await this.find(at.store))?.exists(at, byteSize)) ?? false)
  }

  async remove(at: BlobAt): Promise<void> {
    await guarded(async () => (await this.storeOf(at)).remove(at))
    await this.db.run(deleteBlob(at.blob_id))
  }

  async close(): Promise<void> {
    for (const opened of await Promise.allSettled(this.stores.values()))
      if (opened.status === 'fulfilled') opened.value?.close()
  }

  private find(location: string): Promise<BlobStore | null> {
    const known = this.stores.get(location) ?? openStore(location, this.db, this.settings)
    this.stores.set(location, known)
    return known
  }

  private async storeOf({ store }: BlobAt): Promise<BlobStore> {
    const found = await this.find(store)
    if (found === null) throw fail('document.bytes_missing')
    return found
  }
}

/** The store at a location; null when the settings don't say how to reach it. */
async function openStore(location: string, db: Database, settings: Settings): Promise<BlobStore | null> {
  const parsed = parseLocation(location)
  if (parsed === null) return null
  if (parsed.kind === 'postgres') return createPostgresStore(db)
  if (parsed.kind === 'files') return createFileStore(parsed.folder)
  if (settings.blobs.s3 === null) return null
  // Loaded on demand: it takes longer than the rest of an edge's start.
  const { createS3Store } = await import('./blobs/s3.ts')
  return createS3Store(parsed, settings.blobs.s3, settings.maxUploadBytes)
}

/** Measures and hashes a stream on its way into a store. */
class Digest implements AsyncIterable<Uint8Array> {
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
      // A copy, since a chunk is only valid until the next is requested.
      if (this.byteSize < HEAD_BYTES)
        this.head.push(Uint8Array.from(chunk.subarray(0, HEAD_BYTES - this.byteSize)))
      this.byteSize += chunk.length
      yield chunk
    }
  }

  result(): Omit<UploadedBlob, 'at'> {
    return { sha256: this.hash.digest(), byteSize: this.byteSize, head: Buffer.concat(this.head) }
  }
}

/** Passes on exactly `length` bytes. */
async function* exactly(
  length: number,
  open: () => Promise<AsyncIterable<Uint8Array>>,
): AsyncGenerator<Uint8Array> {
  let left = length
  try {
    for await (const piece of await open()) {
      left -= piece.length
      if (left < 0) throw fail('document.bytes_missing')
      yield piece
    }
  } catch (error) {
    throw storeFailure(error)
  }
  if (left > 0) throw fail('document.bytes_missing')
}

async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw storeFailure(error)
  }
}

/** Any other error of a store is an outage: full, unreachable, not permitted. */
function storeFailure(error: unknown): Failure {
  return error instanceof Failure ? error : fail('document.store_failed', {}, { cause: error })
}
