import type { NativeResponse, Shared } from './types.ts'

/**
 * Ends a response, or holds what the kernel did not take of it. uWS would buffer any amount and read on, so a client
 * that sends requests and never reads would take unlimited memory. Pausing does not help: pause() stops writing too,
 * and all that is parsed from one read (512 KiB, thousands of requests) reaches its handlers in one turn, paused or
 * not. But uWS closes the connection when a request arrives before the previous one has ended, even within one read. So
 * a response ends only when the kernel has it: at most one response and the cork buffer (16 KiB) wait in this process
 * per connection, and a client that sends more meanwhile loses the connection (RFC 9112, section 9.3.2, has it retry).
 * uWS's timer, which checks every 4 s, closes a client that takes nothing for 10 s.
 * @returns what is held, if anything.
 */
export function endOrHold(res: NativeResponse, shared: Shared, body: string | Uint8Array): Rest | undefined {
  const totalBytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  const [, ended] = res.tryEnd(body, totalBytes)
  return ended ? undefined : new Rest(res, shared, Buffer.from(body as string), totalBytes)
}

/** The rest of a response, sent at the client's pace. */
export class Rest {
  /** Sent, or the client left. */
  closed = false
  /** Zero, because the whole response was already counted. */
  readonly bytes = 0
  private readonly res: NativeResponse
  private readonly shared: Shared
  private readonly totalBytes: number
  private body: Uint8Array

  constructor(res: NativeResponse, shared: Shared, body: Uint8Array, totalBytes: number) {
    this.res = res
    this.shared = shared
    shared.untaken++
    this.body = body
    this.totalBytes = totalBytes
    res.onWritable(() => this.drain())
  }

  leave(): void {
    if (this.closed) return
    this.closed = true
    if (--this.shared.untaken === 0) this.shared.whenTaken?.()
    this.body = new Uint8Array(0)
  }

  private drain(): boolean {
    if (this.closed) return true
    let sent = false
    this.res.cork(() => {
      const left = this.body.subarray(this.res.getWriteOffset())
      const [taken, ended] = this.res.tryEnd(left, this.totalBytes)
      sent = taken
      if (ended) this.leave()
    })
    return sent
  }
}
