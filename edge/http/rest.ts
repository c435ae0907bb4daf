import type { NativeResponse } from './types.ts'

/**
 * Ends an answer, or holds what the kernel did not take of it. uWS would buffer any amount and read on: of a client that
 * asks and never reads that is memory without end. Pausing is no help, since pause() stops the writing too, and what is
 * parsed of one read (512 KiB, thousands of requests) reaches its handlers in one turn, pause or not. But a request that
 * comes while the one before is not ended makes uWS close the connection, also within one read. So an answer ends when
 * the kernel has it: at most one answer and the cork buffer (16 KiB) wait in this process for a connection, and a client
 * that asks for more meanwhile loses it (RFC 9112, section 9.3.2, has it ask again). One that takes nothing for 10 s is
 * closed by uWS's timer, which looks every 4 s.
 * @returns what is held, if anything is.
 */
export function endOrHold(res: NativeResponse, body: string | Uint8Array): Rest | undefined {
  const totalBytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  const [, ended] = res.tryEnd(body, totalBytes)
  return ended ? undefined : new Rest(res, Buffer.from(body as string), totalBytes)
}

/** What is left of an answer, at the pace of the client. */
export class Rest {
  /** Sent, or the client left. */
  closed = false
  /** The whole answer was counted before. */
  readonly bytes = 0
  private readonly res: NativeResponse
  private readonly totalBytes: number
  private body: Uint8Array

  constructor(res: NativeResponse, body: Uint8Array, totalBytes: number) {
    this.res = res
    this.body = body
    this.totalBytes = totalBytes
    res.onWritable(() => this.drain())
  }

  leave(): void {
    this.closed = true
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
