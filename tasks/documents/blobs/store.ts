import type { BlobAt } from '../../../sql/blobs.ts'

/** One place where bytes live. Every store passes the same tests. */
export interface BlobStore {
  /**
   * Stores a stream in constant memory; once it resolves, a power cut loses nothing of it. What an upload that breaks
   * off leaves behind, `remove` removes. `begun` is told what must be known for that before there is any of it.
   */
  write(
    at: BlobAt,
    chunks: AsyncIterable<Uint8Array>,
    begun: (uploadId: string) => Promise<void>,
  ): Promise<void>
  /**
   * A part of the bytes at the pace of its reader. A piece is good until the next is asked for.
   * @throws fail('document.bytes_missing') in the place of the first piece wherever that can be known.
   */
  read(at: BlobAt, from: number, length: number): AsyncIterable<Uint8Array>
  /** Whether all of so many bytes are there. */
  exists(at: BlobAt, byteSize: number): Promise<boolean>
  /** Removes the bytes, or what is there of them. Doing it again changes nothing. */
  remove(at: BlobAt): Promise<void>
  close(): void
}
