import type { BlobAt } from '../../../sql/blobs.ts'

/** One place where bytes are stored. Every store passes the same tests. */
export interface BlobStore {
  /**
   * Stores a stream in constant memory; once it resolves, a power cut loses nothing of it. `remove` removes what a
   * broken upload leaves behind; `begun` gets the upload id that this takes, before anything is uploaded.
   */
  write(
    at: BlobAt,
    chunks: AsyncIterable<Uint8Array>,
    begun: (uploadId: string) => Promise<void>,
  ): Promise<void>
  /**
   * A range of the bytes, at the reader's pace. A piece is valid until the next is requested.
   * @throws fail('document.bytes_missing') instead of the first piece if it can be known then.
   */
  read(at: BlobAt, from: number, length: number): AsyncIterable<Uint8Array>
  /** Whether all `byteSize` bytes exist. */
  exists(at: BlobAt, byteSize: number): Promise<boolean>
  /** Removes the bytes, complete or not. Doing it again changes nothing. */
  remove(at: BlobAt): Promise<void>
  close(): void
}
