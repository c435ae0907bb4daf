import type { BlobLocation } from '../../../sql/documents/blobs.ts'

/** A store for bytes. All stores pass the same tests. */
export interface BlobStore {
  /**
   * Stores a stream durably, in constant memory. A store with upload ids must call `onUploadId` before it uploads data,
   * because `remove` needs the id after a failed upload.
   */
  write(
    at: BlobLocation,
    chunks: AsyncIterable<Uint8Array>,
    onUploadId: (uploadId: string) => Promise<void>,
  ): Promise<void>
  /**
   * Streams a range of the bytes, with backpressure. A chunk is valid until the next is requested.
   * @throws fail('document.bytes_missing'), before the first chunk if possible.
   */
  read(at: BlobLocation, from: number, length: number): AsyncIterable<Uint8Array>
  /** True if all `byteSize` bytes exist. */
  exists(at: BlobLocation, byteSize: number): Promise<boolean>
  /** Removes the bytes, complete or partial. Idempotent. */
  remove(at: BlobLocation): Promise<void>
  close(): void
}
