import { randomUUID } from 'node:crypto'
import { closeSync, openSync, read, unlinkSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const READ_BYTES = 256 * 1024
const readAsync = promisify(read)

/**
 * A queue of bytes in a temporary file without a name, which the system removes with its last descriptor.
 * Writing is synchronous, a copy into the page cache: it serves where waiting is not possible.
 */
export class Spill {
  private readonly fd: number
  private writtenTo = 0
  private readTo = 0
  private reading = false
  private closed = false

  /** @throws when there is no room for a temporary file, like push(). */
  constructor() {
    const path = join(tmpdir(), `millrace-body-${randomUUID()}`)
    this.fd = openSync(path, 'wx+', 0o600)
    unlinkSync(path)
  }

  get isEmpty(): boolean {
    return this.readTo === this.writtenTo
  }

  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const count = writeSync(this.fd, bytes, at, bytes.length - at, this.writtenTo)
      at += count
      this.writtenTo += count
    }
  }

  /** The next bytes, owned by the caller. One call at a time, and only when not empty. */
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

  /** Closes now or, when a reading is under way, after it: the number of a closed descriptor may be given to another. */
  close(): void {
    if (this.closed) return
    this.closed = true
    if (!this.reading) closeSync(this.fd)
  }
}
