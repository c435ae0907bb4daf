import { randomUUID } from 'node:crypto'
import { closeSync, openSync, read, unlinkSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const READ_BYTES = 256 * 1024
const readAsync = promisify(read)

/**
 * A queue of bytes in an unlinked temporary file, which the system removes when the descriptor closes. Writes are
 * synchronous, because callers cannot wait. Each write only copies into the page cache.
 */
export class Spill {
  private readonly fd: number
  private writtenTo = 0
  private readTo = 0
  private reading = false
  private closed = false

  /** @throws if the temporary file cannot be created. push() throws if the disk is full. */
  constructor() {
    const path = join(tmpdir(), `millrace-body-${randomUUID()}`)
    this.fd = openSync(path, 'wx+', 0o600)
    unlinkSync(path)
  }

  get isEmpty(): boolean {
    return this.readTo === this.writtenTo
  }

  push(bytes: Uint8Array): void {
    for (let offset = 0; offset < bytes.length; ) {
      const count = writeSync(this.fd, bytes, offset, bytes.length - offset, this.writtenTo)
      offset += count
      this.writtenTo += count
    }
  }

  /**
   * Returns the next bytes, which the caller owns. Call it only if the queue is not empty and no other call is pending.
   */
  async shift(): Promise<Uint8Array> {
    const bytes = new Uint8Array(Math.min(READ_BYTES, this.writtenTo - this.readTo))
    this.reading = true
    try {
      const { bytesRead } = await readAsync(this.fd, bytes, 0, bytes.length, this.readTo)
      this.readTo += bytesRead
      return bytes.subarray(0, bytesRead)
    } finally {
      this.reading = false
      if (this.closed) closeSync(this.fd)
    }
  }

  /**
   * Closes the file, after a pending read if there is one, because the system may reuse the number of a closed
   * descriptor.
   */
  close(): void {
    if (this.closed) return
    this.closed = true
    if (!this.reading) closeSync(this.fd)
  }
}
