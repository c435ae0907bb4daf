import { randomUUID } from 'node:crypto'
import { closeSync, openSync, read, unlinkSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const READ_BYTES = 256 * 1024
const readAsync = promisify(read)

/**
 * A queue of bytes in an unnamed temporary file, which the system removes when its last descriptor closes. Writing is
 * synchronous, a copy into the page cache: it is for callers that cannot wait.
 */
export class Spill {
  private readonly fd: number
  private writtenTo = 0
  private readTo = 0
  private reading = false
  private closed = false

  /** @throws when there is no room for a temporary file, as does push(). */
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

  /** Closes now, or after a read that is under way: the number of a closed descriptor may be reused. */
  close(): void {
    if (this.closed) return
    this.closed = true
    if (!this.reading) closeSync(this.fd)
  }
}
