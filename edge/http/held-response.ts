import type { NativeResponse, ServerState } from './types.ts'

/**
 * Ends a response, or holds the bytes that the kernel has not accepted. uWS would buffer any amount and keep reading.
 * A client that sends requests and never reads would use unlimited memory. Pausing does not help: pause() also stops
 * writing. All requests parsed from one read (512 KiB, thousands of requests) reach their handlers in one turn.
 *
 * But uWS closes the connection when a request arrives before the previous response has ended, even within one read. So
 * a response ends only when the kernel has all of it. Per connection, at most one response and the cork buffer (16 KiB)
 * wait in this process. A client that sends more meanwhile loses the connection and retries (RFC 9112, section 9.3.2).
 * The timer of uWS runs every 4 s and disconnects a client that reads nothing for 10 s.
 *
 * Returns undefined if the kernel has accepted the whole response.
 */
export function endOrHold(
  res: NativeResponse,
  shared: ServerState,
  body: string | Uint8Array,
): HeldResponse | undefined {
  const totalBytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  const [, ended] = res.tryEnd(body, totalBytes)
  return ended ? undefined : new HeldResponse(res, shared, Buffer.from(body as string), totalBytes)
}

/** Sends the rest of a response at the client's pace. */
export class HeldResponse {
  /** True once everything is sent or the client has disconnected. */
  closed = false
  /** Always 0, because the exchange has already counted the whole response. */
  readonly bytes = 0
  private readonly res: NativeResponse
  private readonly shared: ServerState
  private readonly totalBytes: number
  private body: Uint8Array

  constructor(res: NativeResponse, shared: ServerState, body: Uint8Array, totalBytes: number) {
    this.res = res
    this.shared = shared
    shared.unsentResponses++
    this.body = body
    this.totalBytes = totalBytes
    res.onWritable(() => this.drain())
  }

  handleAbort(): void {
    this.close()
  }

  private close(): void {
    if (this.closed) return
    this.closed = true
    if (--this.shared.unsentResponses === 0) this.shared.onAllSent?.()
    this.body = new Uint8Array(0)
  }

  private drain(): boolean {
    if (this.closed) return true
    let sent = false
    this.res.cork(() => {
      const left = this.body.subarray(this.res.getWriteOffset())
      const [isAccepted, ended] = this.res.tryEnd(left, this.totalBytes)
      sent = isAccepted
      if (ended) this.close()
    })
    return sent
  }
}
