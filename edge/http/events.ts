import type { EventSink, NativeResponse, ServerState } from './types.ts'

/** An empty SSE comment. */
const COMMENT = ':\n\n'

/** A response that stays open to send server-sent events in chunked encoding. */
export class EventStream implements EventSink {
  closed = false
  isWritable = true
  bufferedBytes = 0
  /** Bytes passed to write() so far. */
  bytes = 0
  private readonly res: NativeResponse
  private readonly shared: ServerState
  private writableListener: (() => void) | undefined = undefined
  private closeListeners: (() => void)[] = []
  /** True while an ended stream still has bytes that the kernel has not accepted. */
  private ending = false

  /** `head` is undefined if the client has already disconnected. The stream then starts closed. */
  constructor(
    res: NativeResponse,
    shared: ServerState,
    head: string | undefined,
    first: Uint8Array | string = COMMENT,
  ) {
    this.res = res
    this.shared = shared
    if (head === undefined) {
      this.closed = true
      this.isWritable = false
      return
    }
    shared.openStreams++
    // Without a listener, uWS arms a 10 s timer once its buffer is empty, and never stops it.
    res.onWritable(() => this.drain())
    res.cork(() => {
      res.writeStatus(head)
      // uWS completes the header section only with the first non-empty chunk.
      res.write(first.length === 0 ? COMMENT : first)
    })
  }

  write(data: Uint8Array | string): boolean {
    if (this.closed) return false
    let sent = true
    const length = typeof data === 'string' ? Buffer.byteLength(data) : data.length
    this.bytes += length
    this.res.cork(() => {
      sent = this.res.write(data)
    })
    if (sent) this.bufferedBytes = 0
    else this.bufferedBytes += length
    this.isWritable = sent
    return sent
  }

  onWritable(listener: () => void): void {
    this.writableListener = listener
  }

  onClose(listener: () => void): void {
    if (this.closed) queueMicrotask(() => this.callListener(listener))
    else this.closeListeners.push(listener)
  }

  end(last?: Uint8Array | string): void {
    if (this.closed) return
    let sent = this.isWritable
    this.close()
    this.res.cork(() => {
      if (last !== undefined && last.length > 0) sent = this.res.write(last)
      if (sent) this.res.end()
    })
    // The response must not end before the kernel has accepted all of it, because uWS would then read the next request.
    // See `HeldResponse`.
    this.ending = !sent
  }

  /** Handles a disconnect, after which `res` must not be used. */
  handleAbort(): void {
    this.ending = false
    if (this.closed) return
    this.close()
    for (const listener of this.closeListeners) this.callListener(listener)
  }

  /**
   * Flushes uWS's buffer, which uWS itself does only on the next write once a listener is registered. Writing a comment
   * triggers the flush and reports whether everything is sent. The cork puts the owner's next events into the same
   * packet.
   */
  private drain(): boolean {
    if (this.closed && !this.ending) return true
    this.res.cork(() => {
      if (!this.res.write(COMMENT)) return
      if (this.ending) {
        this.ending = false
        this.res.end()
        return
      }
      this.bufferedBytes = 0
      this.isWritable = true
      if (this.writableListener !== undefined) this.callListener(this.writableListener)
    })
    return true
  }

  private close(): void {
    this.closed = true
    this.isWritable = false
    this.shared.openStreams--
  }

  private callListener(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.shared.onError(error)
    }
  }
}
