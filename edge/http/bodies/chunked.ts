import { fail } from '../../../sql/errors.ts'
import type { ChunkWriter, NativeResponse } from '../types.ts'

// Bytes to hold back from each piece.
const RESERVE_BYTES = 1024
// Number of held-back bytes to write at a time, so that uWS flushes its buffer.
const NUDGE_BYTES = 16

/**
 * Writes a response body of unknown length piece by piece, at the client's pace. Once a writability listener is
 * registered, uWS flushes its buffer only on the next write, and reports only then that everything is sent. So this
 * class holds back the end of each piece, and writes a few bytes of it whenever the kernel has room.
 */
export class ChunkedBodyWriter implements ChunkWriter {
  /** True once the response has ended or the client has disconnected. */
  closed: boolean
  /** Bytes passed to write() so far. */
  bytes = 0
  private readonly res: NativeResponse
  /** Status and headers; undefined once they are written. */
  private head: string | undefined
  private reserve: Uint8Array = new Uint8Array(0)
  private waiting: { readonly resolve: () => void; readonly reject: (error: unknown) => void } | undefined =
    undefined

  constructor(res: NativeResponse, head: string, open: boolean) {
    this.res = res
    this.head = head
    this.closed = !open
    // Must precede the first write that can return false. uWS keeps only one listener.
    if (open) res.onWritable(() => this.drain())
  }

  write(chunk: Uint8Array): Promise<void> {
    if (this.closed) return Promise.reject(fail('request.incomplete'))
    if (this.waiting !== undefined)
      return Promise.reject(new Error('write() was called before the previous write finished'))
    this.bytes += chunk.length
    const all = this.reserve.length === 0 ? chunk : Buffer.concat([this.reserve, chunk])
    const size = Math.max(all.length - RESERVE_BYTES, 0)
    // Copies the reserve, because the caller may reuse its buffer.
    this.reserve = Uint8Array.from(all.subarray(size))
    if (size === 0 || this.tryWrite(all.subarray(0, size))) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject }
    })
  }

  end(): void {
    if (this.closed) return
    this.closed = true
    this.res.cork(() => {
      if (this.head !== undefined) this.res.writeStatus(this.head)
      this.res.end(this.reserve)
    })
  }

  abort(): void {
    if (!this.closed) this.res.close()
  }

  /** Handles a disconnect, after which `res` must not be used. */
  handleAbort(): void {
    this.closed = true
    const { waiting } = this
    this.waiting = undefined
    waiting?.reject(fail('request.incomplete'))
  }

  /**
   * Passes bytes to uWS. Returns true if all are sent. The chunk must not be empty, because uWS would end the response.
   */
  private tryWrite(bytes: Uint8Array): boolean {
    let sent = false
    this.res.cork(() => {
      if (this.head !== undefined) this.res.writeStatus(this.head)
      this.head = undefined
      sent = this.res.write(bytes)
    })
    return sent
  }

  private drain(): boolean {
    const { waiting } = this
    if (this.closed || waiting === undefined) return true
    const nudge = this.reserve.subarray(0, NUDGE_BYTES)
    this.reserve = this.reserve.subarray(nudge.length)
    if (nudge.length > 0 && !this.tryWrite(nudge)) return true
    this.waiting = undefined
    waiting.resolve()
    return true
  }
}
