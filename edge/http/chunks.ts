import { fail } from '../../sql/errors.ts'
import type { ChunkWriter, NativeResponse } from './types.ts'

// How much of each piece is held back, and how much of that is written at a time to make uWS flush its buffer.
const RESERVE = 1024
const NUDGE = 16

/**
 * A response body of unknown length, written piece by piece at the client's pace. Once a writability listener is
 * registered, uWS drains nothing by itself: its buffer moves only with the next write, and only a write tells whether
 * all of it was sent. So the end of each piece is held back, and a few bytes of it are written whenever the kernel has
 * room.
 */
export class Chunks implements ChunkWriter {
  /** Ended, or the client left. */
  closed: boolean
  /** Bytes passed to write() so far. */
  bytes = 0
  private readonly res: NativeResponse
  /** Status and headers until they have been written. */
  private head: string | undefined
  private reserve: Uint8Array = new Uint8Array(0)
  private waiting: { readonly resolve: () => void; readonly reject: (error: unknown) => void } | undefined =
    undefined

  constructor(res: NativeResponse, head: string, open: boolean) {
    this.res = res
    this.head = head
    this.closed = !open
    // Registered before any write can be refused; uWS keeps one listener.
    if (open) res.onWritable(() => this.drain())
  }

  write(chunk: Uint8Array): Promise<void> {
    if (this.closed) return Promise.reject(fail('request.incomplete'))
    if (this.waiting !== undefined) return Promise.reject(new Error('The previous piece is not written yet'))
    this.bytes += chunk.length
    const all = this.reserve.length === 0 ? chunk : Buffer.concat([this.reserve, chunk])
    const size = Math.max(all.length - RESERVE, 0)
    // A copy, because the caller may reuse the piece once it has been written.
    this.reserve = Uint8Array.from(all.subarray(size))
    if (size === 0 || this.offer(all.subarray(0, size))) return Promise.resolve()
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

  /** The client left: `res` must not be touched from here on. */
  leave(): void {
    this.closed = true
    const { waiting } = this
    this.waiting = undefined
    waiting?.reject(fail('request.incomplete'))
  }

  /** Passes bytes to uWS, never an empty chunk, which this core takes for the end. True when it has sent them all. */
  private offer(bytes: Uint8Array): boolean {
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
    const nudge = this.reserve.subarray(0, NUDGE)
    this.reserve = this.reserve.subarray(nudge.length)
    if (nudge.length > 0 && !this.offer(nudge)) return true
    this.waiting = undefined
    waiting.resolve()
    return true
  }
}
